"""Arrays of pictures as bytes: one range of values, that of what trains, for all of a file."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import numpy as np

from visionshare.datasets.decoding import free_range, known_range
from visionshare.datasets.opening import OpenedPicture
from visionshare.datasets.preprocessing import Preprocessing
from visionshare.datasets.readers.labels import TRAIN
from visionshare.datasets.readers.picture_set import Content, Data, PictureSet
from visionshare.errors import DataError

_FRACTIONS = (0.0, 1.0)
_BYTE = (0.0, 255.0)
_DEEP = (0.0, 65535.0)
#: Ranges that mean the same in every file; other ranges follow from the values in a file.
KNOWN_RANGES = (_FRACTIONS, _BYTE, _DEEP)
# Values that are looked at or scaled together.
_BLOCK = 1 << 22


def are_pictures(images: np.ndarray) -> bool:
    """Return whether an array holds pictures: gray, RGB, or RGB with transparency."""
    return images.ndim == 3 or (images.ndim == 4 and images.shape[3] in (1, 3, 4))


def value_range(name: str, arrays: Sequence[np.ndarray]) -> tuple[float, float]:
    """Return the values that become 0 and 255: of bytes, of fractions, or what there is."""
    # Uint16 goes to 65535 as soon as a value is above 255, as in files of 16 bits.
    filled = [array for array in arrays if array.size]
    if not filled or filled[0].dtype == np.uint8:
        return _BYTE
    limits = [_limits(array) for array in filled]
    low = min(low for low, _ in limits)
    high = max(high for _, high in limits)
    if not (np.isfinite(low) and np.isfinite(high)):
        raise DataError(f"{name}: images with values that are NaN or infinite")
    if filled[0].dtype == np.uint16 and high > 255:
        return _DEEP
    return range_around(low, high)


def range_around(low: float, high: float) -> tuple[float, float]:
    """Return the range of images whose values go from one number to another."""
    if low >= 0 and high <= 1:
        return _FRACTIONS
    if low >= 0 and 128 <= high <= 255:
        return _BYTE
    return min(0.0, low), high if high > low else low + 1.0


def as_bytes(name: str, images: np.ndarray, values: tuple[float, float]) -> np.ndarray:
    """Return images as bytes, by a range of :func:`value_range`; what is beyond it is cut off."""
    if images.dtype == np.uint8 or images.size == 0:
        return images.astype(np.uint8, copy=False)
    low, high = values
    least, most = _limits(images)
    if not (np.isfinite(least) and np.isfinite(most)):
        raise DataError(f"{name}: images with values that are NaN or infinite")
    if (high <= 1 and most > 2) or (high > 2 and low >= 0 and 0 < most <= 1):
        raise DataError(
            f"{name}: values from {least:g} to {most:g}, but those of training from {low:g} "
            f"to {high:g}; all parts need one range"
        )
    out = np.empty(images.shape, np.uint8)
    step = max(1, _BLOCK // images[0].size)
    for i in range(0, len(images), step):
        if values == _DEEP and images.dtype == np.uint16:
            out[i : i + step] = images[i : i + step] // 257
            continue
        scaled = (images[i : i + step].astype(np.float64) - low) * (255 / (high - low))
        out[i : i + step] = np.rint(np.clip(scaled, 0, 255))
    return out


class SetRange:
    """One range of values for all files of floats, or of integers of 32 bits, in a set."""

    def __init__(self, contents: Callable[[], Iterable[Content]]) -> None:
        self.values: tuple[float, float] | None = None
        self._contents = contents
        self._lock = threading.Lock()

    @classmethod
    def of_files(cls, paths: Iterable[str | os.PathLike[str]]) -> SetRange:
        """Return the range of files."""
        return cls(lambda: (Content(os.fspath(path), os.fspath(path)) for path in paths))

    @classmethod
    def of(cls, pictures: PictureSet) -> SetRange:
        """Return the range of a set of labeled pictures."""
        chosen = None if pictures.roles is None else pictures.roles == TRAIN
        return cls(lambda: (content for _, some in pictures.batches(chosen) for content in some))

    def steps_for(self, picture: OpenedPicture, steps: Preprocessing) -> Preprocessing:
        """Return the steps of a picture, with the range where it needs one and has none."""
        if steps.values is not None or not picture.has_free_range:
            return steps
        with self._lock:
            if self.values is None:
                found = widest(map(limits_of, (data for _, data in self._contents())))
                self.values = (0.0, 1.0) if found is None else known_range(*found)
        return replace(steps, values=self.values)


def limits_of(data: Data) -> tuple[float, float] | None:
    """Return the lowest and highest value of a picture whose range is its own, if it is one."""
    if isinstance(data, np.ndarray):
        return None
    try:
        return free_range(data)
    except DataError:
        # Reading it says why.
        return None


def with_range(steps: Preprocessing, limits: tuple[float, float] | None) -> Preprocessing:
    """Return steps that scale by the limits of a set, where it has some and they name none."""
    if limits is None or steps.values is not None:
        return steps
    return replace(steps, values=known_range(*limits))


def widest(limits: Iterable[tuple[float, float] | None]) -> tuple[float, float] | None:
    """Return the range around all that are given."""
    found = [some for some in limits if some is not None]
    return (min(low for low, _ in found), max(high for _, high in found)) if found else None


def _limits(array: np.ndarray) -> tuple[float, float]:
    return float(array.min()), float(array.max())
