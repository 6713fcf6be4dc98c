"""Pixels, or the columns of a table."""

from visionshare.generators.pixels.family import Pixels

__all__ = ["Pixels"]
