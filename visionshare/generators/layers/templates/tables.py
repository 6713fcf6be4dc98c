"""Templates and cells as compiled functions read them."""

from __future__ import annotations

import numpy as np

from visionshare.generators.emitter import LANES
from visionshare.generators.layers.layer import LayerCode, Shape
from visionshare.generators.layers.templates.few_steps import FEW_TOGETHER
from visionshare.generators.layers.templates.responses import Cells, lanes_of, sums_of, taps_of

# Where each number is in the header of the table of integers.
HEIGHT, WIDTH, LINE, INSIDE, CANVAS, SUMS, N, LANES_AT, ROWS, LENGTH, CELLS, POSITIONS = range(12)
# Cells in a row, channels, and whether cells and not templates lie in vectors.
ACROSS, CHANNELS, FEW = range(12, 15)
HEADER = 15
# Templates that are few, and the fraction of the vectors that cells fill at least.
_FEW = 8
_FILLED = 0.6


def regular_pool(row_cells: np.ndarray, col_cells: np.ndarray) -> int:
    """Return the side of square cells that begin with the first position; 0 for other cells."""
    pool = int((row_cells == 0).sum())
    for cells in (row_cells, col_cells):
        used = cells[cells >= 0]
        regular = np.repeat(np.arange(len(used) // pool), pool)
        if not np.array_equal(used, regular) or (cells[: len(used)] < 0).any():
            return 0
    return pool


def position_step(row_cells: np.ndarray, col_cells: np.ndarray) -> int:
    """Return how far apart the positions are that are a cell each; 1 for other cells."""
    steps: set[int] = set()
    for cells in (row_cells, col_cells):
        used = np.flatnonzero(cells >= 0)
        steps.update(np.diff(used).tolist())
        if used[0] > 0 or not np.array_equal(cells[used], np.arange(len(used))):
            return 1
    return steps.pop() if len(steps) == 1 else 1


def code_of(
    in_shape: Shape,
    templates: np.ndarray,
    biases: np.ndarray,
    pads: tuple[int, int],
    cells: tuple[np.ndarray, np.ndarray],
) -> LayerCode:
    """Return templates and cells for :mod:`visionshare.generators.layers.templates.kernels`."""
    height, width, channels = in_shape
    n, q = templates.shape[:2]
    line = (width + 2 * pads[1]) * channels
    positions = _positions(cells, line, channels)
    n_cells = len(positions.firsts) - 1
    lanes = int(lanes_of(n))
    rows = (height + 2 * pads[0]) * line
    canvas = whole_vectors(rows + LANES)
    sums = whole_vectors(len(sums_of(positions)))
    header = np.zeros(HEADER, np.int64)
    header[HEIGHT] = height
    header[WIDTH] = width * channels
    header[LINE] = line
    header[INSIDE] = pads[0] * line + pads[1] * channels
    header[CANVAS] = canvas
    header[SUMS] = sums
    header[N] = n
    header[LANES_AT] = lanes
    header[ROWS] = q
    header[LENGTH] = q * channels
    header[CELLS] = n_cells
    header[POSITIONS] = len(positions.starts)
    header[CHANNELS] = channels
    header[ACROSS] = cells[1].max() + 1
    # Lanes without templates need room for maxima that are left out afterwards.
    spare = 0 if lanes == n else n_cells * lanes
    work = canvas + sums + spare
    across = int(header[ACROSS])
    header[FEW] = (
        n <= _FEW and regular_pool(*cells) == 2 and across >= _FILLED * whole_vectors(across)
    )
    if header[FEW]:
        # Planes of even and of odd columns, and the maxima of a vector of cells.
        work = whole_vectors(rows + channels * (height + 2 * pads[0]))
        work += LANES * (2 * channels + 1 + FEW_TOGETHER)
    ints = np.concatenate([header, positions.firsts, positions.starts])
    return LayerCode(ints, packed_taps(templates, biases, bool(header[FEW])), work)


def packed_taps(templates: np.ndarray, biases: np.ndarray, few: bool) -> np.ndarray:
    """Return templates and biases in the order in which kernels read them."""
    n, q = templates.shape[:2]
    if few:
        # Template after template, zeros where none is left, then the biases.
        padded = np.zeros((-(-n // FEW_TOGETHER) * FEW_TOGETHER, templates[0].size + 1), np.float32)
        padded[:n, :-1] = templates.reshape(n, -1)
        padded[:n, -1] = biases
        return np.concatenate([padded[:, :-1].ravel(), padded[:, -1]])
    flat = np.array(templates, np.float32, order="C").reshape(n, q, -1)
    return np.asarray(taps_of(flat, np.array(biases, np.float32)).values)


def whole_vectors(n: int) -> int:
    """Return the numbers of as many vectors as n numbers need."""
    return -(-n // LANES) * LANES


def _positions(cells: tuple[np.ndarray, np.ndarray], line: int, channels: int) -> Cells:
    """Return where the patches of the positions begin in a padded image, cell by cell."""
    rows, columns = cells
    starts = []
    firsts = [0]
    for r in range(int(rows.max()) + 1):
        ys = np.flatnonzero(rows == r) * line
        for c in range(int(columns.max()) + 1):
            xs = np.flatnonzero(columns == c) * channels
            starts.append((ys[:, None] + xs).ravel())
            firsts.append(firsts[-1] + len(starts[-1]))
    return Cells(np.concatenate(starts).astype(np.int64), np.array(firsts, np.int64))
