"""Few maps of images: cells lie side by side in vectors, as templates would leave them empty.

Columns of an image are dealt out by their place in a cell, so that the pixels that a tap meets in
neighboring cells are neighbors. Sums are in the order of those of many maps, and so are the bits.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from visionshare.generators.borrowed import borrowed
from visionshare.generators.cells.kernels import aligned
from visionshare.generators.cells.steps import maxima_of_four
from visionshare.generators.cells.vectors import LANES
from visionshare.generators.patches.record_kernels import pixel_unit

__all__ = ["few_maps_of_block", "fill_vectors"]


class Deck(NamedTuple):
    """A padded image, its columns dealt out: channel, row, place in a cell, cell.

    Floats from a channel to the next, from a row to the next, and from a place to the next.
    """

    pixels: np.ndarray
    plane: int
    row: int
    place: int


@njit(cache=True, nogil=True)
def fill_vectors(n_maps: int, cols: int, pool: int) -> bool:
    """Return whether cells of a row fill vectors better than templates do."""
    cells = (cols + LANES - 1) // LANES * LANES
    # Four templates fill a quarter of a vector, and eight a half.
    return pool > 1 and n_maps <= 8 and 4 * cols >= cells * (2 if n_maps <= 4 else 3)


@njit(cache=True, nogil=True)
def _deal_row(values: np.ndarray, step: int, unit: np.float32, line: np.ndarray) -> None:
    """Write every value that is ``step`` after the one before, times ``unit``, to ``line``."""
    values, line = borrowed(values), borrowed(line)
    n = (values.shape[0] + step - 1) // step
    for i in range(n):
        line[i] = np.float32(values[i * step]) * unit


@njit(cache=True, nogil=True)
def _deal(
    image: np.ndarray, channels: int, unit: np.float32, pad: int, pool: int, deck: Deck
) -> None:
    """Write an image (H, W · C) times ``unit`` into a deck; margins stay zero."""
    image, pixels = borrowed(image), borrowed(deck.pixels)
    for y in range(image.shape[0]):
        for c in range(channels):
            row = c * deck.plane + (y + pad) * deck.row
            for s in range(pool):
                # The first column inside that has this place.
                first = (s - pad) % pool
                line = pixels[row + s * deck.place + (first + pad) // pool :]
                values = image[y, first * channels + c :]
                # A step that a compiler knows makes vectors.
                if channels == 1 and pool == 2:
                    _deal_row(values, 2, unit, line)
                else:
                    _deal_row(values, channels * pool, unit, line)


@njit(cache=True, nogil=True)
def _offsets(deck: Deck, q: int, channels: int, pool: int) -> np.ndarray:
    """Return where each tap meets the image at each position of the first cell.

    By blocks of four positions, the last one filled up with the last position.
    """
    size = pool * pool
    n_blocks, n_taps = (size + 3) // 4, q * q * channels
    offsets = np.empty(n_blocks * n_taps * 4, np.int64)
    for position in range(n_blocks * 4):
        dy, dx = min(position, size - 1) // pool, min(position, size - 1) % pool
        to = position // 4 * n_taps * 4 + position % 4
        for y in range(dy, dy + q):
            for x in range(dx, dx + q):
                for c in range(channels):
                    column = x % pool * deck.place + x // pool
                    offsets[to] = c * deck.plane + y * deck.row + column
                    to += 4
    return offsets


@njit(cache=True, nogil=True)
def _taps_of_four(templates: np.ndarray, biases: np.ndarray) -> np.ndarray:
    """Return templates (n, q, q · C) by fours: biases, then tap after tap."""
    n, q, length = templates.shape
    size = q * length + 1
    values = np.zeros(((n + 3) // 4, size, 4), np.float32)
    for m in range(n):
        values[m // 4, 0, m % 4] = biases[m]
        values[m // 4, 1:, m % 4] = templates[m].reshape(-1)
    return values.reshape(-1)


@njit(cache=True, nogil=True)
def few_maps_of_block(
    images: np.ndarray,
    templates: np.ndarray,
    biases: np.ndarray,
    pad: int,
    pool: int,
    out: np.ndarray,
    seen: np.ndarray,
) -> None:
    """Write what :func:`visionshare.generators.maps.kernels.maps_of_block` does."""
    (n, rows, cols, n_maps), (_, q, length) = out.shape, templates.shape
    channels, n_taps = length // q, q * length
    height, width = images.shape[1] + 2 * pad, images.shape[2] // channels + 2 * pad
    place = ((width + pool - 1) // pool + 2 * LANES - 1) // LANES * LANES
    deck = Deck(
        aligned(channels * height * pool * place), height * pool * place, pool * place, place
    )
    offsets, taps = _offsets(deck, q, channels, pool), _taps_of_four(templates, biases)
    n_blocks, unit, with_places = (pool * pool + 3) // 4, pixel_unit(images), seen.size > 0
    room = (rows * cols + LANES) * 4
    found, places = aligned(room), np.empty(room if with_places else 0, np.int8)
    for i in range(n):
        _deal(images[i], channels, unit, pad, pool, deck)
        for m in range(0, n_maps, 4):
            for y in range(rows):
                for x in range(0, cols, LANES):
                    # Cells beyond the row are written over by the next row.
                    maxima_of_four(
                        deck.pixels, y * pool * deck.row + x, offsets, n_taps, n_blocks,
                        taps, m * (n_taps + 1), found, places, (y * cols + x) * 4,
                        np.int64(with_places),
                    )  # fmt: skip
            count = min(4, n_maps - m)
            _spread(found, m, count, out[i].reshape(-1), n_maps)
            if with_places:
                _spread(places, m, count, seen[i].reshape(-1), n_maps)


@njit(cache=True, nogil=True)
def _spread(values: np.ndarray, first: int, count: int, out: np.ndarray, n_maps: int) -> None:
    """Write values of four maps, ``count`` of which there are, to all maps (cells · n_maps)."""
    values, out = borrowed(values), borrowed(out)
    if n_maps == 4:
        for i in range(out.shape[0]):
            out[i] = values[i]
        return
    for cell in range(out.shape[0] // n_maps):
        for m in range(count):
            out[cell * n_maps + first + m] = values[cell * 4 + m]
