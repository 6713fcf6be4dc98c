"""Compact classifiers from files, computed by Python and by their own C."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.peers.peer import Trained
from visionshare import CompactClassifier, load
from visionshare.datasets import ImageSet
from visionshare.errors import InputError

__all__ = ["ours", "read"]

# Of a run's stages, those that make the classifier from images in memory.
STAGES = ("features", "columns", "learning", "early exit")


def read(file: Path, test: ImageSet) -> CompactClassifier:
    """Return the classifier of a file, one of such images and classes."""
    classifier = load(file)
    if classifier.image_shape != test.images.shape[1:]:
        accepted = f"classifiers of images of shape {test.images.shape[1:]}"
        raise InputError("ours", f"{file.name} of shape {classifier.image_shape}", accepted)
    unknown = set(map(str, classifier.classes_)) ^ set(test.classes)
    if unknown:
        accepted = f"classifiers of the classes {', '.join(test.classes)}"
        raise InputError(
            "ours", f"{file.name} of {', '.join(map(str, classifier.classes_))}", accepted
        )
    return classifier


def ours(file: Path, classifier: CompactClassifier, test: ImageSet) -> dict[str, Trained]:
    """Return the classifier in Python and compiled, by name."""
    metrics: dict[str, Any] = {}
    if (file.parent / "metrics.json").is_file():
        metrics = json.loads((file.parent / "metrics.json").read_text(encoding="utf-8"))
    seconds = None
    if "seconds" in metrics:
        seconds = sum(metrics["seconds"].get(stage, 0.0) for stage in STAGES)
    places = np.array([test.classes.index(str(name)) for name in classifier.classes_])
    compiled = classifier.compile()
    settings = (
        f"A compact classifier of {classifier.n_features} features, all of them computed for each "
        "image. "
    )
    if seconds is None:
        settings += "What its training took is not known."
    else:
        settings += (
            f"Training is its run's {', '.join(STAGES)}, with {metrics['train_images']:,} images, "
            "as noted beside the file: at another time, perhaps elsewhere; tuning is not in it."
        )
    ways: dict[str, Callable[[np.ndarray], np.ndarray]] = {
        "Python": classifier.decision_function,
        "C": compiled.decision_function,
    }

    def predictor(scores: Callable[[np.ndarray], np.ndarray]) -> Callable[[np.ndarray], np.ndarray]:
        return lambda images: places[np.argmax(scores(images), axis=1)]

    name = metrics.get("pipeline", file.stem)
    return {
        f"visionshare, {name}, {way}": Trained(
            predictor(scores), f"{classifier.macs:,}", settings, seconds
        )
        for way, scores in ways.items()
    }
