"""Images as rows or lines of numbers, and the scaling of each number."""

from __future__ import annotations

import numpy as np

from visionshare.generators.checks import check_choice

# Inputs whose scaling is fitted together: of so many bytes, and so many at least.
_SCALING_BYTES = 32 << 20
_LEAST_INPUTS = 16


def raster_shape(shape: tuple[int, ...]) -> tuple[int, int, int]:
    """Return the rows, columns and channels of an image; a vector is one row."""
    if len(shape) == 1:
        return 1, int(shape[0]), 1
    if len(shape) == 2:
        return int(shape[0]), int(shape[1]), 1
    return int(shape[0]), int(shape[1]), int(shape[2])


def flattened(images: np.ndarray) -> np.ndarray:
    """Return checked images as rows (n, p) of their own dtype."""
    return images.reshape(len(images), int(np.prod(images.shape[1:])))


def as_lines(images: np.ndarray) -> np.ndarray:
    """Return images or templates (n, H, W, C) as (n, H, W · C)."""
    # A view, where the values lie in memory in this order.
    n, rows, cols, channels = images.shape
    return np.ascontiguousarray(images).reshape(n, rows, cols * channels)


def rows_of(images: np.ndarray) -> np.ndarray:
    """Return checked images as rows (n, p), float64; uint8 pixels between 0 and 1."""
    rows = flattened(images).astype(np.float64)
    return rows / 255 if images.dtype == np.uint8 else rows


def pixel_position(index: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the row, column and channel of a value of a flattened image."""
    return tuple(int(i) for i in np.unravel_index(int(index), shape))


def check_scaling(scaling: str) -> None:
    """Raise an InputError unless a scaling is known."""
    check_choice("scaling", scaling, ("unit_variance", "none"))


def fit_scaling(X: np.ndarray, scaling: str) -> tuple[np.ndarray, np.ndarray]:
    """Return offset and scale (p,), float32: a scaled input is (x − offset) · scale."""
    p = X.shape[1]
    if scaling == "none":
        return np.zeros(p, np.float32), np.ones(p, np.float32)
    offset = np.empty(p, np.float32)
    scale = np.empty(p, np.float32)
    # Some inputs at a time, as numbers of float64; a sum over the rows is that of an input alone.
    n_parts = -(-p // max(_LEAST_INPUTS, _SCALING_BYTES // (8 * max(1, len(X)))))
    for part in np.array_split(np.arange(p), n_parts):
        inputs = slice(int(part[0]), int(part[-1]) + 1)
        values = rows_of(X[:, inputs])
        deviation = values.std(axis=0)
        # An input that is constant in training says nothing, whatever it is later.
        flat = deviation <= 1e-7 * np.maximum(1, np.abs(values).max(axis=0))
        scale[inputs] = np.where(flat, 0, 1 / np.where(flat, 1, deviation))
        offset[inputs] = values.mean(axis=0)
    return offset, scale
