"""Channels of images: colors, gradients and their orientations, normalized and pooled.

Each image is computed alone, so that the bits of its maps depend on nothing else. Every step goes
over whole rows of floats. Bytes are taken as they are, and brought between 0 and 1 with the last
multiplication: until then colors and derivatives are exact. Rows are copied in loops: assignments
of slices check shapes, and compile for seconds.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from visionshare.generators.layers.channels.formulas import Formulas


class CellMeans(NamedTuple):
    """How maps are normalized and pooled."""

    #: Side of the windows; 0 stands for no normalization.
    window: int
    epsilon: np.float32
    #: Side of a cell, and what its sum is multiplied with.
    pool: int
    factor: np.float32


@njit(cache=True, nogil=True)
def _planes(image: np.ndarray) -> np.ndarray:
    """Return the image in planes (C, H + 2, W + 2), float32: its border is repeated once."""
    H, W, C = image.shape
    out = np.empty((C, H + 2, W + 2), np.float32)
    for c in range(C):
        for y in range(H):
            line = out[c, y + 1]
            pixels = image[y]
            inner = line[1 : W + 1]
            for x in range(W):
                inner[x] = np.float32(pixels[x, c])
            line[0] = inner[0]
            line[W + 1] = inner[W - 1]
        for x in range(W + 2):
            out[c, 0, x] = out[c, 1, x]
            out[c, H + 1, x] = out[c, H, x]
    return out


@njit(cache=True, nogil=True)
def _color(planes: np.ndarray, weights: np.ndarray, out: np.ndarray) -> None:
    """Write sums of the planes times weights to ``out`` (H, W)."""
    H, W = out.shape
    for y in range(H):
        line = out[y]
        for c in range(len(weights)):
            weight = weights[c]
            values = planes[c, y + 1, 1 : W + 1]
            if c == 0:
                for x in range(W):
                    line[x] = weight * values[x]
            else:
                for x in range(W):
                    line[x] += weight * values[x]


@njit(cache=True, nogil=True)
def _gradients(planes: np.ndarray, along: np.ndarray, down: np.ndarray, size: np.ndarray) -> None:
    """Write derivatives along x and y, and the magnitude, of the plane with the largest one."""
    H, W = size.shape
    half = np.float32(0.5)
    for y in range(H):
        dx = along[y]
        dy = down[y]
        best = size[y]
        for c in range(len(planes)):
            above = planes[c, y, 1 : W + 1]
            below = planes[c, y + 2, 1 : W + 1]
            left = planes[c, y + 1, :W]
            right = planes[c, y + 1, 2:]
            for x in range(W):
                u = (right[x] - left[x]) * half
                v = (below[x] - above[x]) * half
                square = u * u + v * v
                larger = c == 0 or square > best[x]
                dx[x] = u if larger else dx[x]
                dy[x] = v if larger else dy[x]
                best[x] = square if larger else best[x]
        for x in range(W):
            best[x] = np.sqrt(best[x])


@njit(cache=True, nogil=True)
def _orientation(along: np.ndarray, down: np.ndarray, table: np.ndarray, out: np.ndarray) -> None:
    """Write how much of each gradient one orientation has, see ``orientation_tables``."""
    ax = table[0, 0]
    ay = table[0, 1]
    bx = table[1, 0]
    by = table[1, 1]
    zero = np.float32(0)
    for y in range(len(out)):
        dx = along[y]
        dy = down[y]
        line = out[y]
        for x in range(out.shape[1]):
            a = ax * dx[x] + ay * dy[x]
            b = bx * dx[x] + by * dy[x]
            low = a if a < b else b
            high = b if a < b else a
            value = low if low > -high else -high
            line[x] = value if value > zero else zero


@njit(cache=True, nogil=True)
def _means(plane: np.ndarray, window: int, columns: np.ndarray, out: np.ndarray) -> None:
    """Write means over windows, as far as they lie in the image, to ``out`` (H, W)."""
    # ``columns`` has W + window floats.
    H, W = plane.shape
    reach = window // 2
    for x in range(len(columns)):
        columns[x] = np.float32(0)
    for y in range(H):
        first = max(0, y - reach)
        last = min(H, y + reach + 1)
        sums = columns[reach : reach + W]
        line = out[y]
        top = plane[first]
        for x in range(W):
            sums[x] = top[x]
        for row in range(first + 1, last):
            values = plane[row]
            for x in range(W):
                sums[x] += values[x]
        for x in range(W):
            line[x] = columns[x]
        for dx in range(1, window):
            values = columns[dx : dx + W]
            for x in range(W):
                line[x] += values[x]
        for x in range(W):
            n = (last - first) * (min(W, x + reach + 1) - max(0, x - reach))
            line[x] /= np.float32(n)


@njit(cache=True, nogil=True)
def _contrast(
    plane: np.ndarray,
    window: int,
    epsilon: np.float32,
    columns: np.ndarray,
    means: np.ndarray,
    squares: np.ndarray,
) -> None:
    """Subtract the local mean from a plane, and divide what is left by its local deviation."""
    H, W = plane.shape
    _means(plane, window, columns, means)
    for y in range(H):
        values = plane[y]
        mean = means[y]
        square = squares[y]
        for x in range(W):
            values[x] -= mean[x]
            square[x] = values[x] * values[x]
    _means(squares, window, columns, means)
    for y in range(H):
        values = plane[y]
        mean = means[y]
        for x in range(W):
            values[x] /= np.sqrt(mean[x]) + epsilon


@njit(cache=True, nogil=True)
def _divided(plane: np.ndarray, by: np.ndarray, epsilon: np.float32) -> None:
    """Divide a plane by another one, plus epsilon."""
    for y in range(len(plane)):
        values = plane[y]
        size = by[y]
        for x in range(plane.shape[1]):
            values[x] /= size[x] + epsilon


@njit(cache=True, nogil=True)
def _pooled(plane: np.ndarray, cells: CellMeans, line: np.ndarray, out: np.ndarray) -> None:
    """Write sums over cells times a factor to ``out`` (rows, columns)."""
    pool = cells.pool
    for y in range(len(out)):
        top = plane[y * pool]
        for x in range(len(line)):
            line[x] = top[x]
        for dy in range(1, pool):
            values = plane[y * pool + dy]
            for x in range(len(line)):
                line[x] += values[x]
        for x in range(out.shape[1]):
            total = line[x * pool]
            for dx in range(1, pool):
                total += line[x * pool + dx]
            out[y, x] = total * cells.factor


@njit(cache=True, nogil=True)
def _of_colors(planes: np.ndarray, formulas: Formulas, cells: CellMeans, out: np.ndarray) -> None:
    H = planes.shape[1] - 2
    W = planes.shape[2] - 2
    plane = np.empty((H, W), np.float32)
    line = np.empty(W, np.float32)
    means = np.empty((H, W), np.float32)
    squares = np.empty((H, W), np.float32)
    columns = np.empty(W + cells.window, np.float32)
    for k in range(len(formulas.colors)):
        _color(planes, formulas.colors[k], plane)
        if cells.window:
            _contrast(plane, cells.window, cells.epsilon, columns, means, squares)
        _pooled(plane, cells, line, out[..., formulas.color_maps[k]])


@njit(cache=True, nogil=True)
def _of_gradients(
    planes: np.ndarray, formulas: Formulas, cells: CellMeans, out: np.ndarray
) -> None:
    H = planes.shape[1] - 2
    W = planes.shape[2] - 2
    along = np.empty((H, W), np.float32)
    down = np.empty((H, W), np.float32)
    size = np.empty((H, W), np.float32)
    means = np.empty((H, W), np.float32)
    plane = np.empty((H, W), np.float32)
    line = np.empty(W, np.float32)
    _gradients(planes, along, down, size)
    if cells.window:
        _means(size, cells.window, np.empty(W + cells.window, np.float32), means)
    for k in range(len(formulas.orientations)):
        _orientation(along, down, formulas.orientations[k], plane)
        if cells.window:
            _divided(plane, means, cells.epsilon)
        _pooled(plane, cells, line, out[..., formulas.orientation_map + k])
    if formulas.magnitude_map >= 0:
        if cells.window:
            _divided(size, means, cells.epsilon)
        _pooled(size, cells, line, out[..., formulas.magnitude_map])


@njit(cache=True, nogil=True)
def channels_of(image: np.ndarray, formulas: Formulas, cells: CellMeans, out: np.ndarray) -> None:
    """Write the channels of an image (H, W, C), float32, to ``out`` (h, w, n_maps)."""
    planes = _planes(image)
    if len(formulas.colors):
        _of_colors(planes, formulas, cells, out)
    if formulas.magnitude_map >= 0 or len(formulas.orientations):
        _of_gradients(planes, formulas, cells, out)
