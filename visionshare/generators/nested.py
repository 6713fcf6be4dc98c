"""Families inside families: their states in a list, their arrays under numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from visionshare.errors import InputError
from visionshare.generators.base import FeatureFamily
from visionshare.generators.registry import family_from_state
from visionshare.generators.states import Arrays, State, arrays_below, check_image_shape

DEEPEST = 8


def check_depth(states: Any) -> None:
    """Check that states hold each other in few levels, without following any further."""
    level = states
    for _ in range(DEEPEST):
        if not isinstance(level, list) or not all(isinstance(s, Mapping) for s in level):
            raise InputError("parts", type(level).__name__, "a list of families")
        inner = [s["parts"] for s in level if "parts" in s]
        if not all(isinstance(parts, list) for parts in inner):
            raise InputError("parts", "no list", "a list of families")
        level = [part for parts in inner for part in parts]
    if level:
        raise InputError("parts", "families inside families", f"at most {DEEPEST} levels of them")


def parts_to_state(
    parts: Sequence[FeatureFamily],
) -> tuple[list[dict[str, Any]], dict[str, np.ndarray]]:
    """Return the states of families, and their arrays as "0.name", "1.name" and so on."""
    states = []
    arrays = {}
    for number, part in enumerate(parts):
        state, part_arrays = part.to_state()
        states.append(state)
        arrays.update({f"{number}.{name}": array for name, array in part_arrays.items()})
    check_depth(states)
    return states, arrays


def parts_from_state(state: State, arrays: Arrays) -> tuple[tuple[int, ...], list[FeatureFamily]]:
    """Return an image's shape, and the families of :func:`parts_to_state`."""
    states: Any = state.get("parts")
    check_depth(states)
    shape = check_image_shape(state.get("image_shape"))
    parts = []
    for number, part_state in enumerate(states):
        part = family_from_state(part_state, arrays_below(f"{number}.", arrays))
        if tuple(part.image_shape_) != shape:
            raise InputError("parts", part.image_shape_, f"families of images of shape {shape}")
        parts.append(part)
    return shape, parts
