"""Responses of templates, maximum per cell: forward, and the gradients of both sides.

Templates lie side by side in vectors: a pixel is read once for all of them. An image is computed
alone, so that its bits depend on no other image.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from visionshare.generators.borrowed import borrowed
from visionshare.generators.layers.templates.responses import (
    Canvas,
    Cells,
    Taps,
    aligned,
    cell_maxima,
    cut_out,
    draw,
)
from visionshare.generators.layers.templates.steps import maxima_of_four
from visionshare.generators.layers.templates.sums import (
    Entries,
    Rows,
    add_apart,
    add_together,
    empty_entries,
    filled,
    rows_of,
)
from visionshare.generators.layers.templates.tables import (
    CANVAS,
    CELLS,
    CHANNELS,
    FEW,
    HEADER,
    HEIGHT,
    INSIDE,
    LANES_AT,
    LENGTH,
    LINE,
    PAD_X,
    PAD_Y,
    PLACE,
    POOL,
    POSITIONS_AT,
    ROWS,
    SUMS,
    WIDTH,
    N,
)
from visionshare.generators.layers.templates.vectors import LANES

__all__ = ["image_gradients", "template_gradients", "templates_forward"]

# Floats of images whose patches are summed together: they stay in the first cache.
_CACHED = 6144


@njit(cache=True, nogil=True)
def templates_forward(
    x: np.ndarray, unit: np.float32, ints: np.ndarray, floats: np.ndarray, work: np.ndarray,
    out: np.ndarray, places: np.ndarray,
) -> None:  # fmt: skip
    """Write the maximum with 0 of each template's responses in each cell."""
    x, ints, floats, work = borrowed(x), borrowed(ints), borrowed(floats), borrowed(work)
    out, places = borrowed(out), borrowed(places)
    image = x.reshape((ints[HEIGHT], ints[WIDTH] * ints[CHANNELS]))
    if ints[FEW]:
        _few_forward(image, unit, ints, floats, work, out, places)
        return
    n, lanes, n_cells = ints[N], ints[LANES_AT], ints[CELLS]
    canvas = Canvas(work[: ints[CANVAS]], ints[LINE], ints[INSIDE])
    draw(image, unit, canvas)
    cells = _cells(ints)
    taps = Taps(floats, lanes, ints[ROWS], ints[LENGTH])
    sums = work[ints[CANVAS] : ints[CANVAS] + ints[SUMS]]
    with_places = places.shape[0] > 0
    if lanes == n:
        cell_maxima(canvas, taps, cells, sums, out, places, with_places)
        return
    # The lanes of templates that are not there are left out.
    all_lanes = work[ints[CANVAS] + ints[SUMS] :]
    all_places = np.empty(n_cells * lanes if with_places else 0, np.int32)
    cell_maxima(canvas, taps, cells, sums, all_lanes, all_places, with_places)
    _leave_out(all_lanes, lanes, n, n_cells, out)
    if with_places:
        _leave_out(all_places, lanes, n, n_cells, places)


@njit(cache=True, nogil=True)
def _leave_out(values: np.ndarray, lanes: int, n: int, n_cells: int, out: np.ndarray) -> None:
    values, out = borrowed(values), borrowed(out)
    for cell in range(n_cells):
        for t in range(n):
            out[cell * n + t] = values[cell * lanes + t]


@njit(cache=True, nogil=True)
def _cells(ints: np.ndarray) -> Cells:
    """Return the positions cell by cell; a position is called by where its patch begins."""
    n_cells, n_positions = ints[CELLS], ints[POSITIONS_AT]
    firsts = ints[HEADER : HEADER + n_cells + 1]
    starts = ints[HEADER + n_cells + 1 : HEADER + n_cells + 1 + n_positions]
    return Cells(starts, starts, firsts)


# ---- few templates: cells lie side by side in vectors, as templates would leave them empty


@njit(cache=True, nogil=True)
def _few_forward(
    image: np.ndarray, unit: np.float32, ints: np.ndarray, floats: np.ndarray, work: np.ndarray,
    out: np.ndarray, places: np.ndarray,
) -> None:  # fmt: skip
    """Write what :func:`templates_forward` does, for a few templates in regular cells."""
    image, ints, floats, work = borrowed(image), borrowed(ints), borrowed(floats), borrowed(work)
    out, places = borrowed(out), borrowed(places)
    n, n_cells, pool = ints[N], ints[CELLS], ints[POOL]
    n_taps, n_blocks = ints[ROWS] * ints[LENGTH], (pool * pool + 3) // 4
    begin = HEADER + n_cells + 1 + ints[POSITIONS_AT]
    cols = ints[begin]
    offsets = ints[begin + 1 :]
    row = pool * ints[PLACE]
    deck = work[: ints[CANVAS]]
    _deal(image, unit, ints, deck)
    found = work[ints[CANVAS] : ints[CANVAS] + (n_cells + LANES) * 4]
    with_places = places.shape[0] > 0
    found_places = np.empty((n_cells + LANES) * 4 if with_places else 0, np.int8)
    starts = _cells(ints).starts
    for m in range(0, n, 4):
        for cell in range(0, n_cells, cols):
            base = cell // cols * pool * row
            for x in range(0, cols, LANES):
                # Cells beyond the end of a row are overwritten by the next row.
                maxima_of_four(deck, base + x, offsets, n_taps, n_blocks, floats,
                               m * (n_taps + 1), found, found_places, (cell + x) * 4,
                               np.int64(with_places))  # fmt: skip
        count = min(4, n - m)
        for cell in range(n_cells):
            for t in range(count):
                out[cell * n + m + t] = found[cell * 4 + t]
        if with_places:
            for cell in range(n_cells):
                for t in range(count):
                    number = found_places[cell * 4 + t]
                    start = starts[cell * pool * pool + max(number, 0)]
                    places[cell * n + m + t] = start if number >= 0 else -1


@njit(cache=True, nogil=True)
def _deal(image: np.ndarray, unit: np.float32, ints: np.ndarray, deck: np.ndarray) -> None:
    """Write an image (H, W · C) times ``unit`` into a deck; margins stay zero."""
    # Columns are dealt out by their place in a cell, so that the pixels that a tap meets in
    # neighboring cells are neighbors: a deck is ordered by channel, row, place in a cell, cell.
    image, ints, deck = borrowed(image), borrowed(ints), borrowed(deck)
    pool, place, channels, pad_x = ints[POOL], ints[PLACE], ints[CHANNELS], ints[PAD_X]
    row = pool * place
    plane = (ints[HEIGHT] + 2 * ints[PAD_Y]) * row
    for y in range(image.shape[0]):
        for c in range(channels):
            line = c * plane + (y + ints[PAD_Y]) * row
            for s in range(pool):
                # The first column inside the image that has this place.
                first = (s - pad_x) % pool
                target = deck[line + s * place + (first + pad_x) // pool :]
                values = image[y, first * channels + c :]
                # A step that a compiler knows makes vectors.
                if channels == 1 and pool == 2:
                    _deal_row(values, 2, unit, target)
                else:
                    _deal_row(values, channels * pool, unit, target)


@njit(cache=True, nogil=True)
def _deal_row(values: np.ndarray, step: int, unit: np.float32, line: np.ndarray) -> None:
    """Write every value that is ``step`` after the one before, times ``unit``, to ``line``."""
    values, line = borrowed(values), borrowed(line)
    n = (values.shape[0] + step - 1) // step
    for i in range(n):
        line[i] = np.float32(values[i * step]) * unit


# ---- gradients: a maximum has the derivative of the response where it is attained


@njit(cache=True, nogil=True)
def template_gradients(
    images: np.ndarray, unit: np.float32, ints: np.ndarray, places: np.ndarray, G: np.ndarray,
    out: np.ndarray, biases: np.ndarray,
) -> None:  # fmt: skip
    """Add the gradients in templates and biases of Σ G · maxima."""
    # images: (n, H, W · C), uint8 or float32
    # places: (n, n_cells, n_templates), int32
    # G: (n, n_cells, n_templates), float32
    # out: (n_templates, q, q · C), float32
    # biases: (n_templates,), float32
    (n, n_cells, n_templates), (_, q, length) = places.shape, out.shape
    size, line = ints[CANVAS], filled(length)
    together = max(1, _CACHED // size)
    pixels = aligned(together * size)
    entries = empty_entries(together * n_cells + 1)
    sums, source = Rows(aligned(n_templates * q * line), line), Rows(pixels, ints[LINE])
    for begin in range(0, n, together):
        end = min(n, begin + together)
        for i in range(begin, end):
            draw(images[i], unit, Canvas(pixels[(i - begin) * size :], ints[LINE], ints[INSIDE]))
        for t in range(n_templates):
            count, total = 0, np.float32(0)
            for i in range(begin, end):
                count = _list(places[i], G[i], t, (i - begin) * size, entries, count)
            for e in range(count):
                total += entries.factors[e]
            biases[t] += total
            add_together(source, entries, count, q, length, sums, t * q * line)
    out += sums.values.reshape((n_templates, q, line))[:, :, :length]


@njit(cache=True, nogil=True)
def _list(places: np.ndarray, G: np.ndarray, t: int, at: int, entries: Entries, n: int) -> int:
    """List the patches with the maxima of a template, after ``n`` others; return how many."""
    places, G = borrowed(places), borrowed(G)
    starts, factors = borrowed(entries.starts), borrowed(entries.factors)
    for cell in range(places.shape[0]):
        place = np.int64(places[cell, t])
        # Written whatever the place is: an entry that is nowhere is overwritten.
        starts[n] = at + max(place, 0)
        factors[n] = G[cell, t]
        n += place >= 0
    return n


@njit(cache=True, nogil=True)
def image_gradients(
    templates: np.ndarray, ints: np.ndarray, places: np.ndarray, G: np.ndarray, out: np.ndarray
) -> None:
    """Write the gradients in the pixels of Σ G · maxima to ``out`` (n, H, W · C), float32."""
    # templates: (n_templates, q, q · C), float32
    (n, n_cells, n_templates), (_, q, length) = places.shape, templates.shape
    source = rows_of(templates)
    size = q * source.line
    canvas = Canvas(aligned(ints[CANVAS] + LANES), ints[LINE], ints[INSIDE])
    entries = empty_entries(n_cells * n_templates + 1)
    tos = np.empty(n_cells * n_templates + 1, np.int64)
    target = Rows(canvas.pixels, canvas.row)
    for i in range(n):
        count = _list_apart(places[i], G[i], size, entries, tos)
        canvas.pixels[:] = np.float32(0)
        add_apart(source, entries, 0, count, q, length, target, tos)
        cut_out(canvas, out[i])


@njit(cache=True, nogil=True)
def _list_apart(
    places: np.ndarray, G: np.ndarray, size: int, entries: Entries, tos: np.ndarray
) -> int:
    """List the templates of an image's maxima, and where each is added; return how many."""
    places, G, tos = borrowed(places), borrowed(G), borrowed(tos)
    starts, factors = borrowed(entries.starts), borrowed(entries.factors)
    n = 0
    for cell in range(places.shape[0]):
        for t in range(places.shape[1]):
            place = np.int64(places[cell, t])
            starts[n] = t * size
            factors[n] = G[cell, t]
            tos[n] = max(place, 0)
            n += place >= 0
    return n
