"""Checked inputs of a learner: columns, targets and weights of the examples."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.validation import _check_sample_weight

from visionshare.columns import Columns
from visionshare.errors import InputError
from visionshare.learners.class_weights import check_class_weight

__all__ = ["Examples", "class_signs", "example_weights"]


@dataclass(frozen=True)
class Examples:
    """What a classifier learns from.

    Attributes
    ----------
    columns : Columns
    y : ndarray of int, shape (m,)
        Class indexes.
    omega : ndarray of shape (m,), float64
        Weights of the examples, with those of their classes.
    n_classes : int
    """

    columns: Columns
    y: np.ndarray
    omega: np.ndarray
    n_classes: int

    @property
    def signs(self) -> np.ndarray:
        """±1, one column per class against the rest, (m, k); of two classes the second's alone."""
        return class_signs(self.y, self.n_classes)


def class_signs(y: np.ndarray, n_classes: int) -> np.ndarray:
    """Return +1 where an example is of a class and −1 elsewhere, (m, k), or (m, 1) for k = 2.

    Examples
    --------
    >>> class_signs(np.array([0, 1]), 2).tolist(), class_signs(np.array([0, 2]), 3).tolist()
    ([[-1.0], [1.0]], [[1.0, -1.0, -1.0], [-1.0, -1.0, 1.0]])
    """
    classes = np.arange(1, 2) if n_classes == 2 else np.arange(n_classes)
    return np.where(y[:, None] == classes, 1.0, -1.0)


def example_weights(
    sample_weight: np.ndarray | None, y: np.ndarray, class_weight: Any = None
) -> np.ndarray:
    """Return the examples' weights (m,), float64, at least 0 and one of them above.

    Raises
    ------
    InputError
        If all are zero, or weights of classes are no numbers above 0, or of none of the classes.
    """
    omega: np.ndarray = _check_sample_weight(
        sample_weight, np.empty((len(y), 1)), dtype=np.float64, ensure_non_negative=True
    )
    if class_weight is not None:
        classes = np.unique(y).tolist()
        # A fold may lack some of the classes that weights are given for.
        known = isinstance(class_weight, Mapping) and any(name in classes for name in class_weight)
        check_class_weight(class_weight, None if known else classes)
        omega = omega * compute_sample_weight(class_weight, y)
    if not omega.sum() > 0:
        raise InputError("sample_weight", "all zero", "weights of which one is above 0")
    return omega
