"""Templates that are asked for in the same cells: their responses side by side."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from visionshare.generators.inputs import as_lines
from visionshare.generators.patches.chosen_plan import ChosenPlan
from visionshare.generators.patches.masks import mask_spans
from visionshare.resources import run_blocks

__all__ = ["CellGrid", "CellPlan", "cell_grid", "grid_of_cells", "serves"]

# Images of one call of the kernel.
_AT_ONCE = 64
# Fewer templates leave most of a vector empty.
_FEWEST = 5
# Responses that may be computed for each that is needed: side by side they are that much faster.
_SPARE = 3


def _rectangles(layout: np.ndarray, row_masks: np.ndarray, col_masks: np.ndarray) -> np.ndarray:
    """Return what each feature's masks reach, (n, 4): first row, end, first column, end."""
    rows, cols = mask_spans(row_masks)[layout[:, 1]], mask_spans(col_masks)[layout[:, 2]]
    return np.concatenate([rows, cols], axis=1)


def _areas(rectangles: np.ndarray) -> np.ndarray:
    areas: np.ndarray = np.prod(rectangles[:, 1::2] - rectangles[:, ::2], axis=1)
    return areas


def serves(layout: np.ndarray, row_masks: np.ndarray, col_masks: np.ndarray) -> bool:
    """Return whether all cells of all templates cost little more than those of chosen features.

    Parameters
    ----------
    layout : ndarray of shape (n, 3), int64
        Template, row mask and column mask of each feature.
    row_masks, col_masks : ndarray of shape (n_masks, positions), float32

    Examples
    --------
    >>> mask, layout = np.ones((1, 3), np.float32), np.zeros((6, 3), np.int64)
    >>> layout[:, 0] = np.arange(6)
    >>> serves(layout, mask, mask), serves(layout[:2], mask, mask), serves(layout, mask / 2, mask)
    (True, False, False)
    """
    for masks, column in ((row_masks, 1), (col_masks, 2)):
        used = masks[np.unique(layout[:, column])]
        spans = mask_spans(used)
        # Ones, in one run each.
        if not np.isin(used, (0, 1)).all() or (used.sum(axis=1) != np.diff(spans)[:, 0]).any():
            return False
    n_templates = len(np.unique(layout[:, 0]))
    rectangles = _rectangles(layout, row_masks, col_masks)
    needed = _areas(np.unique(np.column_stack([layout[:, 0], rectangles]), axis=0)[:, 1:]).sum()
    computed = n_templates * _areas(np.unique(rectangles, axis=0)).sum()
    return bool(n_templates >= _FEWEST and computed <= _SPARE * needed)


class CellGrid(NamedTuple):
    """Cells in rows and columns of a grid.

    Attributes
    ----------
    row_cells, col_cells : ndarray of int64
        The cell of each row of positions, and of each column; −1 for none.
    places : ndarray of shape (n_features,), int64
        Where each feature is among maxima of shape (cell rows, cell columns, templates).
    """

    row_cells: np.ndarray
    col_cells: np.ndarray
    places: np.ndarray


def cell_grid(layout: np.ndarray, row_masks: np.ndarray, col_masks: np.ndarray) -> CellGrid | None:
    """Return the cells as a grid; None where they are none, or many are not wanted.

    Parameters are those of :func:`serves`.
    """
    if not serves(layout, row_masks, col_masks):
        return None
    grid = grid_of_cells(layout, row_masks, col_masks)
    if grid is None:
        return None
    n_cells = (int(grid.row_cells.max()) + 1) * (int(grid.col_cells.max()) + 1)
    n_templates = int(layout[:, 0].max()) + 1
    return None if n_templates * n_cells > _SPARE * len(np.unique(grid.places)) else grid


def grid_of_cells(
    layout: np.ndarray, row_masks: np.ndarray, col_masks: np.ndarray
) -> CellGrid | None:
    """Return masks of ones as cells of a grid; None where some overlap.

    Parameters are those of :func:`serves`.
    """
    axes: list[tuple[np.ndarray, np.ndarray]] = []
    for masks, column in ((row_masks, 1), (col_masks, 2)):
        cells, index = np.unique(masks[layout[:, column]], axis=0, return_inverse=True)
        covered = cells.sum(axis=0)
        if covered.max() > 1:
            return None
        axes.append((np.where(covered > 0, cells.argmax(axis=0), -1), index.reshape(-1)))
    (row_cells, row), (col_cells, col) = axes
    n_templates = int(layout[:, 0].max()) + 1
    return CellGrid(
        row_cells, col_cells, (row * (col.max() + 1) + col) * n_templates + layout[:, 0]
    )


class CellPlan(ChosenPlan):
    """Everything about features of cells that does not depend on the image, made once.

    Parameters
    ----------
    templates : ndarray of shape (n_templates, q, q, C), float32
    row_masks, col_masks : ndarray of shape (n_masks, positions), float32
        Ones in one run each; see :func:`serves`.
    layout : ndarray of shape (n_features, 3), int64
        Template, row mask and column mask of each feature.
    """

    def __init__(
        self,
        templates: np.ndarray,
        row_masks: np.ndarray,
        col_masks: np.ndarray,
        layout: np.ndarray,
    ) -> None:
        from visionshare.generators.cells.kernels import lanes_of

        self.n_features = len(layout)
        self._used, template = np.unique(layout[:, 0], return_inverse=True)
        cells, cell = np.unique(
            _rectangles(layout, row_masks, col_masks), axis=0, return_inverse=True
        )
        n_cols, areas = col_masks.shape[1], _areas(cells)
        positions = np.concatenate([
            (np.arange(top, end)[:, None] * n_cols + np.arange(left, right)).ravel()
            for top, end, left, right in cells
        ])  # fmt: skip
        lanes, q, channels = lanes_of(len(self._used)), templates.shape[1], templates.shape[3]
        sizes = [len(cells), len(positions), row_masks.shape[1], n_cols, lanes, q, q * channels]
        places = cell.reshape(-1) * lanes + template.reshape(-1)
        ends = np.cumsum(areas)
        self._tables = np.concatenate([sizes, [0], ends, positions, places]).astype(np.int64)
        self.set_parameters(templates, row_masks, col_masks)

    def set_parameters(
        self, templates: np.ndarray, row_masks: np.ndarray, col_masks: np.ndarray
    ) -> None:
        """Take on other templates; cells stay as they are."""
        from visionshare.generators.cells.kernels import taps_of

        used = np.ascontiguousarray(templates[self._used], np.float32)
        flat = used.reshape(len(used), used.shape[1], -1)
        self._taps = taps_of(flat, np.zeros(len(flat), np.float32)).values

    def _transform(self, images: np.ndarray, n_jobs: int, positions: np.ndarray) -> np.ndarray:
        from visionshare.generators.patches.chosen_cell_kernels import chosen_features_of_cells

        out = np.empty((len(images), self.n_features), np.float32)
        lines = as_lines(images)

        def block(start: int, stop: int) -> None:
            chosen_features_of_cells(
                lines[start:stop], self._tables, self._taps, out[start:stop], positions[start:stop]
            )

        run_blocks(block, len(images), _AT_ONCE, n_jobs)
        return out
