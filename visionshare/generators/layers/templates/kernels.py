"""Responses of templates, maximum per cell: forward, and the gradients of both sides.

Templates lie side by side in vectors: a pixel is read once for all of them. An image is computed
alone, so that its bits depend on no other image.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from visionshare.generators.emitter import uncounted
from visionshare.generators.layers.steps import kernel
from visionshare.generators.layers.templates.few import few_maxima
from visionshare.generators.layers.templates.intrinsics import LANES
from visionshare.generators.layers.templates.responses import (
    Canvas,
    Cells,
    Taps,
    aligned,
    cell_maxima,
    cut_out,
    draw,
    unset,
)
from visionshare.generators.layers.templates.sums import (
    Entries,
    Rows,
    add_together,
    empty_entries,
    filled,
)
from visionshare.generators.layers.templates.tables import (
    CANVAS,
    CELLS,
    FEW,
    HEADER,
    HEIGHT,
    INSIDE,
    LANES_AT,
    LENGTH,
    LINE,
    POSITIONS,
    ROWS,
    SUMS,
    WIDTH,
    N,
)

# Floats of images whose patches are summed together: they stay in the first cache.
_CACHED = 6144


@njit(cache=True, nogil=True)
def templates_forward(
    x: np.ndarray,
    unit: np.float32,
    ints: np.ndarray,
    floats: np.ndarray,
    work: np.ndarray,
    out: np.ndarray,
    places: np.ndarray,
) -> None:
    """Write the maximum with 0 of each template's responses in each cell of one image."""
    x = uncounted(x)
    ints = uncounted(ints)
    floats = uncounted(floats)
    work = uncounted(work)
    out = uncounted(out)
    places = uncounted(places)
    if ints[FEW] > 0:
        few_maxima(x, unit, ints, floats, work, out, places)
        return
    n = ints[N]
    lanes = ints[LANES_AT]
    n_cells = ints[CELLS]
    canvas = Canvas(work[: ints[CANVAS]], ints[LINE], ints[INSIDE])
    draw(x.reshape((ints[HEIGHT], ints[WIDTH])), unit, canvas)
    firsts = ints[HEADER : HEADER + n_cells + 1]
    cells = Cells(ints[HEADER + n_cells + 1 :], firsts)
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
    values = uncounted(values)
    out = uncounted(out)
    for cell in range(n_cells):
        for t in range(n):
            out[cell * n + t] = values[cell * lanes + t]


@kernel
def forward(
    x: np.ndarray,
    unit: np.float32,
    ints: np.ndarray,
    weights: np.ndarray,
    work: np.ndarray,
    out: np.ndarray,
    places: np.ndarray,
) -> None:
    """Write the maximum with 0 of each template's responses in each cell of one image."""
    templates_forward(x, unit, ints, weights, work, out, places)


# ---- gradients: a maximum has the derivative of the response where it is attained


@njit(cache=True, nogil=True)
def template_gradients(
    images: np.ndarray,
    unit: np.float32,
    ints: np.ndarray,
    features: np.ndarray,
    starts: np.ndarray,
    places: np.ndarray,
    G: np.ndarray,
    out: np.ndarray,
    biases: np.ndarray,
) -> None:
    """Add the gradients in templates and biases of Σ G · maxima."""
    # Template t has the features from starts[t] to starts[t + 1] of the list; places and G are
    # (n, n_features).
    n = places.shape[0]
    n_templates, q, length = out.shape
    size = ints[CANVAS]
    together = max(1, _CACHED // size)
    pixels = unset(together * size)
    source = Rows(pixels, ints[LINE])
    entries = empty_entries(together * features.shape[0] + 1)
    line = filled(length)
    sums = Rows(aligned(n_templates * q * line), line)
    for begin in range(0, n, together):
        # 1) draw images that fit into the cache together
        end = min(n, begin + together)
        for i in range(begin, end):
            at = (i - begin) * size
            canvas = Canvas(pixels[at : at + size], ints[LINE], ints[INSIDE])
            draw(images[i], unit, canvas)
        for t in range(n_templates):
            # 2) list the patches with maxima of a template
            served = features[starts[t] : starts[t + 1]]
            count = 0
            for i in range(begin, end):
                count = _list(places[i], G[i], served, (i - begin) * size, entries, count)
            # 3) sum them
            total = np.float32(0)
            for e in range(count):
                total += entries.factors[e]
            biases[t] += total
            add_together(source, entries, count, q, length, sums, t * q * line)
    out += sums.values.reshape((n_templates, q, line))[:, :, :length]


@njit(cache=True, nogil=True)
def _list(
    places: np.ndarray, G: np.ndarray, features: np.ndarray, at: int, entries: Entries, n: int
) -> int:
    """List the patches with the maxima of a template, after ``n`` others; return how many."""
    places = uncounted(places)
    G = uncounted(G)
    features = uncounted(features)
    starts = uncounted(entries.starts)
    factors = uncounted(entries.factors)
    for k in range(features.shape[0]):
        f = features[k]
        place = np.int64(places[f])
        # Written whatever the place is: an entry that is nowhere is overwritten.
        starts[n] = at + max(place, 0)
        factors[n] = G[f]
        n += place >= 0
    return n


@njit(cache=True, nogil=True)
def image_gradients(
    templates: np.ndarray,
    ints: np.ndarray,
    owners: np.ndarray,
    places: np.ndarray,
    G: np.ndarray,
    out: np.ndarray,
) -> None:
    """Write the gradients in the pixels of Σ G · maxima to ``out`` (n, H, W · C), float32."""
    # Feature f is one of template owners[f]; places and G are (n, n_features).
    n = places.shape[0]
    n_templates, q, length = templates.shape
    n_positions = ints[POSITIONS]
    starts = ints[HEADER + ints[CELLS] + 1 :]
    canvas = Canvas(aligned(ints[CANVAS] + LANES), ints[LINE], ints[INSIDE])
    position_at = np.empty(ints[CANVAS], np.int64)
    for position in range(n_positions):
        position_at[starts[position]] = position
    # Of cells of several positions one is the maximum: the others' products are left out.
    few = n_positions >= 2 * ints[CELLS]
    line = filled(length)
    rows = Rows(aligned(n_templates * q * line), line)
    rows.values.reshape((n_templates, q, line))[:, :, :length] = templates
    flat = templates.reshape(n_templates, q * length)
    slopes = np.empty((0 if few else n_positions, n_templates), np.float32)
    patches = np.empty((len(slopes), q * length), np.float32)
    lists = np.empty(n_positions + 1 if few else 0, np.int64)
    entries = empty_entries(owners.shape[0] if few else 0)
    for i in range(n):
        canvas.pixels[:] = np.float32(0)
        if few:
            _list_by_position(places[i], G[i], owners, q * line, position_at, lists, entries)
            for position in range(n_positions):
                own = slice(lists[position], lists[position + 1])
                listed = Entries(entries.starts[own], entries.factors[own])
                count = own.stop - own.start
                place = starts[position]
                add_together(rows, listed, count, q, length, Rows(canvas.pixels, canvas.row), place)
        else:
            _set_slopes(places[i], G[i], owners, position_at, slopes)
            np.dot(slopes, flat, patches)
            _add_patches(patches.reshape((n_positions, q, length)), starts, canvas)
        cut_out(canvas, out[i])


@njit(cache=True, nogil=True)
def _list_by_position(
    places: np.ndarray,
    G: np.ndarray,
    owners: np.ndarray,
    size: int,
    position_at: np.ndarray,
    lists: np.ndarray,
    entries: Entries,
) -> None:
    """List the templates whose maxima are at each position, one position after the other."""
    # 1) how many there are at each
    lists[:] = 0
    for f in range(places.shape[0]):
        if places[f] >= 0:
            lists[position_at[places[f]]] += 1
    # 2) where the list of each ends
    end = 0
    for position in range(lists.shape[0]):
        end += lists[position]
        lists[position] = end
    # 3) filled from the end, so that at last each number says where a list begins
    for f in range(places.shape[0] - 1, -1, -1):
        if places[f] >= 0:
            position = position_at[places[f]]
            lists[position] -= 1
            entries.starts[lists[position]] = owners[f] * size
            entries.factors[lists[position]] = G[f]


@njit(cache=True, nogil=True)
def _set_slopes(
    places: np.ndarray,
    G: np.ndarray,
    owners: np.ndarray,
    position_at: np.ndarray,
    slopes: np.ndarray,
) -> None:
    """Write the gradient in each response (n_positions, n_templates)."""
    slopes[:] = np.float32(0)
    for f in range(places.shape[0]):
        if places[f] >= 0:
            slopes[position_at[places[f]], owners[f]] += G[f]


@njit(cache=True, nogil=True)
def _add_patches(patches: np.ndarray, starts: np.ndarray, canvas: Canvas) -> None:
    """Add the gradient in each patch: a pixel belongs to several."""
    n_positions, q, length = patches.shape
    for position in range(n_positions):
        for y in range(q):
            start = starts[position] + y * canvas.row
            row = canvas.pixels[start : start + length]
            for k in range(length):
                row[k] += patches[position, y, k]
