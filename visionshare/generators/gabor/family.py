"""Gabor filters: waves under a Gaussian, their absolute responses pooled over positions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from visionshare.errors import InputError
from visionshare.generators.base import (
    FeatureFamily,
    Ids,
    check_dtype,
    check_feature,
    check_features,
    check_images,
)
from visionshare.generators.checks import (
    check_choice,
    check_flag,
    check_memory,
    check_positive,
    check_whole,
)
from visionshare.generators.climbing import Ascent, climb_by_differences
from visionshare.generators.contributions import clipped_boxes
from visionshare.generators.gabor.values import FURTHEST, gabor_values, gray_of, reach_of
from visionshare.generators.inputs import flattened
from visionshare.generators.lazy_images import image_batches
from visionshare.generators.states import Arrays, State, StateAndArrays, family_state, unfitted
from visionshare.machine.resources import run_blocks, single_threaded_blas

POOLINGS = ("sum", "mean", "max")
BORDERS = ("cut", "inside")
# Parameters that files of the first library versions lack, and what they stood for.
_LATER: dict[str, Any] = {"border": "cut", "reach": None, "zero_mean": False, "positions": None}
_Axes = tuple[np.ndarray, np.ndarray]
# Filters whose values are computed together.
_AT_ONCE = 64
# Of the values of filters that are computed together.
_VALUES_BYTES = 64 << 20
# Filters of one call of a kernel.
_FILTERS = 4


@dataclass(eq=False, repr=False)
class GaborBank(FeatureFamily):
    """Absolute responses of Gabor filters, pooled over positions of the image.

    Parameters
    ----------
    n_filters : int, default 500
        Filters that are drawn; their parameters are continuous.
    values : int, optional
        A fixed grid instead: so many values of θ, f₀, σ_z and σ_y each (3 gives 81 filters).
    frequencies : sequence of two floats, default (0.05, 0.45)
        Least and largest f₀, in cycles per pixel; drawn evenly.
    sigmas : sequence of two floats, default (1.0, 6.0)
        Least and largest σ_z and σ_y, in pixels; drawn evenly in the logarithm.
    phases : bool, default False
        Draw the phase of the wave too; 0 otherwise.
    pooling : {"sum", "mean", "max"}, default "sum"
        Of the absolute responses.
    step : int, default 2
        Positions on every so-many-th pixel of both axes, in the middle of the image.
    positions : sequence of two sequences of int, optional
        Rows and columns of given positions instead, each row with each column; for "cut".
    border : {"cut", "inside"}, default "cut"
        "cut": positions are all over the image, and filters are cut at its border. "inside": a
        filter's positions are those where its whole support lies inside. Responses are then the
        same in any window that holds the support, so that the windows of a larger image share
        them, see :meth:`transform_windows`.
    reach : int, optional
        Pixels from the center beyond which filters are cut, where 3 times the larger σ is more.
        With "inside" a quarter of the image's shorter side when omitted, and never more than
        fits; without limit otherwise.
    zero_mean : bool, default False
        Make the values of a whole filter sum to 0: with "inside" no feature then changes with the
        image's brightness.
    random_state : int, default 0
        Seed.

    Attributes
    ----------
    filters_ : ndarray of shape (n_features_, 5), float32
        θ, f₀, σ_z, σ_y and φ of each filter.
    n_features_ : int

    Notes
    -----
    Of a color image the mean of the channels is filtered.

    References
    ----------
    A. Rakotomamonjy, R. Flamary, F. Yger, "Learning with infinitely many features", Machine
    Learning 91, 2013, §5.1 and §6.2.

    Examples
    --------
    >>> import numpy as np
    >>> images = np.random.default_rng(0).random((6, 16, 16))
    >>> GaborBank(values=3).fit(images).transform(images).shape
    (6, 81)
    """

    name = "gabor"
    block_size = _AT_ONCE
    n_filters: int = 500
    values: int | None = None
    frequencies: Sequence[float] = (0.05, 0.45)
    sigmas: Sequence[float] = (1.0, 6.0)
    phases: bool = False
    pooling: str = "sum"
    step: int = 2
    border: str = "cut"
    reach: int | None = None
    zero_mean: bool = False
    positions: Sequence[Sequence[int]] | None = None
    random_state: int = 0

    @property
    def is_continuous(self) -> bool:
        return True

    def check_parameters(self) -> None:
        check_whole("n_filters", self.n_filters)
        check_memory("n_filters", self.n_filters, 80.0 * self.n_filters)
        check_whole("step", self.step)
        check_whole("values", self.values, optional=True)
        check_memory("values", self.values, 100.0 * (self.values or 0) ** 4)
        check_whole("reach", self.reach, optional=True)
        for name, values in (("frequencies", self.frequencies), ("sigmas", self.sigmas)):
            check_positive(name, values)
            if len(values) != 2 or float(values[0]) > float(values[1]):
                raise InputError(name, values, "two numbers above 0, the least before the largest")
        check_flag("phases", self.phases)
        check_flag("zero_mean", self.zero_mean)
        if self.positions is not None:
            _check_positions(self.positions, self.border)
        check_choice("pooling", self.pooling, POOLINGS)
        check_choice("border", self.border, BORDERS)
        check_whole("random_state", self.random_state, least=0)

    def fit(self, images: np.ndarray, y: np.ndarray | None = None) -> GaborBank:
        """Take the size of the images and draw the filters.

        Raises
        ------
        InputError
            If a parameter is out of range.
        """
        self.check_parameters()
        self._see(images)
        self._check_inside()
        if self.values is not None:
            return self._with(self._grid(self.values))
        return self._with(self.draw(self.n_filters, np.random.default_rng(self.random_state)))

    def _with(self, filters: np.ndarray) -> GaborBank:
        self.filters_ = filters
        self.n_features_ = len(filters)
        return self

    def _check_inside(self) -> None:
        for positions, side in zip(self.positions or (), self._size, strict=False):
            if max(positions) >= side:
                raise InputError(
                    "positions", max(positions), f"numbers below {side}, the image's side"
                )

    def draw(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Return parameters of ``n`` filters, (n, 5) float32, drawn from the ranges."""
        filters = np.zeros((n, 5))
        filters[:, 0] = rng.uniform(0, np.pi, n)
        low, high = self.frequencies
        filters[:, 1] = rng.uniform(low, high, n)
        low, high = np.log(self.sigmas)
        filters[:, 2:4] = np.exp(rng.uniform(low, high, (n, 2)))
        if self.phases:
            filters[:, 4] = rng.uniform(0, 2 * np.pi, n)
        return filters.astype(np.float32)

    def climb(self, parameters: np.ndarray, ascent: Ascent) -> np.ndarray:
        """Return a filter that promises more, by differences, within the ranges of the draws."""
        (low, high), (narrow, wide) = map(tuple, (self.frequencies, self.sigmas))
        lengths = np.array([0.1, 0.1 * (high - low), *(0.1 * parameters[2:4]), 0.0])
        if self.phases:
            lengths[4] = 0.2

        def inside(filters: np.ndarray) -> np.ndarray:
            filters[:, 1] = np.clip(filters[:, 1], low, high)
            filters[:, 2:4] = np.clip(filters[:, 2:4], narrow, wide)
            return filters

        return climb_by_differences(parameters, lengths, inside, ascent.score, ascent.steps).astype(
            np.float32
        )

    def check_tunable(self) -> None:
        """Filters can move."""

    def at(self, parameters: np.ndarray) -> GaborBank:
        """Return the family of these filters, (n, 5)."""
        return self._like()._with(np.asarray(parameters, np.float32))

    def _grid(self, k: int) -> np.ndarray:
        """Return k⁴ filters: k orientations, k frequencies, k widths along and across."""
        theta = np.arange(k) * np.pi / k
        between = (np.arange(k) + 0.5) / k
        f0 = self.frequencies[0] + between * (self.frequencies[1] - self.frequencies[0])
        low, high = np.log(self.sigmas)
        sigma = np.exp(low + between * (high - low))
        axes = np.meshgrid(theta, f0, sigma, sigma, [0.0], indexing="ij")
        return np.stack([a.ravel() for a in axes], axis=1).astype(np.float32)

    @property
    def _size(self) -> tuple[int, int]:
        shape = self.image_shape_
        return (1, shape[0]) if len(shape) == 1 else (shape[0], shape[1])

    def _reach(self, ids: np.ndarray) -> np.ndarray:
        """Return how many pixels from the center each filter is cut at."""
        limit = self.reach
        shorter = min(self._size)
        if self.border == "inside":
            limit = min(shorter // 4 if limit is None else limit, (shorter - 1) // 2)
        reach = reach_of(self.filters_[ids])
        return reach if limit is None else np.minimum(reach, limit)

    def _by_positions(self, reach: np.ndarray) -> Iterator[tuple[np.ndarray, _Axes]]:
        """Yield the indices of filters that have the same positions, and rows and columns."""
        margins = reach if self.border == "inside" else np.zeros_like(reach)
        for margin in np.unique(margins):
            axes = [np.array(sorted(given), np.int64) for given in self.positions or ()]
            for side in self._size if self.positions is None else ():
                first = margin + (side - 2 * margin - 1) % self.step // 2
                axes.append(np.arange(first, side - margin, self.step))
            yield np.flatnonzero(margins == margin), (axes[0], axes[1])

    def transform_columns(
        self, images: np.ndarray, features: Ids = None, n_jobs: int = 1, dtype: str = "float32"
    ) -> np.ndarray:
        """Return features transposed, (n, n_images), float32 or float16.

        A column's bits depend neither on what else is asked for nor on batches or threads.
        """
        check_dtype(dtype)
        ids = check_features(features, self.n_features_)
        from visionshare.generators.gabor.spectra import prefers_spectra

        raster = check_images(images, self.image_shape_)
        out = np.empty((len(ids), len(raster)), dtype)
        reach = self._reach(ids)
        with single_threaded_blas():
            for filters, axes in self._by_positions(reach):
                spectral = prefers_spectra(axes, self._size[1], reach[filters])
                # Given positions need not be evenly spaced.
                spectral &= self.positions is None
                for transform, own in (
                    (self._by_spectra, filters[spectral]),
                    (self._by_products, filters[~spectral]),
                ):
                    if len(own):
                        transform(raster, ids[own], axes, n_jobs, out, own)
        return out

    def _by_spectra(
        self, raster: np.ndarray, ids: np.ndarray, axes: _Axes, n_jobs: int,
        out: np.ndarray, to: np.ndarray,
    ) -> None:  # fmt: skip
        """Write features as rows ``to`` of ``out``, by way of the frequency domain."""
        from visionshare.generators.gabor.spectra import Filters, spectral_responses

        bank = Filters(self.filters_[ids], self._reach(ids), self.step, self.zero_mean)
        for rows in image_batches(len(raster), 8.0 * np.prod(raster.shape[1:])):
            gray = gray_of(raster[rows])
            part = np.empty((len(ids), len(gray)), np.float32)
            spectral_responses(gray, bank, axes, self.pooling == "max", part, n_jobs)
            out[to, rows] = self._as_mean(part, axes)

    def _by_products(
        self, raster: np.ndarray, ids: np.ndarray, axes: _Axes, n_jobs: int,
        out: np.ndarray, to: np.ndarray,
    ) -> None:  # fmt: skip
        """Write features as rows ``to`` of ``out``, by products of matrices."""
        from visionshare.generators.gabor.kernels import TILE, pooled_responses

        reach = self._reach(ids)
        common = (*self._size, *axes, self.pooling == "max")
        # Of a filter the values at all offsets; of an image its floats, and copies on the way.
        at_once = min(_AT_ONCE, max(1, _VALUES_BYTES // self._bytes_of_values))
        of_image = 4.0 * 4 * np.prod(raster.shape[1:3]) + raster[:1].nbytes * 4
        for start in range(0, len(ids), at_once):
            batch = slice(start, start + at_once)
            values = self._values(ids[batch], reach[batch])
            for rows in image_batches(len(raster), of_image):
                tiles, n = _tiles(raster[rows], TILE)
                part = np.empty((len(values), len(tiles), TILE), np.float32)
                arrays = (values, reach[batch], part)
                _in_blocks(partial(pooled_responses, tiles), arrays, common, n_jobs)
                responses = part.reshape(len(values), -1)[:, :n]
                out[to[batch], rows] = self._as_mean(responses, axes)

    def _as_mean(self, pooled: np.ndarray, axes: _Axes) -> np.ndarray:
        """Return sums over positions as their mean, where that is the pooling."""
        if self.pooling != "mean":
            return pooled
        return pooled * np.float32(1 / (len(axes[0]) * len(axes[1])))

    @property
    def _bytes_of_values(self) -> int:
        height, width = self._size
        return 4 * (2 * height - 1) * (2 * width - 1)

    def boxes(self, image: np.ndarray) -> np.ndarray:
        """Return the supports of the largest responses, (n_features_, 4), where maxima are pooled.

        A sum or mean is of responses all over the image.
        """
        if self.pooling != "max":
            return super().boxes(image)
        from scipy.signal import oaconvolve

        gray = gray_of(check_images(np.asarray(image)[None], self.image_shape_))[0]
        ids, (height, width) = np.arange(self.n_features_), self._size
        boxes = np.empty((len(ids), 4))
        reach = self._reach(ids)
        for filters, (ys, xs) in self._by_positions(reach):
            for j in filters:
                # Of an image that is turned, convolution is correlation.
                turned = self._values(ids[[j]], reach[[j]])[0, ::-1, ::-1]
                whole = oaconvolve(gray, turned)[height - 1 :, width - 1 :][:height, :width]
                at = np.abs(whole[np.ix_(ys, xs)]).argmax()
                y = ys[at // len(xs)]
                x = xs[at % len(xs)]
                boxes[j] = y - reach[j], y + reach[j] + 1, x - reach[j], x + reach[j] + 1
        return clipped_boxes(boxes, self.image_shape_)

    def _values(self, ids: np.ndarray, reach: np.ndarray) -> np.ndarray:
        height, width = self._size
        values = np.empty((len(ids), 2 * height - 1, 2 * width - 1), np.float32)
        # A few filters at a time: their values are computed from a dozen arrays of float64.
        step = max(1, _VALUES_BYTES // (32 * self._bytes_of_values))
        for i in range(0, len(ids), step):
            some = slice(i, i + step)
            filters = self.filters_[ids[some]]
            values[some] = gabor_values(filters, height, width, reach[some], self.zero_mean)
        return values

    @property
    def shares_windows(self) -> bool:
        """Whether the windows of a larger image share responses: with border "inside"."""
        return self.border == "inside" and len(self.image_shape_) > 1

    def transform_windows(
        self, image: np.ndarray, ys: np.ndarray, xs: np.ndarray, n_jobs: int = 1
    ) -> np.ndarray:
        from visionshare.generators.gabor.kernels import shared_responses

        if not self.shares_windows:
            return super().transform_windows(image, ys, xs, n_jobs)
        ids = np.arange(self.n_features_)
        reach = self._reach(ids)
        gray = gray_of(check_images(np.asarray(image)[None]))[0]
        strides = [int(v[1] - v[0]) if len(v) > 1 else 1 for v in (ys, xs)]
        corner = int(ys[0]), int(xs[0])
        out = np.empty((len(ids), len(ys), len(xs)), np.float32)
        for filters, (rows, cols) in self._by_positions(reach):
            part = np.empty((len(filters), *out.shape[1:]), np.float32)
            common = (rows, cols, corner, (strides[0], strides[1]), self.pooling == "max")
            arrays = (self._values(filters, reach[filters]), reach[filters], part)
            _in_blocks(partial(shared_responses, gray), arrays, common, n_jobs)
            if self.pooling == "mean":
                part *= np.float32(1 / (len(rows) * len(cols)))
            out[filters] = part
        return out

    def macs(self, features: Ids = None) -> int:
        """Return the multiply-accumulates per image: each filter's support at each position."""
        return int(self._costs(check_features(features, self.n_features_)).sum())

    def _costs(self, ids: np.ndarray) -> np.ndarray:
        """Return each filter's multiply-accumulates, int64."""
        reach = self._reach(ids)
        costs = np.ones(len(ids), np.int64)
        for filters, axes in self._by_positions(reach):
            for positions, side in zip(axes, self._size, strict=True):
                near = np.minimum(reach[filters], side)[:, None]
                first = np.maximum(positions - near, 0)
                last = np.minimum(positions + near, side - 1)
                costs[filters] *= (last - first + 1).sum(axis=1)
        return costs

    def _added_macs(self, chosen: np.ndarray, features: np.ndarray) -> np.ndarray:
        # Filters share nothing.
        return self._costs(features)

    def _added_bytes(self, chosen: np.ndarray, features: np.ndarray) -> np.ndarray:
        return np.full(len(features), self.filters_.shape[1] * self.filters_.itemsize)

    def describe(self, feature: int) -> dict[str, Any]:
        """Return the filter's parameters and its values around the center."""
        number = np.array([check_feature(feature, self.n_features_)])
        theta, f0, sigma_z, sigma_y, phase = map(float, self.filters_[number[0]])
        return {
            "kind": "gabor",
            "theta": theta,
            "frequency": f0,
            "sigma_z": sigma_z,
            "sigma_y": sigma_y,
            "phase": phase,
            "filter": self._values(number, self._reach(number))[0],
        }

    def take(self, features: np.ndarray) -> GaborBank:
        ids = check_features(features, self.n_features_)
        return self.at(self.filters_[ids])

    def to_state(self) -> StateAndArrays:
        """Return parameters as plain values, filters as an array."""
        parameters = self.get_params()
        for name in ("frequencies", "sigmas"):
            parameters[name] = [float(v) for v in parameters[name]]
        for name, first in _LATER.items():
            # Without it, older library versions can read what they can compute.
            if parameters[name] == first:
                del parameters[name]
        return family_state(self, parameters=parameters), {"filters": self.filters_}

    @classmethod
    def from_state(cls, state: State, arrays: Arrays) -> GaborBank:
        family = unfitted(cls, state, arrays, {"filters": 2}, _LATER)
        filters, (height, width) = arrays["filters"], family._size
        if filters.dtype != np.float32 or filters.shape[1] != 5 or (filters[:, 2:4] <= 0).any():
            raise InputError("filters", filters.shape, "float32 of shape (n, 5), widths above 0")
        if height * width > FURTHEST:
            accepted = f"at most {FURTHEST} pixels for Gabor filters"
            raise InputError("image_shape", family.image_shape_, accepted)
        family._check_inside()
        return family._with(filters)


def _in_blocks(
    kernel: Callable[..., None],
    arrays: tuple[np.ndarray, np.ndarray, np.ndarray],
    common: tuple[Any, ...],
    n_jobs: int,
) -> None:
    """Call a kernel with values, reach and result of some filters at a time, on threads."""
    values, reach, out = arrays

    def block(start: int, stop: int) -> None:
        kernel(values[start:stop], reach[start:stop], *common, out[start:stop])

    run_blocks(block, len(values), _FILTERS, n_jobs)


def _check_positions(positions: Any, border: str) -> None:
    accepted = "rows and columns, different whole numbers each"
    if not isinstance(positions, (list, tuple)) or len(positions) != 2:
        raise InputError("positions", positions, accepted)
    for axis in positions:
        whole = isinstance(axis, (list, tuple)) and all(type(v) is int and v >= 0 for v in axis)
        if not whole or not axis or len(set(axis)) < len(axis):
            raise InputError("positions", axis, accepted)
    if border != "cut":
        raise InputError("positions", "given", "None, where positions follow from the border")


def _tiles(images: np.ndarray, size: int) -> tuple[np.ndarray, int]:
    """Return images (tiles, H·W, size), one image per column, and their number."""
    n = len(images)
    gray = flattened(gray_of(images))
    padded = np.zeros((-(-n // size) * size, gray.shape[1]), np.float32)
    padded[:n] = gray
    turned = padded.reshape(-1, size, gray.shape[1]).transpose(0, 2, 1)
    return np.ascontiguousarray(turned), n
