"""Monomials: products of any number of features of another family."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from visionshare.errors import InputError
from visionshare.generators.base import (
    FeatureFamily,
    Ids,
    check_dtype,
    check_feature,
    check_features,
    checked_images,
)
from visionshare.generators.contributions import Contributions, Numbers
from visionshare.generators.layer_summary import LayerSummary
from visionshare.generators.nested import parts_from_state, parts_to_state
from visionshare.generators.parameters import unfitted_copy
from visionshare.generators.states import Arrays, State, StateAndArrays, check_state, family_state
from visionshare.machine.resources import run_blocks, single_threaded_blas

_MOST_FACTORS = 1 << 20
# Images from which on products are weighted side by side.
_MANY = 8
# Images of one call of a kernel: whole tiles of weighted_products.
_AT_ONCE = 512


class Monomials(FeatureFamily):
    """Products of features of a family, each a multiset of their ids.

    The features themselves are the monomials of one factor. Column generation finds longer ones
    by multiplying what is already chosen, see
    :class:`visionshare.generators.monomials.ProductColumns`.

    Parameters
    ----------
    family : FeatureFamily
        Where the factors come from; :meth:`fit` fits a copy of it.
    monomials : sequence of sequences of int, optional
        Ids of each monomial's factors; every feature alone when omitted.

    Attributes
    ----------
    base_ : FeatureFamily
        Fitted, restricted to the factors in use.
    factors_ : list of ndarray of int64
        Ids in ``base_``, ascending, of each monomial's factors.
    n_features_ : int

    References
    ----------
    J. Duchi, Y. Singer, "Boosting with structural sparsity", ICML 2009, §6.

    Examples
    --------
    >>> import numpy as np
    >>> from visionshare import Pixels
    >>> family = Monomials(Pixels(), [(0,), (1, 1), (0, 1, 1)])
    >>> family.fit(np.eye(2)).transform(np.array([[2.0, 3.0]])).tolist()
    [[2.0, 9.0, 18.0]]
    """

    name = "monomials"
    block_size = 1000
    base_: FeatureFamily
    factors_: list[np.ndarray]
    _flat: tuple[np.ndarray, np.ndarray]

    def __init__(self, family: Any = None, monomials: Sequence[Sequence[int]] | None = None):
        self.family = family
        self.monomials = monomials

    def check_parameters(self) -> None:
        if not isinstance(self.family, FeatureFamily):
            raise InputError("family", type(self.family).__name__, "a feature family")
        self.family.check_parameters()
        for monomial in () if self.monomials is None else self.monomials:
            if np.ndim(monomial) != 1 or np.size(monomial) == 0:
                raise InputError("monomials", monomial, "a list of one id or more each")

    def fit(self, images: np.ndarray, y: np.ndarray | None = None) -> Monomials:
        """Fit the family of the factors to images.

        Raises
        ------
        InputError
            If a factor is no feature of the family.
        """
        self.check_parameters()
        base = unfitted_copy(self.family).fit(images, y)
        alone = [(j,) for j in range(base.n_features_)]
        return self._with(base, alone if self.monomials is None else self.monomials)

    @classmethod
    def of(cls, base: FeatureFamily, monomials: Iterable[Any]) -> Monomials:
        """Return monomials of a fitted family.

        Parameters
        ----------
        base : FeatureFamily
            Fitted.
        monomials : iterable of sequences of int
            Ids in ``base`` of each monomial's factors.
        """
        return cls(unfitted_copy(base))._with(base, monomials)

    def _with(self, base: FeatureFamily, monomials: Iterable[Any]) -> Monomials:
        factors = [np.sort(check_features(np.asarray(m), base.n_features_)) for m in monomials]
        used = np.unique(np.concatenate([np.empty(0, np.int64), *factors]))
        self.base_ = base.take(used)
        self.factors_ = [np.searchsorted(used, m) for m in factors]
        self.image_shape_ = tuple(base.image_shape_)
        self.n_features_ = len(factors)
        # All factors, one monomial after the other, and where each begins.
        self._flat = _joined(self.factors_)
        return self

    def _used(self, ids: np.ndarray) -> np.ndarray:
        """Return the factors that these monomials need, ascending."""
        return np.unique(np.concatenate([np.empty(0, np.int64), *(self.factors_[i] for i in ids)]))

    def _products(
        self, values: np.ndarray, used: np.ndarray | None, ids: np.ndarray | None, n_jobs: int
    ) -> np.ndarray:
        """Return monomials (n_images, n), float32, of the values of all or of the used factors."""
        from visionshare.generators.monomials.kernels import multiplied

        flat, starts = self._flat
        if ids is not None:
            flat, starts = _joined([self.factors_[i] for i in ids])
        if used is not None:
            flat = np.searchsorted(used, flat)
        out = np.empty((len(values), len(starts) - 1), np.float32)

        def block(start: int, stop: int) -> None:
            multiplied(np.ascontiguousarray(values[start:stop]), flat, starts, out[start:stop])

        run_blocks(block, len(values), _AT_ONCE, n_jobs)
        return out

    def transform(self, images: np.ndarray, features: Ids = None, n_jobs: int = 1) -> np.ndarray:
        images = checked_images(images, self.image_shape_)
        if features is None:
            return self._products(self.base_.transform(images, None, n_jobs), None, None, n_jobs)
        ids = check_features(features, self.n_features_)
        used = self._used(ids)
        values = self.base_.transform(images, used, n_jobs)
        return self._products(values, used, ids, n_jobs)

    def weighted_sums(self, images: np.ndarray, weights: np.ndarray, n_jobs: int = 1) -> np.ndarray:
        """Return sums of all monomials times weights, (n_images, k), float32.

        Of many images no products are written down.
        """
        from visionshare.generators.monomials.kernels import weighted_products

        images = checked_images(images, self.image_shape_)
        if len(images) < _MANY:
            return super().weighted_sums(images, weights, n_jobs)
        values = self.base_.transform(images, None, n_jobs)
        # Arrays that may not be written, or in another order, would have kernels of their own.
        weights = np.array(weights, np.float32, order="C")
        out = np.empty((len(images), len(weights)), np.float32)
        flat, starts = self._flat

        def block(start: int, stop: int) -> None:
            seen = np.ascontiguousarray(values[start:stop])
            weighted_products(seen, flat, starts, weights, out[start:stop])

        with single_threaded_blas():
            run_blocks(block, len(images), _AT_ONCE, n_jobs)
        return out

    def contributions(
        self, image: np.ndarray, weights: np.ndarray, numbers: Numbers = None
    ) -> Contributions:
        """Return what the factors add: each of m factors has 1/m of a product.

        That is the Shapley value of a factor, where one that is left out is 0.
        """
        image = np.asarray(image)
        values = self.base_.transform(image[None])[0].astype(np.float64)
        of_factors = np.zeros((len(weights), self.base_.n_features_))
        for factors, own in zip(self.factors_, np.asarray(weights, np.float64).T, strict=True):
            for i, factor in enumerate(factors):
                others = np.prod(values[np.delete(factors, i)])
                of_factors[:, factor] += own * (others / len(factors))
        return self.base_.contributions(image, of_factors)

    def transform_columns(
        self, images: np.ndarray, features: Ids = None, n_jobs: int = 1, dtype: str = "float32"
    ) -> np.ndarray:
        check_dtype(dtype)
        images = checked_images(images, self.image_shape_)
        ids = check_features(features, self.n_features_)
        used = self._used(ids)
        values = np.ascontiguousarray(self.base_.transform_columns(images, used, n_jobs).T)
        return np.ascontiguousarray(self._products(values, used, ids, n_jobs).T, dtype)

    def macs(self, features: Ids = None) -> int:
        """Return the multiply-accumulates per image: the factors, once each, and the products."""
        ids = check_features(features, self.n_features_)
        products = sum(len(self.factors_[i]) - 1 for i in ids)
        return int(self.base_.macs(self._used(ids))) + products

    def _added_macs(self, chosen: np.ndarray, features: np.ndarray) -> np.ndarray:
        products = np.array([len(self.factors_[i]) - 1 for i in features], np.int64)
        return products + self._added_by_factors(self.base_.added_macs, chosen, features)

    def _added_bytes(self, chosen: np.ndarray, features: np.ndarray) -> np.ndarray:
        flat, starts = self._flat
        own = np.array([len(self.factors_[i]) for i in features], np.int64) * flat.itemsize
        # One start more than there are monomials.
        own += starts.itemsize * (1 if len(chosen) else 2)
        return own + self._added_by_factors(self.base_.added_bytes, chosen, features)

    def _added_by_factors(
        self,
        cost: Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray],
        chosen: np.ndarray,
        features: np.ndarray,
    ) -> np.ndarray:
        """Return what the factors of each monomial add to those of the chosen ones, int64."""
        used = self._used(chosen)
        new = [np.setdiff1d(self.factors_[i], used) for i in features]
        sizes = np.array([len(own) for own in new], np.int64)
        added = np.zeros(len(new), np.int64)
        bringing = sizes > 0
        if bringing.any():
            starts = np.cumsum(sizes[bringing]) - sizes[bringing]
            added[bringing] = cost(used, np.concatenate(new), starts)
        return added

    def layer_summaries(self) -> list[LayerSummary]:
        """Return the layers of the factors, then their products."""
        products = len(self._flat[0]) - self.n_features_
        own = LayerSummary(self.name, (self.n_features_,), None, 0, products)
        return [*self.base_.layer_summaries(), own]

    def describe(self, feature: int) -> dict[str, Any]:
        """Return the descriptions of the factors."""
        number = check_feature(feature, self.n_features_)
        factors = [self.base_.describe(int(j)) for j in self.factors_[number]]
        return factors[0] if len(factors) == 1 else {"kind": "monomial", "factors": factors}

    def take(self, features: np.ndarray) -> Monomials:
        ids = check_features(features, self.n_features_)
        return self.of(self.base_, [self.factors_[i] for i in ids])

    def to_state(self) -> StateAndArrays:
        """Return the factors' family in a list of one part; ids and where each monomial begins."""
        states, arrays = parts_to_state([self.base_])
        state = family_state(self, parts=states)
        flat, starts = self._flat
        return state, {"factors": flat, "starts": starts, **arrays}

    @classmethod
    def from_state(cls, state: State, arrays: Arrays) -> Monomials:
        check_state(state, arrays, cls.name, {"factors": 1, "starts": 1})
        _, parts = parts_from_state(state, arrays)
        flat = arrays["factors"]
        starts = arrays["starts"]
        if len(parts) != 1:
            raise InputError("parts", len(parts), "one family of factors")
        valid = starts.dtype == np.int64 and len(starts) > 0 and starts[0] == 0
        if not valid or starts[-1] != len(flat) or (np.diff(starts) < 1).any():
            raise InputError("starts", starts.shape, "int64, from 0 up to the number of factors")
        if len(flat) > _MOST_FACTORS:
            raise InputError("factors", len(flat), f"at most {_MOST_FACTORS}")
        check_features(flat, parts[0].n_features_)
        return cls.of(parts[0], np.split(flat, starts[1:-1]) if len(starts) > 1 else [])


def _joined(factors: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Return lists of factors, one after the other, and where each begins, both int64."""
    flat = np.concatenate([np.empty(0, np.int64), *factors]).astype(np.int64)
    starts = np.concatenate([[0], np.cumsum([len(m) for m in factors], dtype=np.int64)])
    return flat, starts.astype(np.int64)
