"""Templates and cells as compiled functions read them."""

from __future__ import annotations

import numpy as np

from visionshare.generators.layers.layer import LayerCode, Shape
from visionshare.generators.layers.templates.responses import Cells, lanes_of, sums_of, taps_of
from visionshare.generators.layers.templates.vectors import LANES

__all__ = ["code_of", "packed_taps", "regular_pool"]

# Where each number is in the header of the table of integers.
HEIGHT, WIDTH, CHANNELS, PAD_Y, PAD_X, LINE, INSIDE, CANVAS, SUMS = range(9)
N, LANES_AT, ROWS, LENGTH, CELLS, POSITIONS_AT, FEW, POOL, PLACE = range(9, 18)
HEADER = 18


def regular_pool(row_cells: np.ndarray, col_cells: np.ndarray) -> int:
    """Return the side of square cells that begin with the first position; 0 for other cells."""
    pool = int((row_cells == 0).sum())
    for cells in (row_cells, col_cells):
        used = cells[cells >= 0]
        n = len(used) // pool
        regular = np.array_equal(used, np.repeat(np.arange(n), pool))
        if not regular or (cells[: len(used)] < 0).any():
            return 0
    return pool


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
    header = np.zeros(HEADER, np.int64)
    header[[HEIGHT, WIDTH, CHANNELS]] = in_shape
    header[[PAD_Y, PAD_X]] = pads
    line = (width + 2 * pads[1]) * channels
    header[LINE] = line
    header[INSIDE] = pads[0] * line + pads[1] * channels
    header[CANVAS] = _whole_vectors((height + 2 * pads[0]) * line + LANES)
    positions = _positions(cells, line, channels)
    header[[N, ROWS, LENGTH]] = n, q, q * channels
    header[CELLS] = len(positions.firsts) - 1
    header[POSITIONS_AT] = len(positions.starts)
    pool = regular_pool(*cells)
    n_columns = int(cells[1].max()) + 1
    if _fills_vectors(n, n_columns, pool):
        return _code_of_few(header, templates, biases, positions, pool, n_columns)
    lanes = int(lanes_of(n))
    header[LANES_AT] = lanes
    header[SUMS] = _whole_vectors(len(sums_of(positions)))
    ints = np.concatenate([header, positions.firsts, positions.starts])
    spare = 0 if lanes == n else int(header[CELLS]) * lanes
    work = int(header[CANVAS] + header[SUMS]) + spare
    return LayerCode(ints, packed_taps(ints, templates, biases), work)


def packed_taps(ints: np.ndarray, templates: np.ndarray, biases: np.ndarray) -> np.ndarray:
    """Return templates and biases in the order in which the layer's code reads them."""
    n, q = templates.shape[:2]
    flat = np.ascontiguousarray(templates, np.float32).reshape(n, q, -1)
    if not ints[FEW]:
        return np.asarray(taps_of(flat, np.ascontiguousarray(biases, np.float32)).values)
    # By fours: biases, then tap after tap.
    taps = np.zeros((-(-n // 4), flat[0].size + 1, 4), np.float32)
    for t in range(n):
        taps[t // 4, 0, t % 4] = biases[t]
        taps[t // 4, 1:, t % 4] = flat[t].ravel()
    return taps.ravel()


def _whole_vectors(n: int) -> int:
    return -(-n // LANES) * LANES


def _fills_vectors(n: int, n_columns: int, pool: int) -> bool:
    """Return whether the cells of a row fill vectors better than templates do."""
    lanes = _whole_vectors(n_columns)
    # Four templates fill a quarter of a vector, and eight a half.
    return pool > 1 and n <= 8 and 4 * n_columns >= lanes * (2 if n <= 4 else 3)


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
    every = np.concatenate(starts).astype(np.int64)
    return Cells(every, every, np.array(firsts, np.int64))


def _code_of_few(
    header: np.ndarray,
    templates: np.ndarray,
    biases: np.ndarray,
    positions: Cells,
    pool: int,
    n_columns: int,
) -> LayerCode:
    """Return the code of a few templates, whose cells lie side by side in vectors."""
    q = templates.shape[1]
    height, width, channels = header[[HEIGHT, WIDTH, CHANNELS]]
    padded_height = int(height + 2 * header[PAD_Y])
    padded_width = int(width + 2 * header[PAD_X])
    place = (-(-padded_width // pool) + 2 * LANES - 1) // LANES * LANES
    header[[FEW, POOL, PLACE]] = 1, pool, place
    row = pool * place
    header[CANVAS] = int(channels) * padded_height * row
    # By blocks of four positions, the last one filled up with the last position.
    n_blocks = -(-pool * pool // 4)
    position = np.minimum(np.arange(n_blocks * 4), pool * pool - 1)
    dy, dx = np.divmod(position, pool)
    y, x, c = np.meshgrid(np.arange(q), np.arange(q), np.arange(channels), indexing="ij")
    column = x.reshape(-1, 1) + dx
    offsets = (
        c.reshape(-1, 1) * padded_height * row
        + (y.reshape(-1, 1) + dy) * row
        + column % pool * place
        + column // pool
    )
    blocks = offsets.reshape(len(offsets), n_blocks, 4).transpose(1, 0, 2)
    ints = np.concatenate(
        [header, positions.firsts, positions.starts, [n_columns], blocks.ravel()]
    ).astype(np.int64)
    n_cells = int(header[CELLS])
    taps = packed_taps(ints, templates, biases)
    return LayerCode(ints, taps, int(header[CANVAS]) + (n_cells + LANES) * 4)
