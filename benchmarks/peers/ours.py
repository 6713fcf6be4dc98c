"""Compact classifiers from files, computed by Python and by their own C."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.peers.peer import Trained
from scripts.reproduce.results import render
from visionshare import CompactClassifier, load
from visionshare.datasets import ImageSet
from visionshare.errors import InputError
from visionshare.export import c_program, compile_classifier, object_size

__all__ = ["WAYS", "name_of", "ours", "read", "seed_of"]

# Of a run's stages, those that make the classifier from images in memory.
STAGES = ("features", "columns", "learning", "fine-tuning", "early exit")
WAYS: dict[str, Callable[[CompactClassifier], Callable[[np.ndarray], np.ndarray]]] = {
    "Python": lambda classifier: classifier.decision_function,
    "C": lambda classifier: compile_classifier(classifier).decision_function,
}


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


def _label(file: Path) -> str:
    return file.resolve().parent.name if file.stem == "classifier" else file.stem


def name_of(file: Path) -> str:
    """Return what to call a classifier: its file, or the folder where a run left it.

    Files whose names differ in a last "-NUMBER" are one classifier with several seeds.
    """
    return re.sub(r"-\d+$", "", _label(file))


def seed_of(file: Path) -> int:
    """Return the number at the end of a file's name; 0 where there is none."""
    number = re.search(r"-(\d+)$", _label(file))
    return int(number[1]) if number else 0


def _n_bytes(file: Path, classifier: CompactClassifier) -> int:
    """Return the bytes of the C's code and tables; of the file where no compiler tells them."""
    size = object_size(c_program(classifier))
    return file.stat().st_size if size is None else size.constant


def ours(file: Path, classifier: CompactClassifier, way: str, test: ImageSet) -> Trained:
    """Return the classifier computed in one of WAYS.

    Raises
    ------
    ExportError
        If there is no C compiler.
    """
    scores = WAYS[way](classifier)
    indices = np.array([test.classes.index(str(name)) for name in classifier.classes_])
    seconds, training = _training(file.parent / "metrics.json")
    settings = render("peers/ours", n_features=classifier.n_features, training=training)

    def predict(images: np.ndarray) -> np.ndarray:
        return indices[np.argmax(scores(images), axis=1)]

    macs, size = classifier.macs, _n_bytes(file, classifier)
    return Trained(predict, macs, f"{macs:,}", size, settings, seconds)


def _training(noted: Path) -> tuple[float | None, str]:
    """Return the seconds of training that a run noted, and what they are."""
    if not noted.is_file():
        return None, render("peers/without-training")
    metrics = json.loads(noted.read_text(encoding="utf-8"))
    kind = "processor_seconds" if "processor_seconds" in metrics else "seconds"
    stages = {name: metrics[kind][name] for name in STAGES if name in metrics[kind]}
    return sum(stages.values()), render(
        "peers/ours-training",
        kind=kind.replace("_", " "),
        stages=", ".join(stages),
        n_train=f"{metrics['train_images']:,}",
    )
