"""Exported C on the cores that it is for: compiled by clang, emulated, measured, limited."""

from visionshare.export.targets.compiling import OPTIMIZATIONS
from visionshare.export.targets.device_sources import DeviceSources, device_sources, frame_sources
from visionshare.export.targets.figures import (
    Measured,
    TargetFigures,
    TargetLimits,
    classify_on_core,
    measure,
)
from visionshare.export.targets.flash import FLASH_TARGET, flash_bytes
from visionshare.export.targets.table import TARGETS, Target, find_target

__all__ = [
    "FLASH_TARGET",
    "OPTIMIZATIONS",
    "TARGETS",
    "DeviceSources",
    "Measured",
    "Target",
    "TargetFigures",
    "TargetLimits",
    "classify_on_core",
    "device_sources",
    "find_target",
    "flash_bytes",
    "frame_sources",
    "measure",
]
