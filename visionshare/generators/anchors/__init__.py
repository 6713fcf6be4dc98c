"""Kernel anchors: piecewise-linear functions and Gaussians around anchors."""

from visionshare.generators.anchors.columns import AnchorColumns
from visionshare.generators.anchors.family import KernelAnchors

__all__ = ["AnchorColumns", "KernelAnchors"]
