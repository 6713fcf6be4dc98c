"""Stumps: whether an input is at most a threshold."""

from __future__ import annotations

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
from visionshare.generators.checks import check_whole
from visionshare.generators.contributions import pixel_boxes
from visionshare.generators.inputs import flattened, pixel_position, rows_of
from visionshare.generators.states import (
    Arrays,
    State,
    StateAndArrays,
    check_floats,
    family_state,
    unfitted,
)
from visionshare.machine.resources import run_blocks

# Of stumps that are computed at a time.
_BYTES = 4 << 20


class Stumps(FeatureFamily):
    """Indicators 1[v_i ≤ θ] of single inputs, with thresholds midway between training values.

    Features are numbered by input and ascending threshold. Equal values lie on one side of every
    threshold; an input that is constant in training has none.

    Parameters
    ----------
    n_thresholds : int, optional
        At most so many thresholds per input, those nearest to its quantiles; all when omitted.

    Attributes
    ----------
    inputs_ : ndarray of shape (n_features_,), int32
        Index of each feature's input in the flattened image.
    thresholds_ : ndarray of shape (n_features_,), float32
        θ. Where no float32 lies between two neighboring values, the lower of them.
    image_shape_ : tuple of int
    n_features_ : int

    References
    ----------
    S. Shalev-Shwartz, Y. Wexler, A. Shashua, "ShareBoost: Efficient multiclass learning with
    feature sharing", NIPS 2011, §4.1.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[1.0, 5.0], [3.0, 5.0], [4.0, 6.0]])
    >>> stumps = Stumps().fit(X)
    >>> stumps.inputs_.tolist(), stumps.thresholds_.tolist()
    ([0, 0, 1], [2.0, 3.5, 5.5])
    >>> stumps.transform(X).tolist()
    [[1.0, 1.0, 1.0], [0.0, 1.0, 1.0], [0.0, 0.0, 0.0]]
    """

    name = "stumps"
    # Any features together cost the same.
    block_size = 1000
    inputs_: np.ndarray
    thresholds_: np.ndarray

    def __init__(self, n_thresholds: int | None = None) -> None:
        self.n_thresholds = n_thresholds

    def check_parameters(self) -> None:
        check_whole("n_thresholds", self.n_thresholds, optional=True)

    def fit(self, images: np.ndarray, y: np.ndarray | None = None) -> Stumps:
        """Learn the thresholds of every input.

        Raises
        ------
        InputError
            If a parameter is out of range, or no input has two different values.
        """
        self.check_parameters()
        flat = flattened(self._see(np.asarray(images)))
        thresholds = [_thresholds(column, self.n_thresholds) for column in flat.T]
        sizes = [len(values) for values in thresholds]
        if not any(sizes):
            given = f"{len(images)} examples, every input constant"
            raise InputError("images", given, "an input with two different values")
        inputs = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)
        return self._with(inputs, np.concatenate(thresholds))

    def transform_columns(
        self, images: np.ndarray, features: Ids = None, n_jobs: int = 1, dtype: str = "float32"
    ) -> np.ndarray:
        check_dtype(dtype)
        ids = check_features(features, self.n_features_)
        flat = flattened(check_images(images, self.image_shape_))
        used, row = np.unique(self.inputs_[ids], return_inverse=True)
        # Compared in float64, as fit compared them: uint8 / 255 is no float32.
        values = np.ascontiguousarray(rows_of(flat[:, used]).T)
        thresholds = self.thresholds_[ids].astype(np.float64)
        out = np.empty((len(ids), len(flat)), dtype)
        step = max(1, _BYTES // max(1, 8 * len(flat)))

        def block(start: int, stop: int) -> None:
            part = slice(start, stop)
            out[part] = values[row[part]] <= thresholds[part, None]

        run_blocks(block, len(ids), step, n_jobs)
        return out

    def boxes(self, image: np.ndarray) -> np.ndarray:
        """Return the pixels of the inputs, (n_features_, 4)."""
        return pixel_boxes(self.inputs_, self.image_shape_)

    def macs(self, features: Ids = None) -> int:
        """Return 0: inputs are compared, not multiplied."""
        check_features(features, self.n_features_)
        return 0

    def _added_macs(self, chosen: np.ndarray, features: np.ndarray) -> np.ndarray:
        return np.zeros(len(features), np.int64)

    def _added_bytes(self, chosen: np.ndarray, features: np.ndarray) -> np.ndarray:
        # Files hold inputs as int64.
        return np.full(len(features), 8 + self.thresholds_.itemsize)

    def describe(self, feature: int) -> dict[str, Any]:
        """Return the row, column and channel of the input, and the threshold."""
        number = check_feature(feature, self.n_features_)
        return {
            "kind": "stump",
            "position": pixel_position(self.inputs_[number], self.image_shape_),
            "threshold": float(self.thresholds_[number]),
        }

    def take(self, features: np.ndarray) -> Stumps:
        ids = check_features(features, self.n_features_)
        return self._like()._with(self.inputs_[ids], self.thresholds_[ids])

    def _with(self, inputs: np.ndarray, thresholds: np.ndarray) -> Stumps:
        self.inputs_ = inputs
        self.thresholds_ = thresholds
        self.n_features_ = len(thresholds)
        return self

    def to_state(self) -> StateAndArrays:
        """Return parameters as plain values; inputs and thresholds as arrays."""
        state = family_state(self, parameters=self.get_params())
        return state, {"inputs": self.inputs_.astype(np.int64), "thresholds": self.thresholds_}

    @classmethod
    def from_state(cls, state: State, arrays: Arrays) -> Stumps:
        family = unfitted(cls, state, arrays, {"inputs": 1, "thresholds": 1})
        inputs = arrays["inputs"]
        thresholds = arrays["thresholds"]
        p = int(np.prod(family.image_shape_))
        check_floats(arrays, {"thresholds": thresholds.shape})
        if inputs.dtype != np.int64 or inputs.shape != thresholds.shape:
            given = f"{inputs.dtype} of shape {inputs.shape}"
            raise InputError("inputs", given, f"int64 of shape {thresholds.shape}")
        if (inputs < 0).any() or (inputs >= p).any():
            raise InputError("inputs", "inputs out of range", f"inputs from 0 to {p - 1}")
        return family._with(inputs.astype(np.int32), thresholds)


def _thresholds(column: np.ndarray, n: int | None) -> np.ndarray:
    """Return the ascending thresholds, float32, of one input's values (m,), uint8 or float32."""
    distinct, counts = np.unique(column, return_counts=True)
    values = rows_of(distinct)[:, 0]
    gaps = np.arange(len(values) - 1)
    if n is not None and len(gaps) > n:
        gaps = _nearest(np.cumsum(counts)[:-1], len(column) * np.arange(1, n + 1) / (n + 1))
    low = values[gaps]
    high = values[gaps + 1]
    middle = ((low + high) / 2).astype(np.float32)
    # Between neighboring float32 values the middle may round up to the higher one.
    return np.where(middle < high, middle, low).astype(np.float32)


def _nearest(sorted_values: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Return the indices of the values nearest to targets, ascending, none twice."""
    above = np.clip(np.searchsorted(sorted_values, targets), 1, len(sorted_values) - 1)
    below = above - 1
    lower = targets - sorted_values[below] <= sorted_values[above] - targets
    return np.unique(np.where(lower, below, above))
