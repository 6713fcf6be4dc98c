"""Several labels of an image as scikit-learn gives them: a table of 0 and 1, a column for each."""

from __future__ import annotations

from typing import Any

import numpy as np

from visionshare.answers import Answers, LabelRule
from visionshare.datasets.image_kinds import as_array, is_vectors
from visionshare.errors import InputError

_TABLE = (
    "a class for each image, or several labels as a table of 0 and 1 with a column for each, such "
    "as sklearn.preprocessing.MultiLabelBinarizer().fit_transform(y)"
)


def label_names(y: Any) -> np.ndarray | None:
    """Return the names or numbers of several labels; None where ``y`` has one class an image."""
    if hasattr(y, "columns"):
        return np.array(list(y.columns)) if y.shape[1] > 1 else None
    first = y[0] if isinstance(y, (list, tuple)) and len(y) else None
    if isinstance(first, (set, frozenset)):
        raise InputError("y", "sets of labels", _TABLE)
    if isinstance(first, (list, tuple)) and len({len(row) for row in y}) > 1:
        raise InputError("y", "lists of labels", _TABLE)
    shape = y.shape if hasattr(y, "shape") else np.asarray(y).shape
    return np.arange(shape[1]) if len(shape) == 2 and shape[1] > 1 else None


def several_labels(model: Any, images: Any, y: Any, names: np.ndarray) -> Answers:
    """Return which labels each image has, once the parameters allow several."""
    for name, default in (
        ("features", "auto"), ("class_weight", None), ("teacher", None), ("reject", None),
    ):  # fmt: skip
        value = getattr(model, name)
        if value is not default and value != default:
            raise InputError(name, value, f"{default!r} for several labels")
    if model.warm_start and hasattr(model, "classifier_"):
        raise InputError("warm_start", True, "False for several labels")
    if is_vectors(as_array(images)):
        raise InputError("images", "vectors", "images, to learn several labels of")
    table = np.asarray(y.toarray() if hasattr(y, "toarray") else y)
    if not np.isin(table, (0, 1)).all():
        raise InputError("y", f"a table of shape {table.shape} with other numbers", _TABLE)
    truth = table.astype(bool)
    return Answers(truth, LabelRule.of(tuple(map(str, names.tolist())), truth))
