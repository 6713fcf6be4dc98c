"""Units of weighted sums of the features of another family."""

from visionshare.generators.units.family import Units

__all__ = ["Units"]
