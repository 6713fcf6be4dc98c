"""Checked inputs of a learner: columns, targets and weights of the examples."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, validate_data

from visionshare.class_labels import checked_classes, quoted
from visionshare.columns import Columns
from visionshare.errors import InputError
from visionshare.errors.inputs import input_errors
from visionshare.errors.ranges import check_range, peak_of
from visionshare.learners.class_weights import check_class_weight, weights_of_classes

# Largest weights of examples: their sums, and those times a residual, are exact numbers.
_LEAST_WEIGHT = 1e-30
_LARGEST_WEIGHT = 1e30

_FLOATS = (np.float64, np.float32)


@dataclass(frozen=True)
class Examples:
    """What a classifier learns from."""

    columns: Columns
    y: np.ndarray
    omega: np.ndarray
    n_classes: int

    @property
    def signs(self) -> np.ndarray:
        """±1, one column per class against the rest, (m, k); of two classes the second's alone."""
        return class_signs(self.y, self.n_classes)


def checked_table(estimator: Any, X: Any, *, reset: bool, sparse: Any = False) -> Any:
    """Return a table (m, d) of float64 or float32, once scikit-learn has checked it."""
    with input_errors("X", X, "a table (m, d) of finite numbers"):
        return validate_data(estimator, X, dtype=_FLOATS, reset=reset, accept_sparse=sparse)


def checked_targets(
    estimator: Any, y: Any, *, numeric: bool = False, several: bool = False
) -> np.ndarray:
    """Return targets (m,), or (m, T) for ``several``, once scikit-learn checked it."""
    with input_errors("y", y, "a target for each example"):
        targets: np.ndarray = validate_data(estimator, y=y, multi_output=several, y_numeric=numeric)
    return targets


def check_length(y: np.ndarray, m: int) -> None:
    """Check that there is a target for each example."""
    if len(y) != m:
        raise InputError("y", f"{len(y)} targets", f"one target for each of {m} examples")


def class_signs(y: np.ndarray, n_classes: int) -> np.ndarray:
    """Return +1 where an example is of a class and −1 elsewhere, (m, k), or (m, 1) for k = 2."""
    classes = np.arange(1, 2) if n_classes == 2 else np.arange(n_classes)
    return np.where(y[:, None] == classes, 1.0, -1.0)


def classes_and_numbers(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the classes of labels, sorted, and the number of each label's class."""
    try:
        check_classification_targets(y)
    except (ValueError, TypeError) as error:
        # Its message may go on about other estimators.
        problem = str(error).split(". ")[0]
        accepted = f"classes: texts, whole numbers or booleans ({problem})"
        raise InputError("y", quoted(np.ravel(y)[:3]), accepted) from None
    classes, numbers = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        raise InputError("y", "one class", "examples of two classes or more")
    return checked_classes(classes, "y"), numbers


def example_weights(
    sample_weight: np.ndarray | None, y: np.ndarray, class_weight: Any = None
) -> np.ndarray:
    """Return the examples' weights (m,), float64, at least 0 and one of them above."""
    omega = _checked_weights(sample_weight, len(y))
    check_range("sample_weight", peak_of(omega), _LEAST_WEIGHT, _LARGEST_WEIGHT)
    if class_weight is not None:
        classes, number = np.unique(y, return_inverse=True)
        names = classes.tolist()
        if isinstance(class_weight, Mapping):
            check_class_weight(class_weight)
            # A fold may lack some of the classes that weights are given for, but not all.
            present = {name: w for name, w in class_weight.items() if name in names}
            class_weight = present or class_weight
        check_class_weight(class_weight, names)
        omega = omega * weights_of_classes(class_weight, number, names)[number]
        check_range("class_weight", peak_of(omega), _LEAST_WEIGHT, _LARGEST_WEIGHT)
    if not omega.sum() > 0:
        raise InputError("sample_weight", "all zero", "weights, at least one above 0")
    return omega


def _checked_weights(sample_weight: Any, m: int) -> np.ndarray:
    """Return weights of m examples, float64, at least 0; 1 where none are given."""
    if sample_weight is None:
        return np.ones(m)
    if isinstance(sample_weight, Real):
        sample_weight = np.full(m, sample_weight)
    with input_errors(
        "sample_weight", sample_weight, f"one finite weight for each of {m} examples"
    ):
        omega: np.ndarray = check_array(
            sample_weight, dtype=np.float64, ensure_2d=False, input_name="sample_weight"
        )
    if omega.shape != (m,):
        raise InputError("sample_weight", omega.shape, f"one weight for each of {m} examples")
    if (omega < 0).any():
        raise InputError("sample_weight", float(omega.min()), "weights of at least 0")
    return omega
