"""Randomized trees in C by emlearn, as its documentation says: inline, on pixels."""

from __future__ import annotations

import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from benchmarks.edge.contender import Contender
from visionshare.datasets import load_images
from visionshare.export.targets import DeviceSources

__all__ = ["SIZES", "available", "learn_trees"]

#: Trees and leaves of each: the sizes that are measured, none of them chosen on test images.
SIZES = ((5, 60), (10, 200), (30, 400))
_HEADER = """#include <stdint.h>
struct trees_work {{ int16_t pixels[{pixels}]; }};
int trees_classify(const uint8_t *image, struct trees_work *work, int32_t *scores);
"""
_SOURCE = """#include "trees.h"
#include "trees_model.h"
int trees_classify(const uint8_t *image, struct trees_work *work, int32_t *scores)
{{
    int32_t i, label;
    for (i = 0; i < {pixels}; i++) work->pixels[i] = image[i];
    label = trees_predict(work->pixels, {pixels});
    for (i = 0; i < {classes}; i++) scores[i] = i == label;
    return (int)label;
}}
"""


def available() -> bool:
    """Return whether emlearn is installed."""
    return find_spec("emlearn") is not None


def learn_trees(set_name: str, data: Path, n_trees: int, n_leaves: int) -> Contender:
    """Return trees that are learned from the training images of a data set."""
    # Its import makes all of numpy's warnings errors, for the whole process.
    with np.errstate():
        import emlearn
    from sklearn.ensemble import ExtraTreesClassifier

    train, test = (load_images(set_name, split, data) for split in ("train", "test"))
    rows = train.images.reshape(len(train.images), -1).astype(np.int16)
    start = time.perf_counter()
    trees = ExtraTreesClassifier(n_trees, max_leaf_nodes=n_leaves, random_state=0)
    trees.fit(rows, train.labels)
    seconds = time.perf_counter() - start
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "trees_model.h"
        emlearn.convert(trees, method="inline", dtype="int16_t").save(file=str(file), name="trees")
        model = file.read_text()
    pixels, classes = rows.shape[1], len(train.classes)
    sources = DeviceSources(
        "trees",
        {
            "trees.h": _HEADER.format(pixels=pixels),
            "trees_model.h": model,
            "trees.c": _SOURCE.format(pixels=pixels, classes=classes),
        },
        "uint8", pixels, classes, "int32",
    )  # fmt: skip
    name = f"emlearn, {n_trees} trees of {n_leaves} leaves"
    return Contender(name, sources, None, test.images, test.labels, seconds)
