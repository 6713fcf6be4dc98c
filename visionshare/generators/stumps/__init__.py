"""Decision stumps."""

from visionshare.generators.stumps.columns import StumpColumns
from visionshare.generators.stumps.family import Stumps

__all__ = ["StumpColumns", "Stumps"]
