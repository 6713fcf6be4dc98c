"""The classifier file: safetensors with a JSON header. Data only; nothing in it can run."""

from __future__ import annotations

import json
import os
from dataclasses import fields
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from visionshare.classifier.compact import CompactClassifier
from visionshare.classifier.path import PathStep
from visionshare.durable import replace_file
from visionshare.errors import ClassifierFileError, InputError
from visionshare.generators import family_from_state

__all__ = ["FORMAT_VERSION", "read_classifier", "write_classifier"]

FORMAT_VERSION = 1
_LARGEST_HEADER = 16 << 20
_LARGEST_FILE = 1 << 30
_ARRAYS_OF_STEP = ("weights", "intercept")
_DTYPES = {"F32", "I64"}


def write_classifier(path: str | os.PathLike[str], classifier: CompactClassifier) -> None:
    """Write a classifier, whole or not at all."""
    from safetensors.numpy import save_file

    from visionshare import __version__

    state, held = classifier.family.to_state()
    arrays = {f"family.{name}": np.ascontiguousarray(array) for name, array in held.items()}
    arrays["weights"], arrays["intercept"] = classifier.weights, classifier.intercept
    path_values = []
    for step in classifier.path:
        path_values.append(
            {f.name: getattr(step, f.name) for f in fields(step) if f.name not in _ARRAYS_OF_STEP}
        )
    if classifier.path:
        for name in _ARRAYS_OF_STEP:
            flat = [np.ravel(getattr(step, name)) for step in classifier.path]
            arrays[f"path.{name}"] = np.concatenate(flat).astype(np.float32)
    header = {
        "format": "visionshare-classifier",
        "version": FORMAT_VERSION,
        "library": __version__,
        "family": state,
        "classes": classifier.classes_.tolist(),
        "temperature": classifier.temperature,
        "path": path_values,
        "metadata": classifier.metadata,
    }
    text = json.dumps(header, allow_nan=False)
    with replace_file(path) as partial:
        save_file(arrays, partial, metadata={"visionshare": text})


def read_classifier(path: str | os.PathLike[str]) -> CompactClassifier:
    """Read a classifier; see :meth:`CompactClassifier.load`."""
    path = Path(path)
    try:
        header, arrays = _read(path)
        return _classifier(header, arrays)
    except ClassifierFileError:
        raise
    except OSError as error:
        reason = error.strerror or "cannot be read"
        raise ClassifierFileError(f"{path}: {reason}; give a file that `train` wrote") from None
    except (InputError, ValueError, TypeError, KeyError, OverflowError, RecursionError) as error:
        raise ClassifierFileError(f"{path}: not a sound classifier file ({error})") from None


def _read(path: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return header and arrays; sizes are checked against the file before anything is held."""
    size = path.stat().st_size
    if size > _LARGEST_FILE:
        raise ClassifierFileError(f"{path}: {size} bytes are no compact classifier")
    with open(path, "rb") as handle:
        length = int.from_bytes(handle.read(8), "little")
        if size < 8 or length > min(size - 8, _LARGEST_HEADER):
            raise ClassifierFileError(f"{path}: not a classifier file (no safetensors header)")
        table = json.loads(handle.read(length))
        body = handle.read()
    if not isinstance(table, dict):
        raise ClassifierFileError(f"{path}: not a classifier file (no safetensors header)")
    about = table.pop("__metadata__", None)
    text = about.get("visionshare") if isinstance(about, dict) else None
    if not isinstance(text, str):
        raise ClassifierFileError(f"{path}: a safetensors file, but not of visionshare")
    header = json.loads(text)
    if not isinstance(header, dict) or header.get("format") != "visionshare-classifier":
        raise ClassifierFileError(f"{path}: a safetensors file, but not of visionshare")
    if header.get("version") != FORMAT_VERSION:
        raise ClassifierFileError(
            f"{path}: format version {header.get('version')!r}; this library reads "
            f"{FORMAT_VERSION}: install a newer visionshare"
        )
    return header, {name: _array(name, entry, body) for name, entry in table.items()}


def _array(name: str, entry: Any, body: bytes) -> np.ndarray:
    dtype, shape, (start, stop) = entry["dtype"], entry["shape"], entry["data_offsets"]
    whole = (*shape, start, stop)
    if dtype not in _DTYPES or any(type(v) is not int or v < 0 for v in whole) or len(shape) > 8:
        raise ValueError(f"array {name}: dtype {dtype!r} or its shape")
    itemsize = 4 if dtype == "F32" else 8
    count = 1
    for side in shape:
        count *= side
    if stop > len(body) or stop - start != count * itemsize:
        raise ValueError(f"array {name}: {stop - start} bytes for shape {shape}")
    kind = np.dtype("<f4" if dtype == "F32" else "<i8")
    return np.frombuffer(body, kind, count, start).reshape(shape)


def _classifier(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> CompactClassifier:
    held = {n.removeprefix("family."): a for n, a in arrays.items() if n.startswith("family.")}
    family = family_from_state(header["family"], held)
    classes = header["classes"]
    plain = isinstance(classes, list) and len({type(c) for c in classes}) == 1
    if not plain or not isinstance(classes[0], (int, str)) or len(set(classes)) != len(classes):
        raise InputError("classes", classes, "different whole numbers or different texts")
    metadata = header["metadata"]
    if not isinstance(metadata, dict):
        raise InputError("metadata", metadata, "a table")
    k, n = len(classes), family.n_features_
    return CompactClassifier(
        family,
        _shaped(arrays, "weights", (k, n)),
        _shaped(arrays, "intercept", (k,)),
        np.asarray(classes),
        float(header["temperature"]),
        _path(header["path"], arrays, k, n),
        metadata,
    )


def _shaped(arrays: dict[str, np.ndarray], name: str, shape: tuple[int, ...]) -> np.ndarray:
    array = arrays.get(name)
    if array is None or array.shape != shape or array.dtype != np.float32:
        given = None if array is None else array.shape
        raise InputError(name, given, f"float32 of shape {shape}")
    return array


def _path(
    values: Any, arrays: dict[str, np.ndarray], k: int, n_features: int
) -> tuple[PathStep, ...]:
    if not isinstance(values, list):
        raise InputError("path", values, "a list of rounds")
    widths = [step["n_features"] for step in values]
    ordered = all(type(w) is int and 0 < w <= n_features for w in widths)
    if not ordered or any(a >= b for a, b in pairwise(widths)):
        raise InputError("path", "numbers of features", "numbers that grow up to all features")
    if not values:
        return ()
    weights = _shaped(arrays, "path.weights", (k * sum(widths),))
    intercepts = _shaped(arrays, "path.intercept", (k * len(widths),)).reshape(-1, k)
    if not (np.isfinite(weights).all() and np.isfinite(intercepts).all()):
        raise InputError("path", "NaN or infinity", "finite weights")
    names = {f.name for f in fields(PathStep)} - set(_ARRAYS_OF_STEP)
    steps, start = [], 0
    for step, width, intercept in zip(values, widths, intercepts, strict=True):
        if set(step) != names:
            raise InputError("path", sorted(step), f"the values {sorted(names)}")
        entered = step["feature"]
        if not isinstance(entered, list) or not all(type(j) is int for j in entered):
            raise InputError("path", entered, "feature ids")
        own = weights[start : start + k * width].reshape(k, width)
        start += k * width
        plain = {**step, "feature": tuple(entered)}
        steps.append(PathStep(weights=own, intercept=intercept, **plain))
    return tuple(steps)
