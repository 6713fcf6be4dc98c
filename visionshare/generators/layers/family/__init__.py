"""The features of any family, as a layer of a network."""

from visionshare.generators.layers.family.layer import FeatureLayer, Features

__all__ = ["FeatureLayer", "Features"]
