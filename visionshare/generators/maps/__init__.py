"""The features of another family on learned maps of an image."""

from visionshare.generators.maps.family import LearnedMaps

__all__ = ["LearnedMaps"]
