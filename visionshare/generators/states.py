"""Descriptions of families, as files hold them: what all have in common, written and checked."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, TypeVar

import numpy as np

from visionshare.errors import InputError
from visionshare.generators.base import FeatureFamily

Family = TypeVar("Family", bound=FeatureFamily)
#: What a file holds of a family or a layer: plain values, and arrays by name.
State = Mapping[str, Any]
Arrays = Mapping[str, np.ndarray]
#: The same as it is written.
StateAndArrays = tuple[dict[str, Any], dict[str, np.ndarray]]
_VERSION = 1
_LARGEST_SIDE = 65536
_LARGEST_IMAGE = 2**28


def family_state(family: FeatureFamily, **values: Any) -> dict[str, Any]:
    """Return the description of a fitted family: name, version, shape of an image, and values."""
    # Numbers of NumPy become Python's, which files can hold.
    head = {"family": family.name, "version": _VERSION, "image_shape": list(family.image_shape_)}
    return {**head, **_plain(values)}


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]
    return value.item() if isinstance(value, np.generic) else value


def arrays_below(prefix: str, arrays: Arrays) -> dict[str, np.ndarray]:
    """Return the arrays whose names begin with a prefix, without it."""
    return {n.removeprefix(prefix): a for n, a in arrays.items() if n.startswith(prefix)}


def check_state(
    state: State,
    arrays: Arrays,
    family: str,
    dimensions: Mapping[str, int],
) -> None:
    """Check that a description is of this family, of a known version, and has these arrays."""
    given = (state.get("family"), state.get("version"))
    if given != (family, _VERSION):
        accepted = f"{family!r}, version {_VERSION}; a newer library may read it"
        raise InputError("family", given, accepted)
    for name, number in dimensions.items():
        array = arrays.get(name)
        if array is None or array.ndim != number:
            shape = None if array is None else array.shape
            raise InputError(name, shape, f"an array of {number} dimensions")
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise InputError(name, "NaN or infinity", "finite values")


def unfitted(
    cls: type[Family],
    state: State,
    arrays: Arrays,
    dimensions: Mapping[str, int],
    later: Collection[str] = (),
) -> Family:
    """Return a family with the parameters and the image shape of a description, checked."""
    check_state(state, arrays, cls.name, dimensions)
    names = set(cls().get_params())
    parameters = state.get("parameters") if names else {}
    if not isinstance(parameters, dict) or set(parameters) | set(later) != names:
        raise InputError("parameters", parameters, f"values for {sorted(names)}")
    family = cls(**parameters)
    family.check_parameters()
    family.image_shape_ = check_image_shape(state.get("image_shape"))
    return family


def check_floats(arrays: Arrays, shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Check that arrays of a description are float32, each of its shape."""
    for name, shape in shapes.items():
        if arrays[name].dtype != np.float32 or arrays[name].shape != shape:
            given = f"{arrays[name].dtype} of shape {arrays[name].shape}"
            raise InputError(name, given, f"float32 of shape {shape}")


def check_image_shape(value: Any) -> tuple[int, ...]:
    """Return the shape of one image from a file, checked."""
    accepted = "1 to 3 whole numbers, at most 2^28 values"
    if not isinstance(value, (list, tuple)) or not 1 <= len(value) <= 3:
        raise InputError("image_shape", value, accepted)
    if not all(type(side) is int and 0 < side <= _LARGEST_SIDE for side in value):
        raise InputError("image_shape", value, accepted)
    if int(np.prod(value, dtype=np.int64)) > _LARGEST_IMAGE:
        raise InputError("image_shape", value, accepted)
    return tuple(value)
