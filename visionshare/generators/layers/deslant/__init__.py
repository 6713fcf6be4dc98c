"""Deslanting: rows of an image are moved so that its slant goes."""

from visionshare.generators.layers.deslant.layer import Deslant, DeslantLayer

__all__ = ["Deslant", "DeslantLayer"]
