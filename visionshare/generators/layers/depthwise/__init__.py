"""Depthwise templates: each sees one channel of its input alone."""

from visionshare.generators.layers.depthwise.layer import Depthwise, DepthwiseLayer

__all__ = ["Depthwise", "DepthwiseLayer"]
