"""Images of any kind for training: their size, their colors and their range of values."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from visionshare.datasets import Preprocessing
from visionshare.datasets.decoding import decode_picture, picture_header, upright_picture
from visionshare.datasets.image_kinds import (
    check_channels_last,
    is_picture,
    listed_images,
    numeric_arrays,
    to_bytes,
)
from visionshare.datasets.intake import Intake
from visionshare.datasets.pictures.preparation import propose_preparation
from visionshare.datasets.pictures.value_ranges import range_around
from visionshare.datasets.training_values import TrainingValues
from visionshare.errors import InputError

#: Larger pictures are shrunk to it where no size is given.
MOST_SIDE = 48
#: Images whose sides are all smaller are enlarged to it: layers of templates need room.
LEAST_SIDE = 16
_LARGEST = 4096
# Images that tell of what kind all are, at most.
_LOOKED_AT = 200
# What changes nothing, but says what is ink: it can be drawn, and alpha is laid on dark.
_LIGHT_INK = Preprocessing("light_on_dark")


def propose_intake(
    images: Any,
    size: int | tuple[int, int] | None = None,
    color: str | bool = "auto",
    least_side: int = LEAST_SIDE,
) -> Intake:
    """Return the intake that training images ask for."""
    # Arrays (n, H, W) or (n, H, W, C) are prepared already and only resized; of sequences of
    # arrays and of paths, :func:`visionshare.datasets.pictures.preparation.propose_preparation`
    # says what is done.
    if color not in ("auto", True, False):
        raise InputError("color", color, "'auto', True or False")
    given = None if size is None else _given_size(size)
    # 1) sizes and values a pixel
    listed = listed_images(images)
    if isinstance(listed, np.ndarray) and listed.ndim == 4:
        check_channels_last(listed.shape)
    shapes = [_shape_of(entry) for entry in listed]
    sides = np.array([shape[:2] for shape in shapes])
    counts = {shape[2] for shape in shapes}
    if len(counts - {1, 3}) > 0 and len(counts) > 1:
        raise InputError("images", f"{sorted(counts)} values a pixel", "gray and RGB, or one")
    if color is True and counts == {1}:
        raise InputError("color", True, "False or 'auto' for images without colors")
    # 2) the range of values
    arrays = numeric_arrays(listed)
    values = _values(arrays)
    seen = TrainingValues(*values, _kind(arrays))
    # 3) pictures are looked at; arrays of one size are prepared already
    is_array = isinstance(listed, np.ndarray) and listed.dtype.kind in "fiub"
    if not is_array and counts <= {1, 3}:
        made = propose_preparation(
            _looked_at(listed, values),
            size=given,
            color=None if color == "auto" else bool(color),
            sizes=sides,
            max_side=MOST_SIDE,
        )
        n = 3 if made.mode == "color" else 1
        return Intake(made.size, n, made.preprocessing, seen)
    n = max(counts)
    if n == 3 and (color is False or (color == "auto" and not _have_color(np.asarray(listed)))):
        n = 1
    steps = Preprocessing()
    if n == 1:
        polarity = propose_preparation(_looked_at(listed, values)).preprocessing.polarity
        steps = _LIGHT_INK if polarity == _LIGHT_INK.polarity else steps
    return Intake(given or _size(sides, least_side), n, steps, seen)


def sides_of(images: Sequence[Any]) -> np.ndarray:
    """Return height and width of each image (n, 2)."""
    return np.array([_shape_of(entry)[:2] for entry in images])


def _looked_at(images: Sequence[Any], values: tuple[float, float]) -> list[Any]:
    """Return some images: paths as they are, others as bytes."""
    drawn = np.linspace(0, len(images) - 1, min(_LOOKED_AT, len(images))).astype(int)
    looked_at: list[Any] = []
    for entry in (images[int(number)] for number in drawn):
        if isinstance(entry, (str, os.PathLike)):
            looked_at.append(entry)
        elif not is_picture(entry):
            looked_at.append(to_bytes(np.asarray(entry), values))
        elif entry.has_transparency_data:
            looked_at.append(np.asarray(entry.convert("RGBA")))
        else:
            mode = "gray" if _shape_of(entry)[2] == 1 else "color"
            looked_at.append(decode_picture(entry, mode))
    return looked_at


def _shape_of(entry: Any) -> tuple[int, int, int]:
    """Return height, width and values a pixel of an image or of a picture file."""
    if isinstance(entry, (str, os.PathLike)):
        height, width, mode, _ = picture_header(entry)
        return height, width, _values_of_mode(mode)
    if is_picture(entry):
        width, height = upright_picture(entry).size
        n = 3 if "transparency" in entry.info else _values_of_mode(entry.mode)
        return height, width, n
    image = np.asarray(entry)
    if image.ndim not in (2, 3) or image.dtype.kind not in "fiub" or 0 in image.shape:
        given = f"{image.dtype} of shape {image.shape}"
        raise InputError("images", given, "numbers of shape (H, W) or (H, W, C), or a path")
    check_channels_last(image.shape)
    return image.shape[0], image.shape[1], 1 if image.ndim == 2 else image.shape[2]


def _values_of_mode(mode: str) -> int:
    return 1 if mode in ("1", "L") or mode.startswith(("I", "F")) else 3


def _have_color(images: np.ndarray) -> bool:
    """Return whether one of some images has a pixel that is not gray."""
    some = images[:: max(1, len(images) // 500)].astype(np.float64)
    chroma = some.max(axis=3) - some.min(axis=3)
    return bool((chroma > 0.02 * max(1e-9, float(some.max()))).any())


def _size(sides: np.ndarray, least_side: int) -> tuple[int, int]:
    height, width = (float(v) for v in np.median(sides, axis=0))
    longer = max(height, width)
    factor = min(max(longer, least_side), MOST_SIDE) / longer
    return max(1, round(height * factor)), max(1, round(width * factor))


def _given_size(size: Any) -> tuple[int, int]:
    given = (size, size) if np.ndim(size) == 0 else tuple(size)
    whole = all(hasattr(v, "__index__") and not isinstance(v, bool) for v in given)
    if len(given) != 2 or not whole or not all(1 <= v <= _LARGEST for v in given):
        raise InputError("size", size, f"a side, or height and width, from 1 to {_LARGEST}")
    return int(given[0]), int(given[1])


def _values(arrays: Sequence[np.ndarray]) -> tuple[float, float]:
    """Return the range of values: that of bytes, of fractions, or what there is."""
    if all(array.dtype == np.uint8 for array in arrays):
        return 0.0, 255.0
    if all(array.dtype == bool for array in arrays):
        return 0.0, 1.0
    low = min(float(array.min()) for array in arrays)
    high = max(float(array.max()) for array in arrays)
    if not (np.isfinite(low) and np.isfinite(high)):
        raise InputError("images", "NaN or infinity", "finite values")
    return range_around(low, high)


def _kind(arrays: Sequence[np.ndarray]) -> str:
    if all(array.dtype == np.uint8 for array in arrays):
        return "bytes"
    return "whole" if all(array.dtype.kind in "iu" for array in arrays) else "other"
