"""Names that files of former versions have."""

from __future__ import annotations

from typing import Any

_KEYS = {"centre": "center", "centres": "centers"}
_VALUES = {("family", "straightened"): "deslanted", ("fit", "centre"): "center"}


def current_names(value: Any) -> Any:
    """Return a part of a header of version 1 or 2 with the names of today."""
    # Families inside families become networks where they are read, see
    # :mod:`visionshare.generators.layers.nested`.
    if isinstance(value, list):
        return [current_names(inner) for inner in value]
    if not isinstance(value, dict):
        return value
    renamed = {}
    for key, inner in value.items():
        if isinstance(inner, str):
            inner = _VALUES.get((key, inner), inner)
        renamed[_KEYS.get(key, key)] = current_names(inner)
    return renamed
