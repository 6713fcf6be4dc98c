"""Classifier files with faults."""

from __future__ import annotations

import copy
import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from scripts.attack.damage import Inputs, mutated

_LARGEST_IMAGE = 1 << 20


@cache
def classifier_seeds() -> list[bytes]:
    """Return a small classifier file of every family, some with exit rules and preprocessing."""
    from visionshare.classifier import ExitRule
    from visionshare.datasets import Preprocessing, load_dataset

    images = load_dataset("digits", "train").images[:60]
    files = []
    with tempfile.TemporaryDirectory() as folder:
        for number, family in enumerate(_families(images)):
            model = small_model(family, number)
            if number % 2:
                model = replace(model, exit_rule=ExitRule((1, 2), (0.5, 0.5)))
            if number % 3 == 0:
                steps = Preprocessing("automatic", True, True, fit="box", margin=1, center="mass")
                model = replace(model, preprocessing=steps)
            path = Path(folder) / "a.safetensors"
            model.save(path)
            files.append(path.read_bytes())
    return files


def _families(images: np.ndarray) -> Iterator[Any]:
    from tests.generators.examples import family_examples
    from visionshare.generators import family_names

    for name in family_names():
        for make in family_examples(name).values():
            family = make().fit(images)
            yield family.take(np.arange(min(6, family.n_features_)))


def small_model(family: Any, number: int) -> Any:
    from visionshare import CompactClassifier
    from visionshare.classifier import PathStep

    rng = np.random.default_rng(number)
    n = family.n_features_
    weights = rng.normal(size=(3, n)).astype(np.float32)
    zeros = np.zeros(3, np.float32)
    path = [
        PathStep(t, (t,), t, weights[:, :t], zeros, 1.0, 0.1, None, None, 0.1, 10, 1.0)
        for t in range(1, n + 1)
    ]
    classes = np.arange(3) if number % 2 else np.array(["a", "b", "ç"])
    return CompactClassifier(family, weights, zeros, classes, 2.0, tuple(path), {"made": "up"})


HOSTILE: list[Any] = [
    None, True, -1, 0, 1, 2, 7, 2**31, 2**63, 2**64, 10**30, -(2**63), 0.5, -0.0, 1e308, 1e-320,
    float("nan"), float("inf"), "", "a", "0" * 5000, "\x00", "\ud800", [], {}, [[]], [1] * 2000,
    ["a", 1], {"a": 1}, "pixels", "union", "F64", "I64", [3, 3], [65536, 65536], [-1, -1], [0],
]  # fmt: skip


def _deep() -> Any:
    nested: Any = 1
    for _ in range(400):
        nested = [nested]
    return nested


def _nodes(value: Any) -> list[tuple[Any, Any]]:
    """Return every node of nested tables and lists, as its container and its key."""
    nodes = []
    left = [value]
    while left:
        container = left.pop()
        size = min(len(container), 50)
        for key in list(container) if isinstance(container, dict) else range(size):
            nodes.append((container, key))
            if isinstance(container[key], (dict, list)):
                left.append(container[key])
    return nodes


def change_json(value: Any, rng: np.random.Generator) -> None:
    """Change one node of nested plain values."""
    nodes = _nodes(value)
    if not nodes:
        return
    container, key = nodes[rng.integers(0, len(nodes))]
    fault = rng.integers(0, 10)
    if fault == 0:
        del container[key]
    elif fault == 1:
        container[key] = _deep()
    elif fault == 2 and isinstance(container, list):
        container.append(container[key])
    elif fault == 3 and type(container[key]) in (int, float):
        container[key] = container[key] + int(rng.integers(-2, 3))
    elif fault == 4:
        other, another = nodes[rng.integers(0, len(nodes))]
        with suppress(LookupError):
            # Parts of the file in positions of other parts; never of themselves.
            container[key] = json.loads(json.dumps(other[another]))
    else:
        container[key] = copy.deepcopy(HOSTILE[rng.integers(0, len(HOSTILE))])


def absurd_json(rng: np.random.Generator) -> bytes:
    """Return a text of great depth, of many entries, of a long name or of a long number."""
    n = int(rng.choice([1000, 20_000, 200_000]))
    entry = b'{"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}'
    texts = (
        b"[" * n,
        b'{"a":' * n + b"1" + b"}" * n,
        b"{" + b", ".join(b'"%d": %s' % (i, entry) for i in range(n // 20)) + b"}",
        b'{"' + b"a" * n + b'": 1}',
        b'{"a": ' + b"9" * n + b"}",
        b'{"__metadata__": {"visionshare": "' + b"[" * n + b'"}}',
        b'{"__metadata__": {"visionshare": "{}"}, "a": {"dtype": "F32", "shape": ['
        + b", ".join([b"0"] * (n // 10)) + b'], "data_offsets": [0, 0]}}',
    )  # fmt: skip
    return texts[rng.integers(0, len(texts))]


def mutated_classifier(seeds: list[bytes], rng: np.random.Generator) -> bytes:
    """Return a damaged file, or an untrusted one with a valid checksum."""
    content = seeds[rng.integers(0, len(seeds))]
    fault = rng.random()
    if fault < 0.2:
        return mutated(content, rng)
    if fault < 0.23:
        text = absurd_json(rng)
        return len(text).to_bytes(8, "little") + text
    length = int.from_bytes(content[:8], "little")
    table = json.loads(content[8 : 8 + length])
    body = bytearray(content[8 + length :])
    header = json.loads(table.pop("__metadata__")["visionshare"])
    for _ in range(rng.integers(0, 3)):
        change_json(header, rng)
    if rng.random() < 0.3:
        change_json(table, rng)
    if rng.random() < 0.5 and len(body) >= 8:
        start = 4 * int(rng.integers(0, len(body) // 4))
        floats = np.array([np.nan, np.inf, -np.inf, 3e38, 1e-42], np.float32)
        integers = np.array([-1, 2**62, 9, 0], np.int64)
        values: np.ndarray = (floats, integers)[rng.integers(0, 2)]
        content = values[rng.integers(0, len(values))].tobytes()
        body[start : start + len(content)] = content
    return _sealed(header, table, bytes(body))


def _sealed(header: Any, table: Any, body: bytes) -> bytes:
    """Return the file with the checksum that the library would write."""
    from visionshare.files.fingerprints import spec_fingerprint

    if isinstance(header, dict):
        header.pop("sha256", None)
        with suppress(Exception):
            arrays = {}
            for name, entry in table.items():
                start, stop = entry["data_offsets"]
                kind = {"F32": "<f4", "I64": "<i8"}[entry["dtype"]]
                arrays[name] = np.frombuffer(body[start:stop], kind).reshape(entry["shape"])
            header["sha256"] = spec_fingerprint(header, arrays)
    text = json.dumps({"__metadata__": {"visionshare": json.dumps(header)}, **table}).encode()
    return len(text).to_bytes(8, "little") + text + body


def use_classifier(content: bytes, rng: np.random.Generator) -> None:
    """Load a file, and where that is possible do all that it can."""
    from visionshare import load
    from visionshare.export import c_program

    path = Path(tempfile.gettempdir()) / f"attack-{os.getpid()}.safetensors"
    try:
        path.write_bytes(content)
        model = load(path)
        if int(np.prod(model.image_shape)) > _LARGEST_IMAGE:
            return
        images = rng.integers(0, 256, (2, *model.image_shape), np.uint8)
        model.predict_proba(images)
        json.dumps(model.summary())
        if model.path:
            model.at(len(model.path)).decision_function(images[:1])
        if model.exit_rule is not None:
            from visionshare.classifier import EarlyExit

            EarlyExit(model).predict(images)
        if model.picture_size is not None:
            model.preprocessing.apply(np.zeros((9, 9), np.uint8), model.picture_size)
        if rng.random() < 0.1:
            c_program(model)
            model.save(path)
    finally:
        path.unlink(missing_ok=True)


@cache
def family_seeds() -> list[bytes]:
    """Return a file of every family."""
    from visionshare.datasets import load_dataset
    from visionshare.generators.family_file import write_family

    files = []
    with tempfile.TemporaryDirectory() as folder:
        for family in _families(load_dataset("digits", "train").images[:60]):
            write_family(Path(folder) / "a.safetensors", family)
            files.append((Path(folder) / "a.safetensors").read_bytes())
    return files


def use_family(content: bytes, rng: np.random.Generator) -> None:
    """Read a file of features, and evaluate them."""
    from visionshare.generators.family_file import read_family

    path = Path(tempfile.gettempdir()) / f"attack-{os.getpid()}.safetensors"
    try:
        path.write_bytes(content)
        family = read_family(path)
        if int(np.prod(family.image_shape_)) <= _LARGEST_IMAGE:
            family.transform(rng.integers(0, 256, (2, *family.image_shape_), np.uint8))
    finally:
        path.unlink(missing_ok=True)


CLASSIFIERS = Inputs(classifier_seeds, mutated_classifier, use_classifier)
FAMILIES = Inputs(family_seeds, mutated_classifier, use_family)
