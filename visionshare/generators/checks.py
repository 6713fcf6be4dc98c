"""Checks of images, ids and parameters that families and searches share."""

from __future__ import annotations

from collections.abc import Collection
from numbers import Integral, Real
from typing import Any

import numpy as np

from visionshare.columns.base import check_ids
from visionshare.errors import InputError
from visionshare.errors.names import choices
from visionshare.errors.ranges import check_range, peak_of
from visionshare.machine.memory import memory_room
from visionshare.machine.resources import size_text

# Largest absolute values of images: sums of their squares are numbers of float32.
_IMAGE_LIMITS = (1e-15, 1e15)
# Of examples that are vectors, whose values are compared or scaled one by one: all of float32.
_VECTOR_LIMITS = (1.4e-45, 3.4028235e38)

_BYTES = np.dtype(np.uint8)

#: Ids of features; None for all of them.
Ids = np.ndarray | None


def check_whole(
    name: str, value: Any, least: int = 1, most: int | None = None, optional: bool = False
) -> None:
    """Raise an InputError unless a parameter is a whole number in a range."""
    if optional and value is None:
        return
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    if not whole or value < least or (most is not None and value > most):
        limits = f"of at least {least}" if most is None else f"from {least} to {most}"
        raise InputError(name, value, f"a whole number {limits}" + ", or None" * optional)


def check_flag(name: str, value: Any) -> None:
    """Raise an InputError unless a parameter is True or False."""
    if not isinstance(value, bool):
        raise InputError(name, value, "true or false")


def check_choice(name: str, value: Any, known: Collection[str]) -> None:
    """Raise an InputError unless a parameter is one of a few names."""
    if not isinstance(value, str) or value not in known:
        raise InputError(name, value, choices(value, known))


def check_fraction(name: str, value: Any) -> None:
    """Raise an InputError unless a parameter is a number above 0 and at most 1."""
    if not isinstance(value, Real) or isinstance(value, bool) or not 0 < float(value) <= 1:
        raise InputError(name, value, "a fraction above 0 and at most 1")


def check_positive(name: str, values: Any) -> None:
    """Raise an InputError unless a parameter is a list of one or more finite numbers above 0."""
    listed = isinstance(values, (list, tuple, np.ndarray)) and len(values) > 0
    if not listed or not all(isinstance(v, Real) and 0 < float(v) < np.inf for v in values):
        raise InputError(name, values, "a list of one or more numbers above 0")


def check_memory(name: str, value: Any, needed: float) -> None:
    """Raise an InputError where what a parameter asks for does not fit into memory."""
    available = memory_room()
    if needed > available:
        sizes = f"it takes about {size_text(needed)} of memory; {size_text(available)} are free"
        raise InputError(name, value, f"less: {sizes}")


def check_features(features: Ids, n_features: int) -> np.ndarray:
    """Return feature ids as int64; all for None."""
    if features is None:
        return np.arange(n_features)
    return check_ids(np.atleast_1d(features), n_features, "features")


def check_feature(feature: int, n_features: int) -> int:
    """Return one feature id."""
    return int(check_features(np.array([feature]), n_features)[0])


def check_dtype(dtype: str) -> None:
    """Raise an InputError unless columns can be of a dtype."""
    if dtype not in ("float32", "float16"):
        raise InputError("dtype", dtype, "'float32' or 'float16'")


def check_images(images: np.ndarray, shape: tuple[int, ...] | None = None) -> np.ndarray:
    """Return images as (n, H, W, C), uint8 or float32; vectors become (n, 1, p, 1)."""
    images = np.asarray(images)
    # Bytes of the expected shape need no other check: the common case, one image after another.
    if images.dtype != _BYTES or images.shape[1:] != shape:
        images = _checked(images, shape)
    if images.ndim == 2:
        return images[:, None, :, None]
    return images[..., None] if images.ndim == 3 else images


def _checked(images: np.ndarray, shape: tuple[int, ...] | None) -> np.ndarray:
    """Return images as bytes or float32, if they are images and of this shape."""
    if images.ndim not in (2, 3, 4) or images.dtype.kind not in "fiub":
        given = f"{images.dtype} of shape {images.shape}"
        raise InputError("images", given, "numbers of shape (n, H, W), (n, H, W, C) or (n, p)")
    if 0 in images.shape[1:]:
        raise InputError("images", images.shape, "images of at least one pixel")
    if shape is not None and images.shape[1:] != tuple(shape):
        raise InputError("images", images.shape, f"images of shape {(len(images), *shape)}")
    if images.dtype != _BYTES:
        _check_values(images)
        images = images.astype(np.float32, copy=False)
    return images


def _check_values(images: np.ndarray) -> None:
    """Raise an InputError if values are not finite, too large or too small for float32."""
    peak = peak_of(images)
    if not np.isfinite(peak):
        raise InputError("images", "NaN or infinity", "finite values")
    check_range("images", peak, *(_VECTOR_LIMITS if images.ndim == 2 else _IMAGE_LIMITS))


def checked_images(images: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Return images as they were given, after :func:`check_images`: for a family inside."""
    images = np.asarray(images)
    check_images(images, shape)
    return images
