"""Histograms of local binary patterns in the cells of a grid."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from visionshare.errors import InputError
from visionshare.generators.base import (
    FeatureFamily,
    Ids,
    check_feature,
    check_features,
    check_images,
)
from visionshare.generators.checks import check_choice, check_memory, check_whole
from visionshare.generators.contributions import clipped_boxes
from visionshare.generators.lbp.patterns import Circle, circle, codes_of_patterns
from visionshare.generators.states import Arrays, State, StateAndArrays, family_state, unfitted
from visionshare.machine.resources import run_blocks

CODES = ("rotation-invariant", "uniform")
_MOST_POINTS = 16
_LARGEST_RADIUS = 64
# Images of a block: few, so that all threads have some of a small batch.
_AT_ONCE = 16


@dataclass(eq=False, repr=False)
class LocalBinaryPatterns(FeatureFamily):
    """How often a code of local binary patterns occurs in a cell of the image.

    The pattern of a pixel says which points on a circle around it are at least as bright;
    brightness and contrast of the image do not matter. Patterns that change at most twice around
    the circle, edges, corners and spots, have codes of their own. A feature is the fraction of a
    cell's pixels that have one code. Feature ``(r · grid + c) · n_codes + code`` is of the cell in
    row r and column c.

    Parameters
    ----------
    codes : {"rotation-invariant", "uniform"}, default "rotation-invariant"
        Whether rotated patterns have one code (``points + 2`` codes), or one each
        (``points · (points − 1) + 3``).
    radius : float, default 1.0
        Of the circle, in pixels, at most 64.
    points : int, default 8
        On the circle, 4 to 16; between pixels values are interpolated.
    grid : int, default 2
        Cells per side. Pixels whose circle leaves the image are in none.

    Attributes
    ----------
    ids_ : ndarray of shape (n_features_,), int64
        Number of each feature among all of the pool.
    cells_ : ndarray of shape (grid², 4), int64
        First row, last row (exclusive), first column and last column of each cell.
    n_features_ : int
    image_shape_ : tuple of int

    Notes
    -----
    Of a color image the sum of the channels is compared.

    References
    ----------
    T. Ojala, M. Pietikäinen, T. Mäenpää, "Multiresolution gray-scale and rotation invariant
    texture classification with local binary patterns", IEEE PAMI 24(7), 2002.

    Examples
    --------
    >>> images = np.random.default_rng(0).integers(0, 256, (3, 12, 12), np.uint8)
    >>> family = LocalBinaryPatterns(grid=1).fit(images)
    >>> family.transform(images).shape, family.transform(images).sum(axis=1).tolist()
    ((3, 10), [1.0, 1.0, 1.0])
    """

    name = "lbp"
    codes: str = "rotation-invariant"
    radius: float = 1.0
    points: int = 8
    grid: int = 2

    def check_parameters(self) -> None:
        check_choice("codes", self.codes, CODES)
        check_whole("grid", self.grid)
        check_whole("points", self.points, least=4, most=_MOST_POINTS)
        if not isinstance(self.radius, Real) or not 0 < float(self.radius) <= _LARGEST_RADIUS:
            raise InputError("radius", self.radius, f"a number above 0, at most {_LARGEST_RADIUS}")

    def fit(self, images: np.ndarray, y: np.ndarray | None = None) -> LocalBinaryPatterns:
        """Take the size of the images and divide it into cells.

        Raises
        ------
        InputError
            If a parameter is out of range, or the images are too small for the circle and the grid.
        """
        self.check_parameters()
        self._see(images)
        self._set_cells()
        return self._with(np.arange(len(self.cells_) * self.n_codes))

    def _with(self, ids: np.ndarray) -> LocalBinaryPatterns:
        self.ids_ = ids
        self.n_features_ = len(ids)
        return self

    def _set_cells(self) -> None:
        shape = self.image_shape_
        margin = int(np.ceil(self.radius))
        sides = (1, *shape) if len(shape) == 1 else shape[:2]
        if min(sides) < 2 * margin + self.grid:
            accepted = f"images of at least {2 * margin + self.grid} pixels per side"
            raise InputError("images", shape, accepted)
        # Without memory for all cells a file would end the process.
        check_memory("grid", self.grid, 80.0 * self.grid**2)
        rows, cols = (
            margin + np.arange(self.grid + 1) * (side - 2 * margin) // self.grid for side in sides
        )
        r, c = (axis.ravel() for axis in np.indices((self.grid, self.grid)))
        self.cells_ = np.stack([rows[r], rows[r + 1], cols[c], cols[c + 1]], axis=1)

    @property
    def n_codes(self) -> int:
        """Number of codes, the last of all patterns that are not uniform."""
        p = int(self.points)
        return p + 2 if self.codes == "rotation-invariant" else p * (p - 1) + 3

    @property
    def circle(self) -> Circle:
        """The pixels that a pattern compares with its center, and their weights."""
        return circle(float(self.radius), int(self.points))

    @property
    def code_of_pattern(self) -> np.ndarray:
        """Code of every pattern, (2^points,) int64."""
        return codes_of_patterns(int(self.points), rotations=self.codes == "uniform")

    @property
    def sizes(self) -> np.ndarray:
        """Number of pixels of each cell, (grid²,) int64."""
        y0, y1, x0, x1 = self.cells_.T
        return np.asarray((y1 - y0) * (x1 - x0))

    def cells_and_codes(self, ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return cell and code of features."""
        return np.divmod(self.ids_[ids], self.n_codes)

    def transform(self, images: np.ndarray, features: Ids = None, n_jobs: int = 1) -> np.ndarray:
        """Return features (n_images, n), float32; only cells with features are looked at."""
        from visionshare.generators.lbp.kernels import cell_histograms

        ids = check_features(features, self.n_features_)
        images = check_images(images, self.image_shape_)
        cell, code = self.cells_and_codes(ids)
        used, row = np.unique(cell, return_inverse=True)
        scales = (1 / self.sizes[cell]).astype(np.float32)
        out = np.empty((len(images), len(ids)), np.float32)
        tables = (*self.circle, self.code_of_pattern, self.cells_[used])

        def block(start: int, stop: int) -> None:
            counts = np.zeros((stop - start, len(used), self.n_codes), np.int32)
            cell_histograms(np.ascontiguousarray(images[start:stop]), *tables, counts)
            chosen = counts[:, row.reshape(-1), code].astype(np.float32)
            out[start:stop] = chosen * scales

        run_blocks(block, len(images), _AT_ONCE, n_jobs)
        return out

    def boxes(self, image: np.ndarray) -> np.ndarray:
        """Return the cells with the circles of their pixels, (n_features_, 4)."""
        cell, _ = self.cells_and_codes(np.arange(self.n_features_))
        reach = int(np.ceil(self.radius))
        return clipped_boxes(self.cells_[cell] + [-reach, reach] * 2, self.image_shape_)

    def block_ids(self, features: np.ndarray) -> list[np.ndarray]:
        """Return these ids by cell: all codes of a cell cost as much as one."""
        ids = check_features(features, self.n_features_)
        cell = self.cells_and_codes(ids)[0]
        return [ids[cell == k] for k in np.unique(cell)]

    def macs(self, features: Ids = None) -> int:
        """Return the multiply-accumulates per image: the interpolation in every cell in use."""
        cell = self.cells_and_codes(check_features(features, self.n_features_))[0]
        return int(self.sizes[np.unique(cell)].sum()) * len(self.circle.weights)

    def _added_macs(self, chosen: np.ndarray, features: np.ndarray) -> np.ndarray:
        costs = self.sizes * len(self.circle.weights)
        costs[self.cells_and_codes(chosen)[0]] = 0
        return np.asarray(costs[self.cells_and_codes(features)[0]])

    def _added_bytes(self, chosen: np.ndarray, features: np.ndarray) -> np.ndarray:
        return np.full(len(features), self.ids_.itemsize)

    def describe(self, feature: int) -> dict[str, Any]:
        """Return the cell and the code; "code" is None for all patterns that are not uniform."""
        number = np.array([check_feature(feature, self.n_features_)])
        cell, code = (int(part[0]) for part in self.cells_and_codes(number))
        return {
            "kind": "lbp",
            "cell": tuple(int(side) for side in self.cells_[cell]),
            "code": code if code < self.n_codes - 1 else None,
            "radius": float(self.radius),
            "points": int(self.points),
        }

    def take(self, features: np.ndarray) -> LocalBinaryPatterns:
        ids = self.ids_[check_features(features, self.n_features_)]
        return self._like("cells_")._with(ids)

    def to_state(self) -> StateAndArrays:
        """Return parameters as plain values, ids as an array."""
        parameters = {
            "codes": self.codes,
            "radius": float(self.radius),
            "points": self.points,
            "grid": self.grid,
        }
        return family_state(self, parameters=parameters), {"ids": self.ids_}

    @classmethod
    def from_state(cls, state: State, arrays: Arrays) -> LocalBinaryPatterns:
        family = unfitted(cls, state, arrays, {"ids": 1})
        family._set_cells()
        return family._with(check_features(arrays["ids"], len(family.cells_) * family.n_codes))
