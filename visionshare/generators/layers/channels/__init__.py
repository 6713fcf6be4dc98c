"""Channels of an image by fixed formulas: colors, gradients, orientations."""

from visionshare.generators.layers.channels.layer import ChannelLayer, Channels

__all__ = ["ChannelLayer", "Channels"]
