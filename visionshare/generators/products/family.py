"""Products of two inputs, and the inputs themselves."""

from __future__ import annotations

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
from visionshare.generators.checks import check_flag
from visionshare.generators.contributions import Contributions, Numbers, pixel_boxes
from visionshare.generators.inputs import (
    check_scaling,
    fit_scaling,
    flattened,
    pixel_position,
    rows_of,
)
from visionshare.generators.states import (
    Arrays,
    State,
    StateAndArrays,
    check_floats,
    family_state,
    unfitted,
)

_LARGEST_POOL = 1 << 25
# Of products that are computed at a time.
_BYTES = 16 << 20


@dataclass(eq=False, repr=False)
class Products(FeatureFamily):
    """All products x_i · x_j of two inputs, i ≤ j, after the inputs themselves.

    Parameters
    ----------
    inputs : bool, default True
        Whether the inputs are features too.
    squares : bool, default True
        Whether i = j counts.
    scaling : {"unit_variance", "none"}, default "unit_variance"
        Whether inputs are brought to mean 0 and variance 1 first; inputs that are constant in
        training become 0.

    Attributes
    ----------
    pairs_ : ndarray of shape (n_features_, 2), int64
        i and j of each feature; j is −1 where the feature is input i.
    input_offset_, input_scale_ : ndarray of shape (p,), float32
    n_features_ : int

    References
    ----------
    J. Duchi, Y. Singer, "Boosting with structural sparsity", ICML 2009, §7; S. Shalev-Shwartz,
    Y. Wexler, A. Shashua, "ShareBoost", NIPS 2011, §7.3.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[1.0, 2.0], [3.0, -1.0]])
    >>> Products(scaling="none").fit(X).transform(X).tolist()
    [[1.0, 2.0, 1.0, 2.0, 4.0], [3.0, -1.0, 9.0, -3.0, 1.0]]
    """

    name = "products"
    # Any features together cost the same.
    block_size = 1000

    inputs: bool = True
    squares: bool = True
    scaling: str = "unit_variance"

    def check_parameters(self) -> None:
        check_flag("inputs", self.inputs)
        check_flag("squares", self.squares)
        check_scaling(self.scaling)

    def fit(self, images: np.ndarray, y: np.ndarray | None = None) -> Products:
        """Learn the scaling of the inputs and list the pairs.

        Raises
        ------
        InputError
            If a parameter is out of range, or there are too many pairs to list.
        """
        self.check_parameters()
        X = flattened(self._see(np.asarray(images)))
        p = X.shape[1]
        if p * (p + 3) // 2 > _LARGEST_POOL:
            raise InputError("images", f"{p} inputs", "few enough inputs to list all products")
        pairs = np.stack(np.triu_indices(p, k=0 if self.squares else 1), axis=1)
        alone = np.stack([np.arange(p), np.full(p, -1)], axis=1)
        # With one input and no squares the input itself is all there is.
        listed = [alone, pairs] if self.inputs or len(pairs) == 0 else [pairs]
        self.pairs_ = np.concatenate(listed).astype(np.int64)
        self.n_features_ = len(self.pairs_)
        self.input_offset_, self.input_scale_ = fit_scaling(X, self.scaling)
        return self

    def transform_columns(
        self, images: np.ndarray, features: Ids = None, n_jobs: int = 1, dtype: str = "float32"
    ) -> np.ndarray:
        check_dtype(dtype)
        ids = check_features(features, self.n_features_)
        X = rows_of(check_images(images, self.image_shape_))
        used, row = np.unique(self.pairs_[ids], return_inverse=True)
        row = row.reshape(-1, 2)
        values = np.ones((len(used), len(X)))
        real = used >= 0
        scaled = (X[:, used[real]] - self.input_offset_[used[real]]) * self.input_scale_[used[real]]
        values[real] = scaled.T
        out = np.empty((len(ids), len(X)), dtype)
        step = max(1, _BYTES // max(1, 8 * len(X)))
        for i in range(0, len(ids), step):
            product = values[row[i : i + step, 0]] * values[row[i : i + step, 1]]
            # Through float32, so that a column has one value whatever it is kept in; what is too
            # large for it is infinite, as in C.
            with np.errstate(over="ignore"):
                out[i : i + step] = product.astype(np.float32)
        return out

    def contributions(
        self, image: np.ndarray, weights: np.ndarray, numbers: Numbers = None
    ) -> Contributions:
        """Return what the scaled inputs add: each factor has half of a product.

        The inputs are numbered from 1.
        """
        check_images(np.asarray(image)[None], self.image_shape_)
        weights = np.asarray(weights, np.float64)
        used = np.unique(self.pairs_[self.pairs_ >= 0])
        row = rows_of(np.asarray(image)[None])[0]
        scaled = (row - self.input_offset_) * self.input_scale_
        of_inputs = np.zeros((len(row), len(weights)))
        i, j = self.pairs_.T
        alone = j < 0
        np.add.at(of_inputs, i[alone], weights.T[alone])
        halves = weights.T[~alone] / 2
        np.add.at(of_inputs, i[~alone], halves * scaled[j[~alone], None])
        np.add.at(of_inputs, j[~alone], halves * scaled[i[~alone], None])
        boxes = pixel_boxes(used, self.image_shape_)
        return Contributions.of(self.name, scaled[used], of_inputs[used].T, boxes, used + 1)

    def boxes(self, image: np.ndarray) -> np.ndarray:
        """Return the smallest boxes that hold the inputs, (n_features_, 4)."""
        i, j = self.pairs_.T
        one, other = (
            pixel_boxes(inputs, self.image_shape_) for inputs in (i, np.where(j < 0, i, j))
        )
        low = np.minimum(one, other)
        high = np.maximum(one, other)
        return np.stack([low[:, 0], high[:, 1], low[:, 2], high[:, 3]], axis=1)

    def macs(self, features: Ids = None) -> int:
        """Return the multiply-accumulates per image: the inputs' scaling, and a product each."""
        pairs = self.pairs_[check_features(features, self.n_features_)]
        scaled = len(np.unique(pairs[pairs >= 0])) if self.scaling != "none" else 0
        return scaled + int(np.sum(pairs[:, 1] >= 0))

    def _added_macs(self, chosen: np.ndarray, features: np.ndarray) -> np.ndarray:
        before = self.pairs_[chosen]
        i, j = self.pairs_[features].T
        # One entry more stands for the input that an input alone is not multiplied with.
        new = np.full(len(self.input_scale_) + 1, self.scaling != "none")
        new[before] = False
        new[-1] = False
        return new[i].astype(np.int64) + (new[j] & (i != j)) + (j >= 0)

    def _added_bytes(self, chosen: np.ndarray, features: np.ndarray) -> np.ndarray:
        scaling = self.input_offset_.nbytes + self.input_scale_.nbytes
        each = 2 * self.pairs_.itemsize + (0 if len(chosen) else scaling)
        return np.full(len(features), each)

    def describe(self, feature: int) -> dict[str, Any]:
        """Return the row, column and channel of each input."""
        inputs = self.pairs_[check_feature(feature, self.n_features_)]
        positions = [pixel_position(i, self.image_shape_) for i in inputs if i >= 0]
        return {"kind": "product", "positions": positions}

    def take(self, features: np.ndarray) -> Products:
        chosen = self._like("input_offset_", "input_scale_")
        chosen.pairs_ = self.pairs_[check_features(features, self.n_features_)]
        chosen.n_features_ = len(chosen.pairs_)
        return chosen

    def to_state(self) -> StateAndArrays:
        """Return parameters as plain values; pairs and scaling as arrays."""
        scaling = {"offset": self.input_offset_, "scale": self.input_scale_}
        arrays = {"pairs": self.pairs_, **scaling}
        return family_state(self, parameters=self.get_params()), arrays

    @classmethod
    def from_state(cls, state: State, arrays: Arrays) -> Products:
        family = unfitted(cls, state, arrays, {"pairs": 2, "offset": 1, "scale": 1})
        p = int(np.prod(family.image_shape_))
        pairs = arrays["pairs"]
        check_floats(arrays, {"offset": (p,), "scale": (p,)})
        if pairs.dtype != np.int64 or pairs.shape[1] != 2:
            raise InputError("pairs", pairs.shape, "int64 of shape (n, 2)")
        if (pairs < [0, -1]).any() or (pairs >= p).any():
            raise InputError("pairs", "inputs out of range", f"inputs below {p}")
        family.pairs_ = pairs
        family.n_features_ = len(pairs)
        family.input_offset_ = arrays["offset"]
        family.input_scale_ = arrays["scale"]
        return family
