"""Compiled passes over images (n, H, W, C) that become augmented copies."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def _source(position: int, side: int, reflected: bool) -> int:
    """Return which pixel of a side a position shows, −1 for none."""
    if 0 <= position < side:
        return position
    if not reflected:
        return -1
    if side == 1:
        return 0
    position %= 2 * (side - 1)
    return min(position, 2 * (side - 1) - position)


@njit(cache=True, nogil=True)
def move(
    images: np.ndarray,
    mirrored: np.ndarray,
    down: np.ndarray,
    right: np.ndarray,
    reflected: bool,
    out: np.ndarray,
) -> None:
    """Write images into ``out``, mirrored where said, then shifted by whole pixels."""
    # images, out: (n, H, W, C)
    # mirrored: (≥ n,), bool
    # down, right: (≥ n,), int64
    n, H, W, C = images.shape
    columns = np.empty(W, np.int64)
    for i in range(n):
        for c in range(W):
            columns[c] = _source(c - right[i], W, reflected)
            if mirrored[i] and columns[c] >= 0:
                columns[c] = W - 1 - columns[c]
        for r in range(H):
            row = _source(r - down[i], H, reflected)
            if row < 0:
                out[i, r] = 0
                continue
            for c in range(W):
                column = columns[c]
                for k in range(C):
                    out[i, r, c, k] = images[i, row, column, k] if column >= 0 else 0


@njit(cache=True, nogil=True)
def reflect(coordinates: np.ndarray, last: np.float32) -> None:
    """Fold coordinates into [0, last] at both ends, in place."""
    # coordinates: (n, m), float32
    period = np.float32(2) * last
    for i in range(coordinates.shape[0]):
        for j in range(coordinates.shape[1]):
            t = abs(coordinates[i, j])
            if t > last:
                t = t - period * np.floor(t / period) if last > 0 else np.float32(0)
                t = min(t, period - t)
            coordinates[i, j] = t


@njit(cache=True, nogil=True)
def recolor(images: np.ndarray, factors: np.ndarray) -> None:
    """Change brightness, contrast and saturation of images in place."""
    # A value v of a pixel of gray g becomes b (c (s v + (1 − s) g) + (1 − c) m), m the mean of
    # all g, cut at black and white; bytes are rounded once.
    # images: (n, H, W, C), uint8 or float
    # factors: (≥ n, 3), float32
    n, H, W, C = images.shape
    white = np.float32(255) if images.itemsize == 1 else np.float32(1)
    half = np.float32(0.5) if images.itemsize == 1 else np.float32(0)
    shares = np.full(C, 1 / C, np.float32)
    if C == 3:
        shares[:] = np.array([0.299, 0.587, 0.114], np.float32)
    gray = np.empty((H, W), np.float32)
    for i in range(n):
        brightness, contrast, saturation = factors[i]
        total = 0.0
        for r in range(H):
            for c in range(W):
                g = np.float32(0)
                for k in range(C):
                    g += shares[k] * np.float32(images[i, r, c, k])
                gray[r, c] = g
                total += g
        of_value = brightness * contrast * saturation
        of_gray = brightness * contrast * (np.float32(1) - saturation)
        offset = brightness * (np.float32(1) - contrast) * np.float32(total / (H * W))
        for r in range(H):
            for c in range(W):
                rest = of_gray * gray[r, c] + offset
                for k in range(C):
                    v = of_value * np.float32(images[i, r, c, k]) + rest
                    images[i, r, c, k] = min(max(v, np.float32(0)), white) + half


@njit(cache=True, nogil=True)
def hide(images: np.ndarray, rows: np.ndarray, columns: np.ndarray, side: int) -> None:
    """Give a square of each image, cut at its edges, the image's mean color, in place."""
    # images: (n, H, W, C), uint8 or float
    # rows, columns: (≥ n,), int64
    n, H, W, C = images.shape
    half = 0.5 if images.itemsize == 1 else 0.0
    for i in range(n):
        for k in range(C):
            total = 0.0
            for r in range(H):
                for c in range(W):
                    total += images[i, r, c, k]
            value = total / (H * W)
            for r in range(max(rows[i], 0), min(rows[i] + side, H)):
                for c in range(max(columns[i], 0), min(columns[i] + side, W)):
                    images[i, r, c, k] = value + half
