"""The kernel of a whole pool of patch features: convolution as blocked products, maxima in cache.

Templates run in blocks of 16, the innermost axis of every array here: a block's product with an
image's patches is one small matrix product, its responses stay in cache, and the maxima over
masked positions are passes over contiguous floats. Patches of zeros are skipped: their responses
are 0, which no maximum needs. A column's bits depend neither on the batch of images nor on the
templates evaluated beside it nor on the number of threads.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from visionshare.generators.borrowed import borrowed
from visionshare.generators.patches.record_kernels import margin, pixel_unit
from visionshare.generators.patches.tables import Masks

BLOCK = 16
# Images whose features are turned into columns together: 32 float16 fill a cache line.
TILE_IMAGES = 32
# Rows of positions that are pooled in one pass.
ROWS = 4


@njit(cache=True, nogil=True)
def _ranges(image: np.ndarray, pad_y: int, pad_x: int, q: int, ranges: np.ndarray) -> None:
    """Write, for each row of positions, where patches are not all zero."""
    # A row of ``ranges`` (rows, 3) is the first position, the one after the last, and the number
    # of positions in the rows before. Rows that are pooled together share their range. A patch of
    # zeros has the response 0, which no maximum needs.
    height, width, channels = image.shape
    rows = ranges.shape[0]
    total = 0
    for y in range(0, rows, ROWS):
        first = width
        last = -1
        for v in range(max(0, y - pad_y), min(height, y - pad_y + q + ROWS - 1)):
            for u in range(width):
                for c in range(channels):
                    if image[v, u, c] != 0:
                        first = min(first, u)
                        last = max(last, u)
        lo = max(0, first + pad_x - q + 1)
        hi = max(lo, min(width + 2 * pad_x - q + 1, last + pad_x + 1))
        for row in range(y, min(rows, y + ROWS)):
            ranges[row, 0] = lo
            ranges[row, 1] = hi
            ranges[row, 2] = total
            total += hi - lo


@njit(cache=True, nogil=True)
def _pad(image: np.ndarray, unit: np.float32, pad_y: int, pad_x: int, canvas: np.ndarray) -> None:
    """Write an image (H, W, C) into the middle of a canvas whose margins are zero."""
    height, width, channels = image.shape
    for v in range(height):
        for u in range(width):
            for c in range(channels):
                canvas[v + pad_y, (u + pad_x) * channels + c] = np.float32(image[v, u, c]) * unit


@njit(cache=True, nogil=True)
def _patches(
    canvas: np.ndarray, q: int, channels: int, ranges: np.ndarray, out: np.ndarray
) -> None:
    """Write the patches of a canvas as rows of ``out``, where ``ranges`` says so."""
    row = 0
    length = q * channels
    for y in range(ranges.shape[0]):
        for x in range(ranges[y, 0], ranges[y, 1]):
            start = x * channels
            for dy in range(q):
                for i in range(length):
                    out[row, dy * length + i] = canvas[y + dy, start + i]
            row += 1


@njit(cache=True, nogil=True)
def raise_to(values: np.ndarray, weight: np.float32, peak: np.ndarray) -> None:
    """Raise ``peak`` to weighted values, element by element."""
    for i in range(peak.shape[0]):
        v = values[i] * weight
        u = peak[i]
        peak[i] = v if v > u else u


@njit(cache=True, nogil=True)
def raise_to_rows(
    values: np.ndarray,
    length: int,
    w0: np.float32,
    w1: np.float32,
    w2: np.float32,
    w3: np.float32,
    peak: np.ndarray,
) -> None:
    """Raise ``peak`` to four weighted rows ``length`` apart, reading and writing it once."""
    one = values[length:]
    two = values[2 * length :]
    three = values[3 * length :]
    for i in range(peak.shape[0]):
        a = values[i] * w0
        b = one[i] * w1
        c = two[i] * w2
        d = three[i] * w3
        a = a if a > b else b
        c = c if c > d else d
        a = a if a > c else c
        u = peak[i]
        peak[i] = a if a > u else u


@njit(cache=True, nogil=True)
def _profiles(
    patches: np.ndarray,
    block: np.ndarray,
    ranges: np.ndarray,
    masks: np.ndarray,
    spans: np.ndarray,
    responses: np.ndarray,
    profiles: np.ndarray,
) -> None:
    """Write the maximum over y of response × mask per row mask, x and template."""
    # The maximum over y of response × mask. Four rows of responses at a time are computed and
    # used by all masks while they are in the first cache.
    patches = borrowed(patches)
    responses = borrowed(responses)
    profiles = borrowed(profiles)
    masks = borrowed(masks)
    rows = ranges.shape[0]
    profiles[:] = np.float32(0)
    for y in range(0, rows, ROWS):
        left = ranges[y, 0]
        length = ranges[y, 1] - ranges[y, 0]
        count = min(ROWS, rows - y)
        if length == 0:
            continue
        offset = ranges[y, 2]
        positions = count * length
        np.dot(patches[offset : offset + positions], block, responses[:positions])
        flat = responses[:positions].reshape(-1)
        size = length * BLOCK
        for a in range(masks.shape[0]):
            if spans[a, 0] >= y + count or spans[a, 1] <= y:
                continue
            peak = profiles[a, left * BLOCK : left * BLOCK + size]
            if count == ROWS:
                # Rows of the four that the mask does not reach have the weight 0.
                w = masks[a, y : y + ROWS]
                raise_to_rows(flat, size, w[0], w[1], w[2], w[3], peak)
            else:
                for row in range(count):
                    raise_to(flat[row * size : (row + 1) * size], masks[a, y + row], peak)


@njit(cache=True, nogil=True)
def _peaks(profile: np.ndarray, mask: np.ndarray, lo: int, hi: int, out: np.ndarray) -> None:
    """Write the maximum over x in [lo, hi) of profile × mask, for the 16 templates of a block."""
    profile = borrowed(profile)
    for t in range(BLOCK):
        out[t] = np.float32(0)
    x = lo
    while x + 4 <= hi:
        # Four positions a pass: the maxima so far are read and written once for all.
        part = profile[x * BLOCK : (x + 4) * BLOCK]
        w0 = mask[x]
        w1 = mask[x + 1]
        w2 = mask[x + 2]
        w3 = mask[x + 3]
        for t in range(BLOCK):
            a = part[t] * w0
            b = part[BLOCK + t] * w1
            c = part[2 * BLOCK + t] * w2
            d = part[3 * BLOCK + t] * w3
            a = a if a > b else b
            c = c if c > d else d
            a = a if a > c else c
            u = out[t]
            out[t] = a if a > u else u
        x += 4
    for rest in range(x, hi):
        for t in range(BLOCK):
            v = profile[rest * BLOCK + t] * mask[rest]
            u = out[t]
            out[t] = v if v > u else u


@njit(cache=True, nogil=True)
def to_half(values: np.ndarray, shifted: np.ndarray, out: np.ndarray) -> None:
    """Write the float16 bits nearest to float32 values ≥ 0, ties to even."""
    # Adding one half lines the bits up so that the adder itself rounds a subnormal.
    for i in range(values.shape[0]):
        shifted[i] = values[i] + np.float32(0.5)
    bits = values.view(np.uint32)
    small = shifted.view(np.uint32)
    for i in range(out.shape[0]):
        u = bits[i]
        odd = (u >> np.uint32(13)) & np.uint32(1)
        h = (u - np.uint32(0x38000000) + np.uint32(0x0FFF) + odd) >> np.uint32(13)
        h = small[i] - np.uint32(0x3F000000) if u < np.uint32(0x38800000) else h
        h = np.uint32(0x7C00) if u >= np.uint32(0x477FF000) else h
        out[i] = np.uint16(h)


@njit(cache=True, nogil=True)
def _write_columns(tile: np.ndarray, row_of: np.ndarray, out: np.ndarray) -> None:
    """Turn the features of a tile (images, blocks, masks, masks, 16) into columns of ``out``."""
    count, n_blocks, n_rows, n_cols, _ = tile.shape
    turned = np.zeros((BLOCK, TILE_IMAGES), np.float32)
    shifted = np.empty(TILE_IMAGES, np.float32)
    half = out.itemsize == 2
    for b in range(n_blocks):
        for a in range(n_rows):
            for c in range(n_cols):
                for i in range(count):
                    for t in range(BLOCK):
                        turned[t, i] = tile[i, b, a, c, t]
                for t in range(BLOCK):
                    r = row_of[b, t, a, c]
                    if r >= 0 and half:
                        to_half(turned[t], shifted, out[r])
                    elif r >= 0:
                        for i in range(count):
                            out[r, i] = turned[t, i]


@njit(cache=True, nogil=True)
def _pool_tile(
    images: np.ndarray,
    q: int,
    blocks: np.ndarray,
    masks: Masks,
    spans: np.ndarray,
    tile: np.ndarray,
) -> None:
    """Write the features of a few images, (images, blocks, row masks, grid, 16)."""
    _, height, width, channels = images.shape
    n_rows, rows = masks.rows.shape
    cols = masks.cols.shape[1]
    grid = tile.shape[3]
    unit = pixel_unit(images)
    pad_y = margin(height, rows, q)
    pad_x = margin(width, cols, q)
    canvas = np.zeros((height + 2 * pad_y, (width + 2 * pad_x) * channels), np.float32)
    patches = np.empty((rows * cols, q * q * channels), np.float32)
    responses = np.empty((ROWS * cols, BLOCK), np.float32)
    ranges = np.empty((rows, 3), np.int64)
    profiles = np.empty((n_rows, cols * BLOCK), np.float32)
    for i in range(images.shape[0]):
        _ranges(images[i], pad_y, pad_x, q, ranges)
        _pad(images[i], unit, pad_y, pad_x, canvas)
        _patches(canvas, q, channels, ranges, patches)
        for b in range(blocks.shape[0]):
            _profiles(patches, blocks[b], ranges, masks.rows, spans[0], responses, profiles)
            for a in range(n_rows):
                for c in range(grid):
                    k = (a // grid) * grid + c
                    lo = spans[1, k, 0]
                    hi = spans[1, k, 1]
                    _peaks(profiles[a], masks.cols[k], lo, hi, tile[i, b, a, c])


@njit(cache=True, nogil=True)
def pool_columns(
    images: np.ndarray,
    q: int,
    blocks: np.ndarray,
    row_masks: np.ndarray,
    col_masks: np.ndarray,
    spans: np.ndarray,
    row_of: np.ndarray,
    out: np.ndarray,
) -> None:
    """Write the columns of whole blocks of templates with all masks for a few images."""
    # images: (n, H, W, C), uint8 or float32
    # blocks: (n_blocks, q·q·C, 16), float32
    # row_masks, col_masks: (widths × grid, rows) and (widths × grid, cols)
    # spans: (2, widths × grid, 2), int64
    # row_of: int64, shape (n_blocks, 16, widths × grid, grid)
    # out: (n_columns, n), float32, or uint16 for float16 bits
    n_blocks, _, n_rows, grid = row_of.shape
    tile = np.empty((images.shape[0], n_blocks, n_rows, grid, BLOCK), np.float32)
    _pool_tile(images, q, blocks, Masks(row_masks, col_masks), spans, tile)
    _write_columns(tile, row_of, out)
