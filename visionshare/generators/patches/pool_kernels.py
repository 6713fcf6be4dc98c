"""The kernel of a whole pool: templates side by side, positions without empty patches alone.

All templates of a pool have the same masks, so the code that pools images side by side also pools
templates side by side. A patch of zeros responds 0, which no maximum needs.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from visionshare.generators.emitter import uncounted
from visionshare.generators.layers.templates.intrinsics import respond_in_vectors
from visionshare.generators.patches.kernels import (
    Masks,
    Window,
    at_once,
    copy_strips,
    margin,
    pool,
    scratch_of,
    to_half,
    unpacked,
)


@njit(cache=True, nogil=True)
def _ranges(pixels: np.ndarray, channels: int, q: int, ranges: np.ndarray) -> None:
    """Write where the first patch of each row of positions is that is not all zero, and the end."""
    pixels = uncounted(pixels)
    ranges = uncounted(ranges)
    rows = ranges.shape[0]
    height = rows + q - 1
    width = pixels.shape[0] // (height * channels)
    ranges[:, 0] = width
    ranges[:, 1] = 0
    for v in range(height):
        first = width
        last = -1
        for c in range(channels):
            line = pixels[(c * height + v) * width : (c * height + v + 1) * width]
            for u in range(width):
                if line[u] != 0:
                    first = min(first, u)
                    last = max(last, u)
        for y in range(max(0, v - q + 1), min(rows, v + 1)):
            ranges[y, 0] = min(ranges[y, 0], max(0, first - q + 1))
            ranges[y, 1] = max(ranges[y, 1], min(width - q, last) + 1)


@njit(cache=True, nogil=True)
def _respond(
    pixels: np.ndarray, ranges: np.ndarray, block: np.ndarray, starts: np.ndarray, out: np.ndarray
) -> None:
    """Write the responses of a block (C, q, q, lanes) at the positions of one image."""
    channels, q, _, lanes = block.shape
    pixels = uncounted(pixels)
    flat = uncounted(block.reshape(-1))
    ranges = uncounted(ranges)
    starts = uncounted(starts)
    out = uncounted(out)
    rows = ranges.shape[0]
    plane = pixels.shape[0] // channels
    width = plane // (rows + q - 1)
    cols = width - q + 1
    for y in range(rows):
        x = ranges[y, 0]
        while x < ranges[y, 1]:
            n = at_once(ranges[y, 1] - x)
            to = (y * cols + x) * lanes
            out[to : to + n * lanes] = np.float32(0)
            for c in range(channels):
                respond_in_vectors(
                    pixels[c * plane :], starts, y * width + x, n, width, q, q,
                    flat[c * q * q * lanes :], 0, q * lanes, lanes, lanes,
                    out, to, lanes, out, to, lanes,
                )  # fmt: skip
            x += n


@njit(cache=True, nogil=True)
def pool_columns(
    images: np.ndarray,
    packed: np.ndarray,
    blocks: np.ndarray,
    row_masks: np.ndarray,
    col_masks: np.ndarray,
    row_of: np.ndarray,
    out: np.ndarray,
    first: int,
) -> None:
    """Write columns of blocks of templates for a few images."""
    # images: (n, H, W, C), uint8 or float32
    # packed: the tables of one template with all masks
    # blocks: (n_blocks, C, q, q, lanes), float32
    # row_masks, col_masks: (n_masks, rows) and (n_masks, cols), float32
    # row_of: the column of each feature, (n_blocks, lanes, n_features), int64; −1 for none
    # out: (n_columns, all images), float32, or uint16 for float16 bits
    # first: the column of out for the first image
    strips, _, _, features = unpacked(packed)
    n_blocks, channels, q, _, lanes = blocks.shape
    masks = Masks(row_masks, col_masks)
    rows = row_masks.shape[1]
    cols = col_masks.shape[1]
    height = rows + q - 1
    width = cols + q - 1
    margins = margin(images.shape[1], rows, q), margin(images.shape[2], cols, q)
    ranges = np.empty((rows, 2), np.int64)
    starts = np.arange(height * width)
    responses = np.empty(rows * cols * lanes, np.float32)
    scratch = scratch_of(cols, lanes, False)
    nowhere = np.empty((0, 0), np.int32)
    n = images.shape[0]
    tile = np.empty((n, n_blocks, features.shape[0], lanes), np.float32)
    for i in range(n):
        pixels = np.zeros(height * width * channels, np.float32)
        copy_strips(images[i : i + 1], strips, margins, height, 1, pixels)
        _ranges(pixels, channels, q, ranges)
        responses[:] = np.float32(0)
        for b in range(n_blocks):
            _respond(pixels, ranges, blocks[b], starts, responses)
            window = Window(0, 0, cols * lanes)
            pool(responses, window, features, masks, scratch, tile[i, b], nowhere)
    _write_columns(tile, row_of, out[:, first : first + n])


@njit(cache=True, nogil=True)
def _write_columns(tile: np.ndarray, row_of: np.ndarray, out: np.ndarray) -> None:
    """Turn the features of a tile (images, blocks, features, lanes) into columns of ``out``."""
    tile = uncounted(tile)
    out = uncounted(out)
    n, n_blocks, n_features, lanes = tile.shape
    turned = np.empty((lanes, n), np.float32)
    shifted = np.empty(n, np.float32)
    for b in range(n_blocks):
        for f in range(n_features):
            for i in range(n):
                for t in range(lanes):
                    turned[t, i] = tile[i, b, f, t]
            for t in range(lanes):
                r = row_of[b, t, f]
                if r >= 0 and out.itemsize == 2:
                    to_half(turned[t], shifted, out[r])
                elif r >= 0:
                    out[r] = turned[t]
