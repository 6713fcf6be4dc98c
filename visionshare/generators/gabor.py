"""Gabor filters: waves under a Gaussian, their absolute responses pooled over positions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator

from visionshare.errors import InputError
from visionshare.generators.base import check_features, check_images, check_state
from visionshare.generators.pixels import image_shape
from visionshare.resources import thread_limit

__all__ = ["GaborBank", "gabor_values"]

POOLINGS = ("sum", "mean", "max")
_CUT = 3.0
_AT_ONCE = 64


def gabor_values(parameters: np.ndarray, height: int, width: int) -> np.ndarray:
    """Return Gabor functions at all offsets that an image has, centre in the middle.

    exp(−z₀²/2σ_z² − y₀²/2σ_y²) cos(2πf₀z₀ + φ) with z₀ = z cos θ + y sin θ and
    y₀ = −z sin θ + y cos θ, z to the right and y down; zero beyond 3 times the larger σ on
    either axis.

    Parameters
    ----------
    parameters : ndarray of shape (n, 5)
        θ in radians, f₀ in cycles a pixel, σ_z and σ_y in pixels, φ in radians.
    height, width : int
        Of the images.

    Returns
    -------
    ndarray of shape (n, 2·height − 1, 2·width − 1), float32

    References
    ----------
    A. Rakotomamonjy, R. Flamary, F. Yger, "Learning with infinitely many features", Machine
    Learning 91, 2013, §5.1.
    """
    theta, f0, sigma_z, sigma_y, phase = np.asarray(parameters, np.float64).T[:, :, None, None]
    y, z = np.arange(1 - height, height)[:, None], np.arange(1 - width, width)[None, :]
    z0 = z * np.cos(theta) + y * np.sin(theta)
    y0 = -z * np.sin(theta) + y * np.cos(theta)
    values = np.exp(-(z0**2) / (2 * sigma_z**2) - y0**2 / (2 * sigma_y**2))
    values *= np.cos(2 * np.pi * f0 * z0 + phase)
    reach = _reach(parameters)[:, None, None]
    return np.where((np.abs(z) <= reach) & (np.abs(y) <= reach), values, 0).astype(np.float32)


def _reach(parameters: np.ndarray) -> np.ndarray:
    """Return how many pixels a filter's support reaches from its centre."""
    return np.ceil(_CUT * np.asarray(parameters, np.float64)[:, 2:4].max(axis=1)).astype(np.int64)


class GaborBank(BaseEstimator):
    """Absolute responses of Gabor filters, pooled over positions of the image.

    Parameters
    ----------
    n_filters : int, default 500
        Filters that are drawn; their parameters are continuous.
    values : int, optional
        A fixed grid instead: so many values of θ, f₀, σ_z and σ_y each (3 gives 81 filters).
    frequencies : sequence of two floats, default (0.05, 0.45)
        Least and largest f₀, in cycles a pixel; drawn evenly.
    sigmas : sequence of two floats, default (1.0, 6.0)
        Least and largest σ_z and σ_y, in pixels; drawn evenly in the logarithm.
    phases : bool, default False
        Draw the phase of the wave too; 0 otherwise.
    pooling : {"sum", "mean", "max"}, default "sum"
        Of the absolute responses.
    step : int, default 2
        Positions on every so-many-th pixel of both axes, in the middle of the image.
    random_state : int, default 0
        Seed.

    Attributes
    ----------
    filters_ : ndarray of shape (n_features_, 5), float32
        θ, f₀, σ_z, σ_y and φ of each filter.
    n_features_ : int

    Notes
    -----
    Of a colour image the mean of the channels is filtered.

    References
    ----------
    A. Rakotomamonjy, R. Flamary, F. Yger, "Learning with infinitely many features", Machine
    Learning 91, 2013, §5.1 and §6.2.

    Examples
    --------
    >>> import numpy as np
    >>> images = np.random.default_rng(0).random((6, 16, 16))
    >>> GaborBank(values=3).fit(images).evaluate(images).shape
    (6, 81)
    """

    name: ClassVar[str] = "gabor"
    groups: ClassVar[np.ndarray | None] = None
    features_a_draw: ClassVar[int] = 1

    def __init__(
        self,
        n_filters: int = 500,
        values: int | None = None,
        frequencies: Sequence[float] = (0.05, 0.45),
        sigmas: Sequence[float] = (1.0, 6.0),
        phases: bool = False,
        pooling: str = "sum",
        step: int = 2,
        random_state: int = 0,
    ) -> None:
        self.n_filters = n_filters
        self.values = values
        self.frequencies = frequencies
        self.sigmas = sigmas
        self.phases = phases
        self.pooling = pooling
        self.step = step
        self.random_state = random_state

    def check_parameters(self) -> None:
        """Check all parameters without images.

        Raises
        ------
        InputError
            If a parameter is out of range.
        """
        for name in ("n_filters", "values", "step"):
            value = getattr(self, name)
            if name == "values" and value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
                raise InputError(name, value, "a whole number of at least 1")
        for name in ("frequencies", "sigmas"):
            value = getattr(self, name)
            pair = isinstance(value, (list, tuple, np.ndarray)) and len(value) == 2
            if not pair or not all(isinstance(v, Real) and 0 < float(v) < np.inf for v in value):
                raise InputError(name, value, "two numbers above 0")
            if float(value[0]) > float(value[1]):
                raise InputError(name, value, "the least before the largest")
        if not isinstance(self.phases, bool):
            raise InputError("phases", self.phases, "true or false")
        if self.pooling not in POOLINGS:
            raise InputError("pooling", self.pooling, " or ".join(map(repr, POOLINGS)))

    def fit(self, images: np.ndarray, y: np.ndarray | None = None) -> GaborBank:
        """Take the size of the images and draw the filters.

        Parameters
        ----------
        images : ndarray of shape (n, H, W) or (n, H, W, C)
        y : ignored

        Raises
        ------
        InputError
            If a parameter is out of range.
        """
        self.check_parameters()
        images = np.asarray(images)
        check_images(images)
        self.image_shape_ = tuple(int(s) for s in images.shape[1:])
        if self.values is None:
            self.filters_ = self.draw(self.n_filters, np.random.default_rng(self.random_state))
        else:
            self.filters_ = self._grid(self.values)
        self.n_features_ = len(self.filters_)
        return self

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

    def at(self, parameters: np.ndarray) -> GaborBank:
        """Return the family of these filters, (n, 5)."""
        chosen = GaborBank(**self.get_params())
        chosen.image_shape_ = self.image_shape_
        chosen.filters_ = np.asarray(parameters, np.float32)
        chosen.n_features_ = len(chosen.filters_)
        return chosen

    def _grid(self, k: int) -> np.ndarray:
        """Return k⁴ filters: k orientations, k frequencies, k widths along and across."""
        theta = np.arange(k) * np.pi / k
        between = (np.arange(k) + 0.5) / k
        f0 = self.frequencies[0] + between * (self.frequencies[1] - self.frequencies[0])
        low, high = np.log(self.sigmas)
        sigma = np.exp(low + between * (high - low))
        axes = np.meshgrid(theta, f0, sigma, sigma, [0.0], indexing="ij")
        return np.stack([a.ravel() for a in axes], axis=1).astype(np.float32)

    def sample(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Return ``n`` different feature ids."""
        return rng.choice(self.n_features_, n, replace=False)

    @property
    def _size(self) -> tuple[int, int]:
        shape = self.image_shape_
        return (1, shape[0]) if len(shape) == 1 else (shape[0], shape[1])

    def _positions(self) -> tuple[np.ndarray, np.ndarray]:
        height, width = self._size
        rows, cols = ((side - 1) % self.step // 2 for side in (height, width))
        return np.arange(rows, height, self.step), np.arange(cols, width, self.step)

    def evaluate(
        self, images: np.ndarray, features: np.ndarray | None = None, n_jobs: int = 1
    ) -> np.ndarray:
        """Return features (n_images, n), float32.

        Parameters
        ----------
        images : ndarray of shape (n_images, *image_shape_), uint8 or float
        features : ndarray of int, optional
            Ids; all when omitted.
        n_jobs : int, default 1
            Threads.
        """
        return np.ascontiguousarray(self.evaluate_columns(images, features, n_jobs).T)

    def evaluate_columns(
        self,
        images: np.ndarray,
        features: np.ndarray | None = None,
        n_jobs: int = 1,
        dtype: str = "float32",
    ) -> np.ndarray:
        """Return features transposed, (n, n_images), float32 or float16.

        A column's bits depend neither on what else is asked for nor on batches or threads.
        """
        if dtype not in ("float32", "float16"):
            raise InputError("dtype", dtype, "'float32' or 'float16'")
        ids = check_features(features, self.n_features_)
        from visionshare.generators.gabor_kernels import TILE, pooled_responses

        tiles, n = _tiles(check_images(images, self.image_shape_), TILE)
        ys, xs = self._positions()
        out = np.empty((len(ids), n), dtype)
        with thread_limit(n_jobs):
            for start in range(0, len(ids), _AT_ONCE):
                filters = self.filters_[ids[start : start + _AT_ONCE]]
                values = gabor_values(filters, *self._size)
                part = np.empty((len(filters), len(tiles), TILE), np.float32)
                pooled_responses(
                    tiles, values, _reach(filters), *self._size, ys, xs, self.pooling == "max", part
                )
                if self.pooling == "mean":
                    part *= np.float32(1 / (len(ys) * len(xs)))
                out[start : start + _AT_ONCE] = part.reshape(len(filters), -1)[:, :n]
        return out

    def block_ids(self, features: np.ndarray) -> list[np.ndarray]:
        """Return these ids in groups that are evaluated together."""
        ids = check_features(features, self.n_features_)
        return [ids[i : i + _AT_ONCE] for i in range(0, len(ids), _AT_ONCE)]

    def macs(self, features: np.ndarray | None = None) -> int:
        """Return the multiply-accumulates an image: each filter's support at each position."""
        return int(self._costs(check_features(features, self.n_features_)).sum())

    def _costs(self, ids: np.ndarray) -> np.ndarray:
        """Return each filter's multiply-accumulates, int64."""
        counts = []
        for positions, side in zip(self._positions(), self._size, strict=True):
            reach = np.minimum(_reach(self.filters_[ids]), side)[:, None]
            first = np.maximum(positions - reach, 0)
            last = np.minimum(positions + reach, side - 1)
            counts.append((last - first + 1).sum(axis=1))
        return counts[0] * counts[1]

    def added_macs(self, chosen: np.ndarray, features: np.ndarray | None = None) -> np.ndarray:
        """Return each filter's own cost, (n,) int64: filters share nothing."""
        check_features(chosen, self.n_features_)
        return self._costs(check_features(features, self.n_features_))

    def describe(self, feature: int) -> dict[str, Any]:
        """Return the filter's parameters and its values around the centre."""
        number = check_features(np.array([feature]), self.n_features_)
        theta, f0, sigma_z, sigma_y, phase = map(float, self.filters_[number[0]])
        return {
            "kind": "gabor",
            "theta": theta,
            "frequency": f0,
            "sigma_z": sigma_z,
            "sigma_y": sigma_y,
            "phase": phase,
            "filter": gabor_values(self.filters_[number], *self._size)[0],
        }

    def take(self, features: np.ndarray) -> GaborBank:
        """Return the family restricted to these features, in this order."""
        ids = check_features(features, self.n_features_)
        return self.at(self.filters_[ids])

    def to_state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return parameters as plain values, filters as an array."""
        parameters = self.get_params()
        for name in ("frequencies", "sigmas"):
            parameters[name] = [float(v) for v in parameters[name]]
        state = {
            "family": self.name,
            "version": 1,
            "image_shape": list(self.image_shape_),
            "parameters": parameters,
        }
        return state, {"filters": self.filters_}

    @classmethod
    def from_state(cls, state: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> GaborBank:
        """Return the family that :meth:`to_state` described."""
        check_state(state, arrays, cls.name, {"filters": 2})
        shape = image_shape(state.get("image_shape"))
        parameters = state.get("parameters")
        names = set(cls().get_params())
        if not isinstance(parameters, dict) or set(parameters) != names:
            raise InputError("parameters", parameters, f"values for {sorted(names)}")
        family, filters = cls(**parameters), arrays["filters"]
        family.check_parameters()
        if filters.dtype != np.float32 or filters.shape[1] != 5 or (filters[:, 2:4] <= 0).any():
            raise InputError("filters", filters.shape, "float32 of shape (n, 5), widths above 0")
        height, width = (1, shape[0]) if len(shape) == 1 else (shape[0], shape[1])
        if height * width > 2**16:
            raise InputError("image_shape", shape, "at most 65536 pixels for Gabor filters")
        family.image_shape_, family.filters_, family.n_features_ = shape, filters, len(filters)
        return family


def _tiles(images: np.ndarray, size: int) -> tuple[np.ndarray, int]:
    """Return images (tiles, H·W, size), an image a column, and their number."""
    n = len(images)
    grey = images.astype(np.float32).mean(axis=3, dtype=np.float32).reshape(n, -1)
    if images.dtype == np.uint8:
        grey *= np.float32(1 / 255)
    padded = np.zeros((-(-n // size) * size, grey.shape[1]), np.float32)
    padded[:n] = grey
    turned = padded.reshape(-1, size, grey.shape[1]).transpose(0, 2, 1)
    return np.ascontiguousarray(turned), n
