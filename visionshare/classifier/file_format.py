"""The classifier file: safetensors with a JSON header. Data only; nothing in it can run.

Version 1 has other names for some values, see ``docs/formats.md`` and
:mod:`visionshare.generators.layers.former`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import fields
from itertools import pairwise
from typing import Any

import numpy as np

from visionshare.answers import rule_from_values
from visionshare.classifier.exit_rule import ExitRule
from visionshare.classifier.path import PathStep
from visionshare.classifier.unknown import UnknownRule
from visionshare.datasets.preprocessing import Preprocessing
from visionshare.datasets.training_values import TrainingValues
from visionshare.errors import ClassifierFileError, InputError
from visionshare.errors.inputs import checked_path
from visionshare.files.tensors import read_tensor_file, write_tensor_file
from visionshare.generators import family_from_state
from visionshare.generators.layers.former import current_header
from visionshare.generators.states import arrays_below

FORMAT = "visionshare-classifier"
FORMAT_VERSION = 2
VERSIONS = (1, 2)
# The type of labels that a file does not name, by their type in JSON.
_TYPE_OF = {bool: "bool", int: "int64", float: "float64", str: "str"}
_CLASS_TYPES = (
    "str", "object", "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32",
    "uint64", "float16", "float32", "float64",
)  # fmt: skip
# Of the largest number of 64 bits.
_DIGITS = 20
_STEP_VALUES = [f.name for f in fields(PathStep) if f.name not in ("weights", "intercept")]
# What values of an unexpected type lead to.
_INVALID = (
    InputError, ValueError, TypeError, LookupError, ArithmeticError, AttributeError, RecursionError,
)  # fmt: skip


def write_fields(path: str | os.PathLike[str], values: Mapping[str, Any]) -> None:
    """Write the fields of a :class:`CompactClassifier`, atomically."""
    state, family_arrays = values["family"].to_state()
    arrays = {f"family.{name}": array for name, array in family_arrays.items()}
    arrays["weights"] = values["weights"]
    arrays["intercept"] = values["intercept"]
    steps = values["path"]
    if steps:
        weights = np.concatenate([step.weights.ravel() for step in steps])
        arrays["path.weights"] = weights.astype(np.float32)
        intercepts = np.concatenate([step.intercept for step in steps])
        arrays["path.intercept"] = intercepts.astype(np.float32)
    # Seconds are of one run: without them the same training gives the same file.
    step_values = [{name: getattr(step, name) for name in _STEP_VALUES} for step in steps]
    header = {
        "family": state,
        **_class_values(values["classes"]),
        "temperature": values["temperature"],
        "path": [step | {"seconds": 0.0} for step in step_values],
        "metadata": values["metadata"],
    }
    rule = values["exit_rule"]
    if rule is not None:
        rounds = [int(t) for t in rule.rounds]
        header["exit_rule"] = {"rounds": rounds, "margins": list(map(float, rule.margins))}
    if values["preprocessing"] != Preprocessing():
        header["preprocessing"] = values["preprocessing"].to_values()
    if values["values"] is not None:
        header["values"] = values["values"].to_values()
    if values["unknown"] is not None:
        header["unknown"], rule_arrays = values["unknown"].to_values()
        arrays |= {f"unknown.{name}": array for name, array in rule_arrays.items()}
    if values["answer"] is not None:
        header["answer"] = values["answer"].to_values()
    write_tensor_file(path, FORMAT, FORMAT_VERSION, header, arrays)


def read_fields(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the fields of a :class:`CompactClassifier` from a file of any known version."""
    path = checked_path("path", path)
    header, arrays = read_tensor_file(path, FORMAT, VERSIONS, ClassifierFileError)
    try:
        return _fields(header, arrays)
    except _INVALID as error:
        raise ClassifierFileError(f"{path}: an invalid {FORMAT} file ({error})") from None


def _fields(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    header, arrays = current_header(header, arrays, "family.")
    family = family_from_state(header["family"], arrays_below("family.", arrays))
    classes = _classes(header["classes"], header.get("class_type"))
    metadata = header["metadata"]
    if not isinstance(metadata, dict):
        raise InputError("metadata", metadata, "a table")
    k = len(classes)
    n = family.n_features_
    return {
        "family": family,
        "weights": _shaped(arrays, "weights", (k, n)),
        "intercept": _shaped(arrays, "intercept", (k,)),
        "classes": classes,
        "temperature": float(header["temperature"]),
        "path": _path(header["path"], arrays, k, n),
        "metadata": metadata,
        "exit_rule": _exit_rule(header.get("exit_rule")),
        "preprocessing": Preprocessing.from_values(header.get("preprocessing", {})),
        "values": TrainingValues.from_values(header.get("values")),
        "unknown": UnknownRule.from_values(header.get("unknown"), arrays_below("unknown.", arrays)),
        "answer": rule_from_values(header.get("answer")),
    }


def _class_values(classes: np.ndarray) -> dict[str, Any]:
    """Return the entries of a file that tell of classes: labels, and their type where needed."""
    labels = classes.tolist()
    name = "str" if classes.dtype.kind == "U" else classes.dtype.name
    if name == _TYPE_OF[type(labels[0])]:
        return {"classes": labels}
    if name == "uint64" and max(labels) > np.iinfo(np.int64).max:
        # No reader of these files takes longer numbers.
        labels = list(map(str, labels))
    return {"classes": labels, "class_type": name}


def _classes(labels: Any, name: Any) -> np.ndarray:
    """Return the classes of a file, in the type that they were saved in."""
    types = {type(label) for label in labels} if isinstance(labels, list) else set()
    if len(types) != 1 or not types <= _TYPE_OF.keys():
        raise InputError("classes", labels, "labels of one type")
    name = _TYPE_OF[types.pop()] if name is None else name
    if name not in _CLASS_TYPES or (name == "object" and not isinstance(labels[0], str)):
        raise InputError("class_type", name, ", ".join(_CLASS_TYPES))
    if name == "uint64" and isinstance(labels[0], str):
        labels = [int(label) for label in labels if len(label) <= _DIGITS]
    classes = np.array(labels, name)
    if classes.tolist() != labels:
        raise InputError("classes", labels, f"labels of the type {name}")
    return classes


def _exit_rule(values: Any) -> ExitRule | None:
    if values is None:
        return None
    if not isinstance(values, dict) or set(values) != {"rounds", "margins"}:
        raise InputError("exit_rule", values, "a table of rounds and margins")
    return ExitRule(tuple(values["rounds"]), tuple(values["margins"]))


def _shaped(arrays: dict[str, np.ndarray], name: str, shape: tuple[int, ...]) -> np.ndarray:
    array = arrays.get(name)
    if array is None or array.shape != shape or array.dtype != np.float32:
        given = None if array is None else array.shape
        raise InputError(name, given, f"float32 of shape {shape}")
    return array


def _path(
    rounds: Any, arrays: dict[str, np.ndarray], k: int, n_features: int
) -> tuple[PathStep, ...]:
    # 1) Numbers of features grow, and arrays hold as many weights.
    if not isinstance(rounds, list):
        raise InputError("path", rounds, "a list of rounds")
    widths = [step["n_features"] for step in rounds]
    fit = all(type(width) is int and 0 < width <= n_features for width in widths)
    if not fit or any(a >= b for a, b in pairwise(widths)):
        raise InputError("path", "numbers of features", "numbers that grow up to all features")
    if not rounds:
        return ()
    weights = _shaped(arrays, "path.weights", (k * sum(widths),))
    intercepts = _shaped(arrays, "path.intercept", (k * len(widths),)).reshape(-1, k)
    # 2) Values of each round.
    parts = np.split(weights, k * np.cumsum(widths)[:-1])
    steps = []
    for step, part, intercept in zip(rounds, parts, intercepts, strict=True):
        if set(step) != set(_STEP_VALUES):
            raise InputError("path", sorted(step), f"the values {sorted(_STEP_VALUES)}")
        entered = step["feature"]
        if not isinstance(entered, list) or not all(type(j) is int for j in entered):
            raise InputError("path", entered, "feature ids")
        values = {**step, "feature": tuple(entered)}
        steps.append(PathStep(weights=part.reshape(k, -1), intercept=intercept, **values))
    return tuple(steps)
