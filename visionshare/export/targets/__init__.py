"""Exported C on the cores that it is for: compiled by clang, emulated, measured, limited."""

from visionshare.export.targets.compiling import OPTIMIZATIONS
from visionshare.export.targets.figures import (
    Limits,
    Measured,
    TargetFigures,
    measure,
    parse_count,
)
from visionshare.export.targets.sources import DeviceSources, device_sources
from visionshare.export.targets.table import TARGETS, Target, find_target

__all__ = [
    "OPTIMIZATIONS",
    "TARGETS",
    "DeviceSources",
    "Limits",
    "Measured",
    "Target",
    "TargetFigures",
    "device_sources",
    "find_target",
    "measure",
    "parse_count",
]
