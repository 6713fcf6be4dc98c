"""Class labels: which values may be labels, their order, and how messages name them.

A label is a text, a whole number, a boolean or a finite float. Labels keep their type and their
order from ``fit`` to the saved file; they become texts only where people or formats need texts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np

from visionshare.errors import InputError
from visionshare.errors.inputs import input_errors

# How many classes a message names.
_NAMED = 20
_TYPES = "texts, whole numbers, booleans or finite floats"
_ACCEPTED = f"distinct labels of one type: {_TYPES}"


def label_array(labels: Any, argument: str = "y") -> np.ndarray:
    """Return labels as an array that keeps their type."""
    # NumPy alone turns [1, "a"] into texts, and columns of pandas into arrays of objects.
    if isinstance(labels, np.ndarray):
        if labels.dtype.kind not in "biufUOT":
            # scikit-learn's checks of estimators look for these words.
            complex_ = "; Complex data not supported" if labels.dtype.kind == "c" else ""
            raise InputError(argument, f"labels of the type {labels.dtype}", _TYPES + complex_)
        if labels.dtype.kind not in "OT":
            return _finite(labels, argument)
    values = np.asarray(labels, dtype=object)
    if values.ndim != 1:
        return np.asarray(labels)
    first_of_type: dict[str, Any] = {}
    for label in values:
        first_of_type.setdefault(_type_of(label), label)
    if len(first_of_type) > 1 and first_of_type.keys() != {"whole number", "float"}:
        given = " and ".join(map(_shown, first_of_type.values()))
        raise InputError(argument, given, "labels of one type")
    if first_of_type.keys() - {"text", "boolean", "whole number", "float"}:
        raise InputError(argument, next(iter(first_of_type.values())), _TYPES)
    if "text" not in first_of_type:
        return _finite(_numbers(values.tolist()), argument)
    array = np.asarray(labels)
    return values if array.dtype.kind == "T" else array


def _type_of(label: Any) -> str:
    if isinstance(label, str):
        return "text"
    if isinstance(label, (bool, np.bool_)):
        return "boolean"
    if isinstance(label, (Integral, np.integer)):
        return "whole number"
    return "float" if isinstance(label, (Real, np.floating)) else type(label).__name__


def _finite(labels: np.ndarray, argument: str) -> np.ndarray:
    """Return numbers of one label an example, if they are finite."""
    if labels.ndim == 1 and labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise InputError(argument, labels[~np.isfinite(labels)][0], _TYPES)
    return labels


def _numbers(labels: list[Any]) -> np.ndarray:
    array = np.array(labels)
    # NumPy makes floats of 2**63 and 1.
    is_rounded = array.dtype.kind == "f" and all(isinstance(n, Integral) for n in labels)
    return np.array(labels, np.uint64) if is_rounded and min(labels, default=-1) >= 0 else array


def checked_classes(classes: Any, argument: str = "classes") -> np.ndarray:
    """Return the labels of classes as an array (k,), once they can be saved and told apart."""
    array = label_array(classes, argument)
    if array.ndim != 1:
        raise InputError(argument, array.shape, "a vector of two classes or more")
    labels = array.tolist()
    kind = array.dtype.kind
    valid = kind in "biuU" or (kind == "O" and all(isinstance(label, str) for label in labels))
    # Longer floats are not in every file format.
    valid = valid or (kind == "f" and array.dtype.itemsize <= 8 and np.isfinite(array).all())
    if not valid or len(set(labels)) != len(labels):
        raise InputError(argument, labels, _ACCEPTED)
    # Texts take no more width than they need; numbers have the bytes' order of this machine.
    return (
        np.array(labels) if kind == "U" and labels else array.astype(array.dtype.newbyteorder("="))
    )


def class_names(classes: np.ndarray) -> tuple[str, ...]:
    """Return classes as texts, for people and for formats that know only texts."""
    return tuple(str(label) for label in classes.tolist())


def in_order(names: Iterable[str]) -> tuple[str, ...]:
    """Return the distinct names of classes in order: numbers by their size, then texts."""
    return tuple(sorted(set(names), key=_place))


def _place(name: str) -> tuple[bool, int, str]:
    # Python refuses to convert thousands of digits.
    is_number = re.fullmatch(r"-?[0-9]{1,20}", name) is not None
    return (not is_number, int(name) if is_number else 0, name)


def quoted(classes: Iterable[Any]) -> str:
    """Return classes for a message: texts in quotes, so that "1" and 1 differ."""
    shown = list(map(_shown, classes))
    more = len(shown) - _NAMED
    return ", ".join(shown[:_NAMED]) + (f" and {more} more" if more > 0 else "")


def _shown(label: Any) -> str:
    return repr(label.item() if isinstance(label, np.generic) else label)


def accuracy(labels: Any, predicted: np.ndarray, sample_weight: Any = None) -> float:
    """Return the share of the examples whose class is predicted."""
    from sklearn.metrics import accuracy_score

    labels = label_array(labels)
    with input_errors("y", labels, f"a label for each of {len(predicted)} examples"):
        return float(accuracy_score(labels, predicted, sample_weight=sample_weight))


def numbers_of(labels: Any, classes: np.ndarray, argument: str = "labels") -> np.ndarray:
    """Return the number of each label among the classes, int64."""
    given = label_array(labels, argument).tolist()
    number = {label: i for i, label in enumerate(classes.tolist())}
    unknown = next((label for label in given if label not in number), None)
    if unknown is not None:
        raise InputError(argument, unknown, f"classes of the classifier: {quoted(classes)}")
    return np.array([number[label] for label in given], np.int64)


def renamed(
    labels: np.ndarray, names: Sequence[Any] | Mapping[Any, Any], argument: str = "classes"
) -> np.ndarray:
    """Return names for classes."""
    order = labels.tolist()
    if isinstance(names, Mapping):
        nameless = [label for label in order if label not in names]
        if nameless:
            raise InputError(argument, quoted(names), f"also a name for {quoted(nameless)}")
        return checked_classes([names[label] for label in order], argument)
    given = checked_classes(names, argument)
    if len(given) != len(order):
        raise InputError(argument, f"{len(given)} names", f"a name for each of {quoted(order)}")
    for label, name in _swapped(labels, given):
        accepted = (
            f"names in the order of classes_ ({quoted(order)}), or a mapping of these to names"
        )
        raise InputError(argument, f"{_shown(name)} for the class {_shown(label)}", accepted)
    return given


def _swapped(labels: np.ndarray, names: np.ndarray) -> Iterator[tuple[Any, Any]]:
    """Yield each label whose name is the label of another class."""
    order = labels.tolist()
    texts = class_names(labels)
    # Labels from 0 on are mostly positions in a list of names: the text "1" may be any of them.
    # Names that are all the positions in another order may be either, and need a mapping.
    are_positions = labels.dtype.kind in "iu" and order == list(range(len(order)))
    are_positions = are_positions and set(map(str, names.tolist())) != set(texts)
    for i, (label, name) in enumerate(zip(order, names.tolist(), strict=True)):
        if not isinstance(label, str) and not isinstance(name, str):
            others = order[:i] + order[i + 1 :]
        else:
            others = [] if are_positions else [*texts[:i], *texts[i + 1 :]]
            name = str(name)
        if name in others:
            yield label, name
