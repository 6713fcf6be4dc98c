"""The layers of chains: templates, each on one map of the layer before, and their evaluation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from visionshare.generators.inputs import as_lines

__all__ = ["Layer", "cell_bounds", "columns", "layer", "maps_of", "restricted"]


class Layer(NamedTuple):
    """Templates that follow each other's maps: of every chain one.

    Attributes
    ----------
    templates : ndarray of shape (n_maps, q, q, C), float32
        C is 1 but in the first layer, where a template has the channels of the image.
    biases : ndarray of shape (n_maps,), float32
    parents : ndarray of shape (n_maps,), int64
        The map of the layer before that each is of, ascending; 0 in the first layer, the image.
    starts : ndarray of shape (n_before + 1,), int64
        Where the maps of each one begin.
    pool : int
        Side of the cells whose maximum is kept.
    """

    templates: np.ndarray
    biases: np.ndarray
    parents: np.ndarray
    starts: np.ndarray
    pool: int

    def of(self, templates: np.ndarray, biases: np.ndarray) -> Layer:
        """Return the layer with other templates and biases."""
        return self._replace(
            templates=np.ascontiguousarray(templates, np.float32),
            biases=np.ascontiguousarray(biases, np.float32),
        )

    def map_shape(self, rows: int, cols: int) -> tuple[int, int]:
        """Return rows and columns of a map of what has these rows and columns."""
        q = self.templates.shape[1]
        return (rows - q + 1) // self.pool, (cols - q + 1) // self.pool


def layer(
    templates: np.ndarray, biases: np.ndarray, parents: np.ndarray, n_before: int, pool: int
) -> Layer:
    """Return a layer on ``n_before`` maps.

    Examples
    --------
    >>> ones = np.ones((3, 2, 2, 1), np.float32)
    >>> layer(ones, np.zeros(3, np.float32), np.array([0, 2, 2]), 3, 1).starts.tolist()
    [0, 1, 1, 3]
    """
    starts = np.searchsorted(parents, np.arange(n_before + 1)).astype(np.int64)
    return Layer(templates, biases, parents.astype(np.int64), starts, int(pool))


def restricted(layers: Sequence[Layer], chains: np.ndarray) -> tuple[list[Layer], np.ndarray]:
    """Return layers without what no chain needs, and the new number of each chain.

    Parameters
    ----------
    layers : sequence of Layer
    chains : ndarray of int
        Maps of the last layer.
    """
    kept: list[Layer] = []
    used, numbers = np.unique(chains, return_inverse=True)
    for below in reversed(layers):
        parents, renumbered = np.unique(below.parents[used], return_inverse=True)
        templates, biases = below.templates[used], below.biases[used]
        n_before = max(1, len(parents))
        kept.insert(0, layer(templates, biases, renumbered.reshape(-1), n_before, below.pool))
        used = parents
    return kept, numbers.reshape(-1)


def maps_of(
    layers: Sequence[Layer], images: np.ndarray, with_places: bool = False
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Return the maps (n, h, w, n_maps) of every layer, and where their maxima are.

    Parameters
    ----------
    layers : sequence of Layer
    images : ndarray of shape (n, H, W, C), uint8 or float32
    with_places : bool, default False
        Whether places are wanted: (n, h, w, n_maps), int8, −1 where a map is 0; else empty.
    """
    from visionshare.generators.chains.kernels import maps_of_maps
    from visionshare.generators.maps.kernels import maps_of_block

    all_maps: list[np.ndarray] = []
    all_places: list[np.ndarray] = []
    for number, own in enumerate(layers):
        below = all_maps[-1] if number else images
        shape = (len(images), *own.map_shape(*below.shape[1:3]), len(own.templates))
        out = np.empty(shape, np.float32)
        seen = np.empty(shape if with_places else (0, 0, 0, 0), np.int8)
        if number:
            maps_of_maps(below, *own[:2], own.starts, own.pool, out, seen)
        else:
            templates = as_lines(own.templates)
            maps_of_block(as_lines(images), templates, own.biases, 0, own.pool, out, seen)
        all_maps.append(out)
        all_places.append(seen)
    return all_maps, all_places


def columns(
    layers: Sequence[Layer], maps: np.ndarray, grid: int, with_positions: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Return the maxima of every chain in the cells of a grid, and where they are.

    Parameters
    ----------
    layers : sequence of Layer
    maps : ndarray of shape (n, h, w, n_before), float32
        Of the layer before the last, see :func:`maps_of`.
    grid : int
        Cells a side.
    with_positions : bool, default False

    Returns
    -------
    values : ndarray of shape (n, grid², n_chains), float32
    positions : ndarray of shape (n, grid², n_chains), int32
        Row · columns + column of the last response, −1 where the maximum is 0; empty where
        not wanted.
    """
    from visionshare.generators.chains.kernels import cell_columns

    last = layers[-1]
    shape = (len(maps), grid * grid, len(last.templates))
    values = np.empty(shape, np.float32)
    positions = np.empty(shape if with_positions else (0, 0, 0), np.int32)
    rows, cols = (cell_bounds(side, grid) for side in last.map_shape(*maps.shape[1:3]))
    cell_columns(maps, *last[:2], last.starts, last.pool, rows, cols, values, positions)
    return values, positions


def cell_bounds(side: int, grid: int) -> np.ndarray:
    """Return where each of ``grid`` cells begins on an axis, and where the last ends, int64.

    Examples
    --------
    >>> cell_bounds(5, 2).tolist()
    [0, 3, 5]
    """
    return -(-np.arange(grid + 1) * side // grid)
