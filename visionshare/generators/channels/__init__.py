"""The features of another family on channels of an image: colors, gradients, orientations."""

from visionshare.generators.channels.family import ChannelMaps

__all__ = ["ChannelMaps"]
