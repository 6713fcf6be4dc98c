"""Random Fourier features."""

from visionshare.generators.fourier.family import RandomFourier

__all__ = ["RandomFourier"]
