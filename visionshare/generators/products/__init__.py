"""Products of pairs of inputs."""

from visionshare.generators.products.family import Products

__all__ = ["Products"]
