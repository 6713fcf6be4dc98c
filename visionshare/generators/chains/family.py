"""Chains: each feature is a few small templates of its own, one after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from visionshare.errors import InputError
from visionshare.generators.base import (
    FeatureFamily,
    Ids,
    check_feature,
    check_features,
    check_images,
)
from visionshare.generators.chains.fitting import MEASURED, learned_layers
from visionshare.generators.chains.layers import (
    Layer,
    cell_bounds,
    columns,
    layer,
    maps_of,
    restricted,
)
from visionshare.generators.checks import check_memory, check_whole
from visionshare.generators.contributions import clipped_boxes, seen_boxes
from visionshare.generators.patch_sampling import PATCHES_AT_ONCE
from visionshare.generators.pictures import Field
from visionshare.generators.states import check_floats, check_state, family_state, unfitted
from visionshare.resources import run_blocks

__all__ = ["Chains"]

# Images of one call of the kernels.
_AT_ONCE = 32


class Chains(FeatureFamily):
    """Maxima of chains of two or three small templates, each on the map of the one before.

    map_1 = max(0, max over a pool × pool cell of (image ⊗ template_1) + bias_1); map_2 is the same
    of map_1 alone, with a template of its own, and so on. A chain's features are the maxima of its
    last map in the cells of a grid; they are a group. Templates come from patches of training
    images, then of their maps. Many chains begin with one template, whose map is computed once.

    Feature ``k · grid² + r · grid + c`` is row r and column c of the grid of chain k.

    Parameters
    ----------
    n_chains : int, default 500
    sizes : sequence of int, default (3, 5)
        Side of each template of a chain, in positions of what it sees; two or three.
    pools : sequence of int, default (2, 1)
        Side of the cells whose maximum is kept after each template; 1 for every position.
    n_first : int, default 16
        Different first templates.
    n_second : int, default 64
        Different first two templates, of chains of three; without meaning for chains of two.
    grid : int, default 2
        Cells a side of the last map.
    n_patches : int, default 100_000
        Patches drawn from the images, and from all maps of a layer, for k-means.
    random_state : int, default 0
        Seed.

    Attributes
    ----------
    layers_ : list of Layer
        Templates, biases, and the map of the layer before that each template sees.
    layout_ : ndarray of shape (n_features_, 2), int64
        Chain and cell of each feature.
    n_features_ : int
    image_shape_ : tuple of int

    References
    ----------
    T. Serre, L. Wolf, T. Poggio et al., "Robust object recognition with cortex-like mechanisms",
    PAMI 29, 2007: layers S1, C1, S2 and C2.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> images = load_digits().images / 16
    >>> family = Chains(n_chains=10, sizes=(3, 2), n_first=4).fit(images)
    >>> family.transform(images[:5]).shape, family.groups[:6].tolist()
    ((5, 40), [0, 0, 0, 0, 1, 1])
    """

    name: ClassVar[str] = "chains"
    tunable_on_maps: ClassVar[bool] = True
    layers_: list[Layer]
    layout_: np.ndarray

    def __init__(
        self,
        n_chains: int = 500,
        sizes: Sequence[int] = (3, 5),
        pools: Sequence[int] = (2, 1),
        n_first: int = 16,
        n_second: int = 64,
        grid: int = 2,
        n_patches: int = 100_000,
        random_state: int = 0,
    ) -> None:
        self.n_chains = n_chains
        self.sizes = sizes
        self.pools = pools
        self.n_first = n_first
        self.n_second = n_second
        self.grid = grid
        self.n_patches = n_patches
        self.random_state = random_state

    @property
    def raster_shape(self) -> tuple[int, int, int]:
        """Rows, columns and channels of an image; a vector is one row."""
        shape = tuple(self.image_shape_)
        height, width, channels = {1: (1, *shape, 1), 2: (*shape, 1)}.get(len(shape), shape)
        return height, width, channels

    @property
    def map_shapes(self) -> list[tuple[int, int]]:
        """Rows and columns of the maps of each layer."""
        (rows, cols, _), shapes = self.raster_shape, []
        for size, pool in zip(self.sizes, self.pools, strict=True):
            rows, cols = (max(0, side - size + 1) // pool for side in (rows, cols))
            shapes.append((rows, cols))
        return shapes

    @property
    def groups(self) -> np.ndarray:
        """Number of each column's chain."""
        return self.layout_[:, 0]

    def check_parameters(self) -> None:
        """Check all parameters without images."""
        check_whole("n_chains", self.n_chains, most=2**20)
        for name, values, most in (("sizes", self.sizes, 64), ("pools", self.pools, 11)):
            listed = isinstance(values, (list, tuple, np.ndarray))
            if not listed or len(values) not in (2, 3):
                raise InputError(name, values, "two or three whole numbers")
            for value in values:
                check_whole(name, value, most=most)
        if len(self.pools) != len(self.sizes):
            raise InputError("pools", self.pools, f"{len(self.sizes)} numbers, as sizes has")
        check_whole("n_first", self.n_first, most=1024)
        check_whole("n_second", self.n_second, most=2**16)
        check_whole("grid", self.grid, most=64)
        check_whole("n_patches", self.n_patches)
        check_whole("random_state", self.random_state, least=0)

    def fit(self, images: np.ndarray, y: np.ndarray | None = None) -> Chains:
        """Learn the templates from patches of images, layer by layer.

        Raises
        ------
        InputError
            If a parameter is out of range or asks for more memory than there is, or the images are
            too small for the chains or hold too few different patches.
        """
        self.check_parameters()
        raster = self._see(images)
        self._check_shapes()
        self._check_size(raster)
        counts = {"n_first": self.n_first, "n_second": self.n_second, "n_chains": self.n_chains}
        if len(self.sizes) == 2:
            del counts["n_second"]
        layers = learned_layers(
            raster, self.sizes, self.pools, counts, self.n_patches, self.random_state
        )
        # First templates that no chain follows are left out.
        layers, _ = restricted(layers, np.arange(self.n_chains))
        chain, cell = np.indices((self.n_chains, self.grid**2))
        return self._with(layers, np.stack([chain.ravel(), cell.ravel()], axis=1))

    def _check_shapes(self) -> None:
        if min(self.map_shapes[-1]) < self.grid:
            least = self.grid
            for size, pool in zip(reversed(self.sizes), reversed(self.pools), strict=True):
                least = least * pool + size - 1
            raise InputError(
                "images", self.image_shape_, f"images of at least {least}×{least} pixels"
            )

    def _check_size(self, images: Any) -> None:
        """Check that patches, templates and maps are no matter of gigabytes."""
        largest, n = max(self.sizes), min(len(images), MEASURED)
        taps = 4.0 * largest**2 * images.shape[3]
        check_memory("n_patches", self.n_patches, 3 * taps * self.n_patches)
        block = images.dtype.itemsize * float(np.prod(images.shape[1:]))
        check_memory("n_patches", self.n_patches, block * min(len(images), PATCHES_AT_ONCE))
        check_memory("n_chains", self.n_chains, self.n_chains * (2 * taps + 80.0 * self.grid**2))
        before = (self.n_first, self.n_second)[: len(self.sizes) - 1]
        shapes = zip(("n_first", "n_second"), before, self.map_shapes, strict=False)
        for name, maps, (rows, cols) in shapes:
            check_memory(name, maps, 4.0 * n * maps * rows * cols)
        rows, cols = self.map_shapes[-1]
        together = -(-self.n_chains // before[-1])
        check_memory("n_chains", self.n_chains, 4.0 * _AT_ONCE * together * rows * cols)

    def _with(self, layers: list[Layer], layout: np.ndarray) -> Chains:
        self.layers_, self.layout_, self.n_features_ = layers, layout, len(layout)
        return self

    def of(self, layers: list[Layer]) -> Chains:
        """Return the same features with other templates and biases."""
        return self._like()._with(layers, self.layout_)

    def transform(self, images: np.ndarray, features: Ids = None, n_jobs: int = 1) -> np.ndarray:
        """Return features (n_images, n), float32; only their chains are computed."""
        if features is not None:
            return self.take(features).transform(images, None, n_jobs)
        raster = check_images(images, self.image_shape_)
        return self._columns(raster, n_jobs, with_positions=False)[0]

    def values_and_positions(
        self, images: np.ndarray, n_jobs: int = 1
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return features, and where each maximum is: (n, n_features), int32; −1 where it is 0.

        A position is row · columns + column of the last response.
        """
        raster = check_images(images, self.image_shape_)
        return self._columns(raster, n_jobs, with_positions=True)

    def _columns(
        self, raster: np.ndarray, n_jobs: int, with_positions: bool
    ) -> tuple[np.ndarray, np.ndarray]:
        out = np.empty((len(raster), self.n_features_), np.float32)
        where = np.empty(out.shape if with_positions else (0, 0), np.int32)
        chain, cell = self.layout_.T

        def block(start: int, stop: int) -> None:
            maps = maps_of(self.layers_[:-1], raster[start:stop])[0][-1]
            values, positions = columns(self.layers_, maps, self.grid, with_positions)
            out[start:stop] = values[:, cell, chain]
            if with_positions:
                where[start:stop] = positions[:, cell, chain]

        if self.n_features_:
            run_blocks(block, len(raster), _AT_ONCE, n_jobs)
        return out, where

    def boxes(self, image: np.ndarray) -> np.ndarray:
        """Return what each maximum sees, (n_features_, 4); what its cell sees if there is none."""
        place = self.values_and_positions(np.asarray(image)[None])[1][0].astype(np.int64)
        (rows, cols), pool = self.map_shapes[-1], int(self.pools[-1])
        cells = np.divmod(self.layout_[:, 1], self.grid)
        found = np.divmod(place, cols * pool)
        spans = []
        for side, cell, at in zip((rows, cols), cells, found, strict=True):
            bounds = cell_bounds(side, self.grid) * pool
            span = np.stack([bounds[cell], bounds[cell + 1]], axis=1)
            span[place >= 0] = np.stack([at, at + 1], axis=1)[place >= 0]
            spans.append(span)
        field = Field()
        for size, inner_pool in zip(self.sizes, (*self.pools[:-1], 1), strict=True):
            field = field.after(size, inner_pool)
        boxes = seen_boxes(np.concatenate(spans, axis=1), field, field)
        return clipped_boxes(boxes, self.image_shape_)

    def block_ids(self, features: np.ndarray) -> list[np.ndarray]:
        """Return these ids by their first template: its map is computed once for all."""
        ids = check_features(features, self.n_features_)
        first = self._maps_of(ids)[0]
        return [ids[first == number] for number in np.unique(first)]

    def _maps_of(self, ids: np.ndarray) -> list[np.ndarray]:
        """Return which map of each layer features need, from the first layer on."""
        needed = [self.layout_[ids, 0]]
        for below in reversed(self.layers_[1:]):
            needed.insert(0, below.parents[needed[0]])
        return needed

    @property
    def map_macs(self) -> list[int]:
        """Multiply-accumulates per image of one map of each layer."""
        taps = [int(np.prod(own.templates.shape[1:])) for own in self.layers_]
        pools = [own.pool for own in self.layers_]
        shapes = zip(self.map_shapes, pools, taps, strict=True)
        return [rows * cols * pool**2 * n for (rows, cols), pool, n in shapes]

    def macs(self, features: Ids = None) -> int:
        """Return the multiply-accumulates per image of these features together.

        A map that several chains need is counted once, with all positions of its cells; a chain
        costs the same for one of its features as for all.
        """
        needed = self._maps_of(check_features(features, self.n_features_))
        maps = zip(needed, self.map_macs, strict=True)
        return sum(len(np.unique(numbers)) * each for numbers, each in maps)

    def _added_macs(self, chosen: np.ndarray, features: np.ndarray) -> np.ndarray:
        """Return what each feature adds: its maps that no chosen one has, (n,) int64."""
        added = np.zeros(len(features), np.int64)
        there, needed = self._maps_of(chosen), self._maps_of(features)
        for before, numbers, each in zip(there, needed, self.map_macs, strict=True):
            added += np.where(np.isin(numbers, before), 0, each)
        return added

    def _added_bytes(self, chosen: np.ndarray, features: np.ndarray) -> np.ndarray:
        added = np.full(len(features), self.layout_.shape[1] * self.layout_.itemsize)
        there, needed = self._maps_of(chosen), self._maps_of(features)
        # Files leave out the parents of the first layer.
        parents = [0, *(own.parents.itemsize for own in self.layers_[1:])]
        layers = zip(there, needed, self.layers_, parents, strict=True)
        for before, numbers, own, parent in layers:
            each = own.templates[:1].nbytes + own.biases.itemsize + parent
            added += np.where(np.isin(numbers, before), 0, each)
        return added

    def describe(self, feature: int) -> dict[str, Any]:
        """Return the templates and biases of the chain, from the first on, and the cell."""
        number = np.array([check_feature(feature, self.n_features_)])
        maps = [int(layer_maps[0]) for layer_maps in self._maps_of(number)]
        row, col = divmod(int(self.layout_[number[0], 1]), self.grid)
        rows, cols = (cell_bounds(side, self.grid) for side in self.map_shapes[-1])
        chosen = list(zip(maps, self.layers_, strict=True))
        return {
            "kind": "chain",
            "templates": [own.templates[m] for m, own in chosen],
            "biases": [float(own.biases[m]) for m, own in chosen],
            "pools": [int(own.pool) for _, own in chosen],
            "cell": (int(rows[row]), int(rows[row + 1]), int(cols[col]), int(cols[col + 1])),
        }

    def take(self, features: np.ndarray) -> Chains:
        """Return the family restricted to these features, in this order."""
        chain, cell = self.layout_[check_features(features, self.n_features_)].T
        layers, number = restricted(self.layers_, chain)
        return self._like()._with(layers, np.stack([number, cell], axis=1))

    def check_tunable(self) -> None:
        """Templates and biases can be moved."""

    def to_state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return parameters as plain values; templates, biases, their order and layout as arrays.

        The layers are numbered from 1; parents are left out of the first.
        """
        parameters = self.get_params()
        for name in ("sizes", "pools"):
            parameters[name] = [int(value) for value in parameters[name]]
        arrays = {"layout": self.layout_}
        for number, own in enumerate(self.layers_, 1):
            arrays |= {f"templates{number}": own.templates, f"biases{number}": own.biases}
            if number > 1:
                arrays[f"parents{number}"] = own.parents
        return family_state(self, parameters=parameters), arrays

    @classmethod
    def from_state(cls, state: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Chains:
        """Return the family that :meth:`to_state` described."""
        family = unfitted(cls, state, arrays, {"layout": 2})
        family._check_shapes()
        layers: list[Layer] = []
        for number in range(1, len(family.sizes) + 1):
            names = {f"templates{number}": 4, f"biases{number}": 1, f"parents{number}": 1}
            if number == 1:
                del names["parents1"]
            check_state(state, arrays, cls.name, names)
            layers.append(family._layer_from(arrays, number, layers))
        limits = np.array([len(layers[-1].templates), family.grid**2])
        layout = arrays["layout"]
        if layout.dtype != np.int64 or layout.shape[1] != 2:
            raise InputError("layout", layout.shape, "int64 of shape (n, 2)")
        if (layout < 0).any() or (layout >= limits).any():
            raise InputError("layout", "numbers out of range", "chains and cells that exist")
        return family._with(layers, layout)

    def _layer_from(
        self, arrays: Mapping[str, np.ndarray], number: int, before: Sequence[Layer]
    ) -> Layer:
        """Return a layer of a description, numbered from 1, checked; its arrays are there."""
        names = f"templates{number}", f"biases{number}"
        templates, biases = (np.ascontiguousarray(arrays[name]) for name in names)
        n, size = len(templates), self.sizes[number - 1]
        shape = (n, size, size, 1 if before else self.raster_shape[2])
        check_floats(arrays, dict(zip(names, (shape, shape[:1]), strict=True)))
        n_before = len(before[-1].templates) if before else 1
        parents = arrays[f"parents{number}"] if before else np.zeros(n, np.int64)
        ascending = parents.dtype == np.int64 and (np.diff(parents) >= 0).all()
        inside = (parents >= 0).all() and (parents < n_before).all()
        if parents.shape != (n,) or not ascending or not inside:
            accepted = f"{n} numbers of int64 below {n_before}, ascending"
            raise InputError(f"parents{number}", parents.shape, accepted)
        return layer(templates, biases, parents, n_before, self.pools[number - 1])
