"""Histograms of local binary patterns."""

from visionshare.generators.lbp.family import LocalBinaryPatterns

__all__ = ["LocalBinaryPatterns"]
