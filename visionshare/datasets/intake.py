"""Images of any kind as the rasters that a classifier sees."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from visionshare.datasets.canvas import to_gray
from visionshare.datasets.decoding import decode_picture
from visionshare.datasets.folders import read_image
from visionshare.datasets.image_kinds import (
    check_channels_last,
    is_picture,
    listed_images,
    numeric_arrays,
    to_bytes,
)
from visionshare.datasets.preprocessing import Preprocessing
from visionshare.datasets.training_values import BYTE, OVERSHOT, TrainingValues
from visionshare.errors import InputError

# What changes nothing, but says what is ink: it can be drawn, and alpha is laid on dark.
UNCHANGED = (Preprocessing(), Preprocessing("light_on_dark"))


# Of 16 bits it makes bytes: 65535 becomes 255.
_DEEP = 257


class Rasters(np.ndarray):
    """Images that are prepared already: a classifier takes them as they are."""

    # Above that of plain arrays, so that stacks are marked too.
    __array_priority__ = 1.0


def as_rasters(images: Any) -> Rasters:
    """Return prepared images, marked as such; nothing is copied."""
    return np.asarray(images).view(Rasters)


@dataclass(frozen=True)
class Intake:
    """How images of any kind become one array of rasters."""

    size: tuple[int, int]
    n_channels: int
    preprocessing: Preprocessing = field(default_factory=Preprocessing)
    values: TrainingValues = field(default_factory=TrainingValues)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of a raster."""
        return self.size if self.n_channels == 1 else (*self.size, self.n_channels)

    @property
    def mode(self) -> str:
        """Whether pictures are read as "gray" or in "color"."""
        return "color" if self.n_channels == 3 else "gray"

    def apply(self, images: Any) -> np.ndarray:
        """Return images (n, H, W) or (n, H, W, C): bytes, or numbers where features see those."""
        listed = listed_images(images)
        fitting = self._fitting(listed)
        # 1) what is prepared, or needs no preparation, stays as it is
        if fitting is not None and fitting.dtype == np.uint8 and self.keeps_bytes:
            return fitting
        # 2) are the values in the range of the training images?
        arrays = numeric_arrays(listed)
        self.values.check(arrays)
        if fitting is None:
            self._check_channels(listed)
        if self.values.arrays == "numbers" and len(arrays) > 0:
            numbers = self._numbers(listed) if fitting is None else fitting
            if numbers is not None:
                return numbers
        # 3) all others are scaled to bytes and prepared one by one
        scale = self._scale(arrays)
        out = np.empty((len(listed), *self.shape), np.uint8)
        for i, entry in enumerate(listed):
            out[i] = self._one(entry, scale)
        low, high = self.values.range
        if self.values.arrays == "numbers" and self.values.kind != "bytes" and high > OVERSHOT:
            return low + out.astype(np.float32) * np.float32((high - low) / 255)
        return out

    @cached_property
    def keeps_bytes(self) -> bool:
        """Whether bytes of the right shape are rasters."""
        if self.values.arrays == "numbers":
            return self.values.kind == "bytes"
        unprepared = self.values.arrays == "rasters" or self.preprocessing in UNCHANGED
        return unprepared and self.values.range == BYTE

    def _fitting(self, listed: Sequence[Any]) -> np.ndarray | None:
        """Return an array of the shape of rasters; None if these images are none."""
        if not isinstance(listed, np.ndarray) or listed.ndim < 3:
            return None
        one = listed[..., 0] if listed.shape[3:] == (1,) and self.n_channels == 1 else listed
        return one if one.shape[1:] == self.shape else None

    def _numbers(self, listed: Sequence[Any]) -> np.ndarray | None:
        """Return entries of the shape of rasters as one array of their own numbers."""
        if any(isinstance(entry, (str, os.PathLike)) or is_picture(entry) for entry in listed):
            return None
        entries = [np.asarray(entry) for entry in listed]
        if all(entry.shape == self.shape for entry in entries):
            return np.stack(entries)
        if all(entry.dtype in (np.uint8, np.uint16, bool) for entry in entries):
            return None
        given = next(entry.shape for entry in entries if entry.shape != self.shape)
        accepted = f"images of shape {self.shape}, or bytes of any size: only bytes are resized"
        raise InputError("images", given, accepted)

    def _check_channels(self, listed: Sequence[Any]) -> None:
        """Refuse images with channels first; warn of three gray ones that may be one of colors."""
        if isinstance(listed, np.ndarray) and listed.dtype.kind in "fiub":
            if listed.ndim == 4:
                check_channels_last(listed.shape, self.n_channels)
            elif len(listed) == 3 == self.n_channels and min(listed.shape[1:]) > 4:
                warnings.warn(
                    f"an array of shape {listed.shape} is taken for 3 gray images; if it is one "
                    "image with channels first, pass images.transpose(1, 2, 0)[None]",
                    UserWarning,
                    stacklevel=2,
                )
            return
        for entry in listed:
            if not isinstance(entry, (str, os.PathLike)) and not is_picture(entry):
                check_channels_last(np.shape(entry), self.n_channels)

    def _scale(self, arrays: Sequence[np.ndarray]) -> float:
        """Return by what values are divided: 16 bits, or fractions, where training had bytes."""
        if self.values.range != BYTE or self.values.kind != "bytes":
            return 1
        filled = [array for array in arrays if array.size]
        if any(array.max() > 255 for array in filled if array.dtype == np.uint16):
            return _DEEP
        floats = [array.max() for array in filled if array.dtype.kind == "f"]
        are_fractions = bool(floats) and max(floats) <= 1
        return 1 / 255 if are_fractions and self.values.arrays == "rasters" else 1

    def _one(self, entry: Any, scale: float) -> np.ndarray:
        """Return the raster of one image of any kind."""
        steps = self.preprocessing
        if isinstance(entry, (str, os.PathLike)):
            return read_image(entry, self.size, self.mode, steps)
        if is_picture(entry) and self.n_channels in (1, 3):
            return steps.apply(decode_picture(entry, self.mode, steps), self.size)
        # 1) bytes
        image = np.asarray(entry)
        if scale == _DEEP and image.dtype == np.uint16:
            image = image // _DEEP
        elif scale < 1 and image.dtype.kind == "f":
            image = image / scale
        picture = to_bytes(image, self.values.becomes_bytes)
        if picture.shape == self.shape and self.values.arrays == "rasters":
            return picture
        # 2) the channels of training
        if picture.shape[2:] == (3,) and self.n_channels == 1:
            picture = to_gray(picture)
        elif picture.ndim == 2 and self.n_channels == 3:
            picture = np.repeat(picture[..., None], 3, axis=2)
        n_channels = 1 if picture.ndim == 2 else picture.shape[2]
        if n_channels != self.n_channels:
            accepted = f"images of {self.n_channels} values a pixel, as in training"
            raise InputError("images", picture.shape, accepted)
        # 3) prepared; channels that are no colors one by one
        if n_channels in (1, 3):
            return steps.apply(np.ascontiguousarray(picture), self.size)
        channels = (np.ascontiguousarray(picture[..., c]) for c in range(n_channels))
        return np.stack([steps.apply(channel, self.size) for channel in channels], axis=2)
