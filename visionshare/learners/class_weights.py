"""What the examples of each class count: weights by class, or balanced."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np

from visionshare.class_labels import quoted
from visionshare.errors import InputError


def check_class_weight(class_weight: Any, classes: Collection[Any] | None = None) -> None:
    """Check weights of classes."""
    if class_weight is None or (isinstance(class_weight, str) and class_weight == "balanced"):
        return
    if not isinstance(class_weight, Mapping):
        accepted = "'balanced', None, or a dict of classes and their weights"
        raise InputError("class_weight", class_weight, accepted)
    for name, weight in class_weight.items():
        is_number = isinstance(weight, Real) and not isinstance(weight, bool)
        if not is_number or not 0 < float(weight) < math.inf:
            raise InputError("class_weight", f"{weight!r} for {name!r}", "numbers above 0")
        if classes is not None and name not in classes:
            raise InputError("class_weight", name, f"classes of the labels: {quoted(classes)}")


def weights_of_classes(class_weight: Any, y: np.ndarray, classes: Sequence[Any]) -> np.ndarray:
    """Return what each class's examples count, (k,), float64."""
    if class_weight is None:
        return np.ones(len(classes))
    if isinstance(class_weight, str):
        counts = np.bincount(y, minlength=len(classes))
        return len(y) / (np.sum(counts > 0) * np.maximum(counts, 1))
    check_class_weight(class_weight, classes)
    return np.array([class_weight.get(name, 1.0) for name in classes], dtype=np.float64)


def by_number(class_weight: Any, classes: Sequence[Any]) -> Any:
    """Return weights of classes by their numbers, for learners of numbers."""
    if not isinstance(class_weight, Mapping):
        return class_weight
    check_class_weight(class_weight, classes)
    numbers = {name: i for i, name in enumerate(classes)}
    return {numbers[name]: weight for name, weight in class_weight.items()}
