"""Gabor filters with pooling."""

from visionshare.generators.gabor.family import GaborBank

__all__ = ["GaborBank"]
