"""Units: weighted sums of all values, rectified or squared."""

from visionshare.generators.layers.units.layer import UnitLayer, Units

__all__ = ["UnitLayer", "Units"]
