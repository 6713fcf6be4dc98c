"""The first layers of a network, computed once for all windows of a larger image.

A layer of templates without padding gives the same cells wherever a window begins, if windows begin
at multiples of a cell's side; windows that begin elsewhere have maps of their own. The other layers
see each window alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from visionshare.generators.layers.forward import Forward
from visionshare.generators.layers.layer import Fitted
from visionshare.generators.layers.templates.layer import TemplateLayer
from visionshare.generators.layers.templates.tables import regular_pool

# Rows and columns of cells that are computed at once.
_TILE = 16


def shared_step(layer: Fitted) -> int:
    """Return the side of the cells of a layer that windows can share; 0 for other layers."""
    if type(layer) is not TemplateLayer or layer.pads != (0, 0):
        return 0
    return regular_pool(layer.row_cells, layer.col_cells)


class SharedLayers:
    """The layers of a network, as many of which are shared as saves work."""

    def __init__(self, layers: Sequence[Fitted]) -> None:
        self._layers = list(layers)
        self._tiled: list[_TiledLayer] = []
        for layer in layers[:-1]:
            if not shared_step(layer):
                break
            assert isinstance(layer, TemplateLayer)
            self._tiled.append(_TiledLayer(layer))
        self._rests: dict[int, Forward] = {}

    def values(self, image: np.ndarray, ys: np.ndarray, xs: np.ndarray, n_jobs: int) -> np.ndarray:
        """Return the last layer's values of windows, (len(ys) · len(xs), size), float32."""
        # 1) Maps of (row phases, column phases, height, width, channels), and where windows begin.
        maps = image.reshape(1, 1, *image.shape[:2], -1)
        rows = _Begins(np.zeros(len(ys), np.int64), ys)
        columns = _Begins(np.zeros(len(xs), np.int64), xs)
        depth = 0
        for layer in self._tiled:
            row_phases, next_rows = rows.divided(layer.pool)
            column_phases, next_columns = columns.divided(layer.pool)
            begins = [(y, x) for y in row_phases for x in column_phases]
            if len(begins) * layer.macs(*maps.shape[2:4]) > len(ys) * len(xs) * layer.macs_alone:
                break
            made = layer.apply([maps[y[0], x[0], y[1] :, x[1] :] for y, x in begins], n_jobs)
            maps = made.reshape(len(row_phases), len(column_phases), *made.shape[1:])
            rows, columns = next_rows, next_columns
            depth += 1
        # 2) What the other layers see of each window.
        height, width, _ = self._layers[depth].in_shape
        views = np.lib.stride_tricks.sliding_window_view(maps, (height, width), axis=(2, 3))
        down, across = np.ix_(np.arange(len(ys)), np.arange(len(xs)))
        cut = views[rows.phase[down], columns.phase[across], rows.at[down], columns.at[across]]
        seen = np.ascontiguousarray(np.moveaxis(cut.reshape(-1, *cut.shape[2:]), 1, 3))
        rest = self._rests.setdefault(depth, Forward(self._layers[depth:]))
        return rest.values(seen, n_jobs)


class _Begins(NamedTuple):
    """The map that each row (or column) of windows is in, and where in it they begin."""

    phase: np.ndarray
    at: np.ndarray

    def divided(self, pool: int) -> tuple[list[tuple[int, int]], _Begins]:
        """Return the map and the offset of each new phase, and where windows begin then."""
        phases, numbers = np.unique(self.phase * pool + self.at % pool, return_inverse=True)
        listed = [divmod(phase, pool) for phase in phases.tolist()]
        return listed, _Begins(numbers, self.at // pool)


class _TiledLayer:
    """A layer of templates for maps of any size, tile by tile."""

    def __init__(self, layer: TemplateLayer) -> None:
        self.pool = shared_step(layer)
        self.macs_alone = layer.macs()
        self._size = layer.size
        self._weights = layer.templates.size
        self._side = _TILE * self.pool + layer.size - 1
        cells = np.repeat(np.arange(_TILE), self.pool)
        in_shape = (self._side, self._side, layer.in_shape[2])
        self._forward = Forward(
            [replace(layer, in_shape=in_shape, row_cells=cells, col_cells=cells)]
        )

    def macs(self, height: int, width: int) -> int:
        """Return the multiply-accumulates of a map."""
        return height * width * self._weights

    def apply(self, maps: list[np.ndarray], n_jobs: int) -> np.ndarray:
        """Return the cells of maps (height, width, channels) that differ by a cell at most."""
        # 1) All maps with zeros behind them, up to whole tiles.
        step = _TILE * self.pool
        sides = [max(one.shape[axis] for one in maps) for axis in (0, 1)]
        n_cells = [(side - self._size + 1) // self.pool for side in sides]
        n_tiles = [-(-n // _TILE) for n in n_cells]
        whole = [max(n * step + self._size - 1, s) for n, s in zip(n_tiles, sides, strict=True)]
        filled = np.zeros((len(maps), *whole, maps[0].shape[2]), maps[0].dtype)
        for place, one in zip(filled, maps, strict=True):
            place[: one.shape[0], : one.shape[1]] = one
        # 2) The tiles, and their cells side by side.
        tile = (self._side, self._side)
        views = np.lib.stride_tricks.sliding_window_view(filled, tile, axis=(1, 2))
        tiles = np.moveaxis(views[:, : n_tiles[0] * step : step, : n_tiles[1] * step : step], 3, 5)
        raster = np.ascontiguousarray(tiles).reshape(-1, *tile, filled.shape[3])
        made = self._forward.outputs(raster, n_jobs)
        made = made.reshape(len(maps), *n_tiles, _TILE, _TILE, -1).swapaxes(2, 3)
        made = made.reshape(len(maps), n_tiles[0] * _TILE, n_tiles[1] * _TILE, -1)
        return made[:, : n_cells[0], : n_cells[1]]
