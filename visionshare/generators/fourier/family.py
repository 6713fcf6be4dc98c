"""Random Fourier maps: pairs of cosine and sine whose products approximate a kernel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
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
from visionshare.generators.climbing import Ascent
from visionshare.generators.fourier.climbing import climb_frequency
from visionshare.generators.inputs import check_scaling, fit_scaling, flattened, rows_of
from visionshare.generators.states import (
    Arrays,
    State,
    StateAndArrays,
    check_floats,
    family_state,
    unfitted,
)
from visionshare.machine.resources import run_blocks, single_threaded_blas

KERNELS = ("gaussian", "laplacian", "cauchy")
# Images and pairs of one product.
_TILE = 256
_BLOCK = 16


@dataclass(eq=False, repr=False)
class RandomFourier(FeatureFamily):
    """Cosine and sine of random projections; each pair is a group.

    With v drawn from the spectral density of a kernel, the mean over pairs of
    cos(v·x) cos(v·y) + sin(v·x) sin(v·y) is the kernel of x and y. Feature 2j is cos(v_j·x),
    feature 2j + 1 is sin(v_j·x).

    Parameters
    ----------
    n_pairs : int, default 500
    kernel : {"gaussian", "laplacian", "cauchy"}, default "gaussian"
        exp(−‖x−y‖²/2σ²), exp(−‖x−y‖₁/σ), or Π 1/(1 + (x_i−y_i)²/σ²).
    bandwidths : sequence of float, default (1.0,)
        σ, in units of the scaled inputs; each pair draws one of them.
    between : bool, default False
        Draw σ log-uniformly between the least and the largest bandwidth instead.
    scaling : {"unit_variance", "none"}, default "unit_variance"
        Whether inputs are brought to mean 0 and variance 1 first; inputs that are constant in
        training become 0.
    random_state : int, default 0
        Seed.

    Attributes
    ----------
    frequencies_ : ndarray of shape (n_pairs, p), float32
        v, for scaled inputs.
    bandwidths_ : ndarray of shape (n_pairs,), float32
    input_offset_, input_scale_ : ndarray of shape (p,), float32
    n_features_ : int

    References
    ----------
    A. Rakotomamonjy, R. Flamary, F. Yger, "Learning with infinitely many features", Machine
    Learning 91, 2013, §4.2; A. Rahimi, B. Recht, "Random features for large-scale kernel
    machines", NIPS 2007.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(40, 3))
    >>> family = RandomFourier(n_pairs=5).fit(X)
    >>> family.transform(X).shape, family.groups[:4].tolist()
    ((40, 10), [0, 0, 1, 1])
    """

    name = "fourier"
    n_pairs: int = 500
    kernel: str = "gaussian"
    bandwidths: Sequence[float] = (1.0,)
    between: bool = False
    scaling: str = "unit_variance"
    random_state: int = 0

    @property
    def groups(self) -> np.ndarray:
        """Number of each feature's pair."""
        return self.ids_ // 2

    @property
    def is_continuous(self) -> bool:
        return True

    @property
    def features_per_draw(self) -> int:
        """2: the cosine and the sine of a frequency."""
        return 2

    def check_parameters(self) -> None:
        check_whole("n_pairs", self.n_pairs)
        check_choice("kernel", self.kernel, KERNELS)
        check_positive("bandwidths", self.bandwidths)
        check_flag("between", self.between)
        check_scaling(self.scaling)
        check_whole("random_state", self.random_state, least=0)

    def fit(self, images: np.ndarray, y: np.ndarray | None = None) -> RandomFourier:
        """Learn the scaling of the inputs and draw the frequencies.

        Raises
        ------
        InputError
            If a parameter is out of range.
        """
        self.check_parameters()
        X = flattened(self._see(np.asarray(images)))
        self.input_offset_, self.input_scale_ = fit_scaling(X, self.scaling)
        check_memory("n_pairs", self.n_pairs, 16.0 * self.n_pairs * X.shape[1])
        return self._with(self.draw(self.n_pairs, np.random.default_rng(self.random_state)))

    def _with(self, parameters: np.ndarray) -> RandomFourier:
        self.frequencies_ = np.ascontiguousarray(parameters[:, :-1], np.float32)
        self.bandwidths_ = np.ascontiguousarray(parameters[:, -1], np.float32)
        self.ids_ = np.arange(2 * len(parameters))
        self.n_features_ = len(self.ids_)
        self._whole_pool = True
        return self

    def at(self, parameters: np.ndarray) -> RandomFourier:
        """Return the family of these pairs, (n, p + 1) as :meth:`draw` gives them."""
        return self._like("input_offset_", "input_scale_")._with(parameters)

    def draw(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Return ``n`` frequencies from the kernel's spectral density, and their bandwidths.

        Parameters
        ----------
        n : int
        rng : numpy.random.Generator

        Returns
        -------
        ndarray of shape (n, p + 1), float32
            v, and last the bandwidth it was divided by.
        """
        p = len(self.input_scale_)
        widths = np.asarray(self.bandwidths, np.float64)
        if self.between:
            sigma = np.exp(rng.uniform(np.log(widths.min()), np.log(widths.max()), n))
        else:
            sigma = widths[rng.integers(len(widths), size=n)]
        draw: Any = {
            "gaussian": rng.standard_normal,
            "laplacian": rng.standard_cauchy,
            "cauchy": lambda size: rng.laplace(size=size),
        }[self.kernel]
        v = draw(size=(n, p)) / sigma[:, None]
        return np.column_stack([v, sigma]).astype(np.float32)

    def climb(self, parameters: np.ndarray, ascent: Ascent) -> np.ndarray:
        """Return a frequency that promises more, by the gradient itself; the bandwidth stays."""
        X = flattened(check_images(ascent.images, self.image_shape_))

        def rows(part: slice) -> np.ndarray:
            return np.asarray((rows_of(X[part]) - self.input_offset_) * self.input_scale_)

        with single_threaded_blas():
            v = climb_frequency(parameters[:-1], rows, ascent.residual, ascent.steps)
        return np.append(v, parameters[-1]).astype(np.float32)

    def check_tunable(self) -> None:
        """Frequencies can move."""

    def transform(self, images: np.ndarray, features: Ids = None, n_jobs: int = 1) -> np.ndarray:
        ids = check_features(features, self.n_features_)
        if self._whole_pool:
            return np.ascontiguousarray(self.transform_columns(images, ids, n_jobs).T)
        from visionshare.generators.fourier.kernels import chosen_pairs

        pairs, pair_of = np.unique(self.ids_[ids] // 2, return_inverse=True)
        X = flattened(check_images(images, self.image_shape_))
        out = np.empty((len(X), len(ids)), np.float32)
        V = np.ascontiguousarray(self.frequencies_[pairs].T.astype(np.float64))
        if len(ids):
            offset, scale = (a.astype(np.float64) for a in (self.input_offset_, self.input_scale_))
            part = self.ids_[ids] % 2

            def block(start: int, stop: int) -> None:
                rows = rows_of(X[start:stop])
                chosen_pairs(rows, offset, scale, V, pair_of, part, out[start:stop])

            run_blocks(block, len(X), _TILE, n_jobs)
        return out

    def transform_columns(
        self, images: np.ndarray, features: Ids = None, n_jobs: int = 1, dtype: str = "float32"
    ) -> np.ndarray:
        """Return features transposed, (n, n_images), float32 or float16.

        Projections are products of a fixed shape, 256 inputs with 16 frequencies, in float64: a
        column's bits depend neither on what else is asked for nor on batches or threads.
        """
        check_dtype(dtype)
        ids = check_features(features, self.n_features_)
        if not self._whole_pool:
            return np.ascontiguousarray(self.transform(images, features, n_jobs).T, dtype)
        X = flattened(check_images(images, self.image_shape_))
        out = np.empty((len(ids), len(X)), dtype)
        blocks = self.ids_[ids] // (2 * _BLOCK)
        columns_of = [(int(b), np.flatnonzero(blocks == b)) for b in np.unique(blocks)]

        def tile(start: int, stop: int) -> None:
            rows = np.zeros((_TILE, X.shape[1]))
            part = rows_of(X[start:stop])
            rows[: len(part)] = (part - self.input_offset_) * self.input_scale_
            for b, columns in columns_of:
                V = np.zeros((_BLOCK, X.shape[1]))
                frequencies = self.frequencies_[b * _BLOCK : (b + 1) * _BLOCK]
                V[: len(frequencies)] = frequencies
                phase = np.dot(rows, V.T)[: len(part)]
                both = np.stack([np.cos(phase), np.sin(phase)], axis=2).reshape(len(part), -1)
                chosen = both[:, self.ids_[ids[columns]] - 2 * _BLOCK * b].T
                # Through float32, so that a column has one value whatever it is kept in.
                out[columns, start : start + len(part)] = chosen.astype(np.float32)

        with single_threaded_blas():
            run_blocks(tile, len(X), _TILE, n_jobs)
        return out

    def block_ids(self, features: np.ndarray) -> list[np.ndarray]:
        """Return these ids by block of pairs."""
        ids = check_features(features, self.n_features_)
        block = self.ids_[ids] // (2 * _BLOCK)
        return [ids[block == b] for b in np.unique(block)]

    def macs(self, features: Ids = None) -> int:
        """Return the multiply-accumulates per image: a projection for each pair in use."""
        ids = check_features(features, self.n_features_)
        return len(np.unique(self.ids_[ids] // 2)) * self.frequencies_.shape[1]

    def _added_macs(self, chosen: np.ndarray, features: np.ndarray) -> np.ndarray:
        # The other half of a chosen pair adds nothing.
        new = np.ones(len(self.frequencies_), np.int64)
        new[self.ids_[chosen] // 2] = 0
        return new[self.ids_[features] // 2] * self.frequencies_.shape[1]

    def _added_bytes(self, chosen: np.ndarray, features: np.ndarray) -> np.ndarray:
        frequency = (self.frequencies_.shape[1] + 1) * self.frequencies_.itemsize
        scaling = self.input_offset_.nbytes + self.input_scale_.nbytes
        new = ~np.isin(self.ids_[features] // 2, self.ids_[chosen] // 2)
        return self.ids_.itemsize + frequency * new + (0 if len(chosen) else scaling)

    def describe(self, feature: int) -> dict[str, Any]:
        """Return the function, the frequency in the shape of an image, and the bandwidth."""
        pair, part = divmod(int(self.ids_[check_feature(feature, self.n_features_)]), 2)
        return {
            "kind": "fourier",
            "function": ("cos", "sin")[part],
            "frequency": self.frequencies_[pair].reshape(self.image_shape_),
            "bandwidth": float(self.bandwidths_[pair]),
        }

    def take(self, features: np.ndarray) -> RandomFourier:
        ids = self.ids_[check_features(features, self.n_features_)]
        pairs, pair_of = np.unique(ids // 2, return_inverse=True)
        chosen = self._like("input_offset_", "input_scale_")
        chosen.ids_ = 2 * pair_of.reshape(-1) + ids % 2
        chosen.n_features_ = len(ids)
        chosen.frequencies_ = self.frequencies_[pairs]
        chosen.bandwidths_ = self.bandwidths_[pairs]
        chosen._whole_pool = False
        return chosen

    def to_state(self) -> StateAndArrays:
        """Return parameters as plain values; frequencies, scaling and ids as arrays."""
        parameters = self.get_params()
        parameters["bandwidths"] = [float(b) for b in self.bandwidths]
        state = family_state(self, parameters=parameters, whole_pool=self._whole_pool)
        arrays = {
            "frequencies": self.frequencies_,
            "bandwidths": self.bandwidths_,
            "offset": self.input_offset_,
            "scale": self.input_scale_,
            "ids": self.ids_,
        }
        return state, arrays

    @classmethod
    def from_state(cls, state: State, arrays: Arrays) -> RandomFourier:
        dimensions = {"frequencies": 2, "bandwidths": 1, "offset": 1, "scale": 1, "ids": 1}
        family = unfitted(cls, state, arrays, dimensions)
        p = int(np.prod(family.image_shape_))
        V = arrays["frequencies"]
        n = len(V)
        inputs = {"offset": (p,), "scale": (p,)}
        check_floats(arrays, {"frequencies": (n, p), "bandwidths": (n,), **inputs})
        ids = check_features(arrays["ids"], 2 * len(V))
        whole = state.get("whole_pool") is True
        if whole and not np.array_equal(ids, np.arange(2 * len(V))):
            raise InputError("ids", "another order", "all features in order")
        family.frequencies_ = V
        family.bandwidths_ = arrays["bandwidths"]
        family.input_offset_ = arrays["offset"]
        family.input_scale_ = arrays["scale"]
        family.ids_ = ids
        family.n_features_ = len(ids)
        family._whole_pool = whole
        return family
