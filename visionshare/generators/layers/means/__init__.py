"""Means: of each channel, over the plane."""

from visionshare.generators.layers.means.layer import MeanLayer, Means

__all__ = ["MeanLayer", "Means"]
