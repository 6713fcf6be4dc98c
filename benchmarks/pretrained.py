"""Photographs of few pictures per class, with and without a pretrained network.

``python -m benchmarks.pretrained --data FOLDER --out figures.json`` holds out 30 % of the pictures
in the class folders (or the ``.tar``) FOLDER, learns from 5, 20 and 100 of each class (five draws)
and from all others (three), and prints mean errors. The activations are extracted once, into a
store beside FIGURES, and each finished result is kept: a run that was stopped goes on where it was.
Settings are chosen on training pictures alone.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from benchmarks.peers.networks import Network, Plan, fit, tune
from benchmarks.peers.peer import Effort
from visionshare import ImageClassifier, PretrainedNetwork
from visionshare.datasets import ImageSet
from visionshare.datasets.pictures.reading import read_pictures
from visionshare.datasets.readers.registry import find_pictures
from visionshare.datasets.sampling import sample_per_class, stratified_mask
from visionshare.files.durable import write_text
from visionshare.image_classifier.budget import Budget
from visionshare.image_classifier.pretrained import Transfer
from visionshare.image_classifier.proposals import Data
from visionshare.recipes import train_images
from visionshare.store import create_store

__all__ = ["METHODS", "main", "measured", "summary"]

SIDE = 128
_HELD_OUT = 0.3
_POWER = 0.5
SIZES: tuple[int | None, ...] = (5, 20, 100, None)


Predictor: TypeAlias = Callable[[np.ndarray], np.ndarray]


class Photographs:
    """Pictures, and what each method sees of them: activations and histograms, made once."""

    def __init__(self, images: ImageSet, folder: Path) -> None:
        self.images = images
        self._folder = folder
        self._tables: dict[str, np.ndarray] = {}

    def activations(self) -> np.ndarray:
        """Return the 2064 activations of each picture."""
        if "activations" not in self._tables:
            family = PretrainedNetwork(size=SIDE).fit(self.images.images[:1])
            place = self._folder / "activations"
            store = create_store(place, family, self.images.images, "float32", 1 << 30, 1)
            store.fill()
            self._tables["activations"] = store.columns_of(scaled=False).T
        return self._tables["activations"]

    def histograms(self) -> np.ndarray:
        """Return histograms of oriented gradients of pictures at 64 pixels."""
        import cv2
        from skimage.feature import hog

        if "histograms" not in self._tables:
            small = [cv2.resize(image, (64, 64), interpolation=cv2.INTER_AREA)
                     for image in self.images.images]  # fmt: skip
            rows = [hog(image, 9, (8, 8), (2, 2), channel_axis=2) for image in small]
            self._tables["histograms"] = np.stack(rows).astype(np.float32)
        return self._tables["histograms"]


#: Learns from some pictures, by their rows; what it returns tells the classes of others.
Method: TypeAlias = Callable[[Photographs, np.ndarray], Predictor]


def _ours(pretrained: bool | str) -> Method:
    """Return what searches with or without the network."""

    def learned(pictures: Photographs, learning: np.ndarray) -> Predictor:
        images = pictures.images
        model = ImageClassifier(pretrained=pretrained, n_jobs=1)
        model.fit(images.images[learning], images.labels[learning])
        return lambda testing: model.predict(images.images[testing])

    return learned


def _all_features(pictures: Photographs, learning: np.ndarray) -> Predictor:
    """Learn what the search proposes for the network alone, without the search."""
    part = pictures.images.subset(learning)
    data = Data.of(part)
    transfer = Transfer({"size": SIDE, "power": _POWER}, Budget(None), lambda rows, _: rows)
    recipe = next(transfer.proposals(data)).recipe(data, epochs=0)
    classifier = train_images(recipe, part)
    family: Any = classifier.family

    def predicted(testing: np.ndarray) -> np.ndarray:
        # What the classifier computes, of activations that are there already.
        rows = pictures.activations()[testing][:, family.ids_]
        rooted = np.copysign(np.abs(rows) ** _POWER, rows)
        return np.asarray(np.argmax(rooted @ classifier.weights.T + classifier.intercept, axis=1))

    return predicted


def _logistic(pictures: Photographs, learning: np.ndarray) -> Predictor:
    """Logistic regression of scikit-learn on standardized activations, C by cross-validation."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV, StratifiedKFold
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    strengths = {"logisticregression__C": [1e-4, 1e-3, 1e-2, 1e-1, 1.0]}
    steps = make_pipeline(StandardScaler(), LogisticRegression(max_iter=500, tol=1e-3))
    rows, labels = pictures.activations(), pictures.images.labels
    model = GridSearchCV(steps, strengths, cv=folds).fit(rows[learning], labels[learning])
    return lambda testing: np.asarray(model.predict(rows[testing]))


def _histograms(pictures: Photographs, learning: np.ndarray) -> Predictor:
    """A Gaussian support vector machine on histograms of oriented gradients."""
    from sklearn.svm import SVC

    rows, labels = pictures.histograms(), pictures.images.labels
    model = SVC(C=10.0).fit(rows[learning], labels[learning])
    return lambda testing: np.asarray(model.predict(rows[testing]))


def _convolutions(pictures: Photographs, learning: np.ndarray) -> Predictor:
    """A batch-normalized CNN of PyTorch, trained from scratch for a minute at 64 pixels."""
    import cv2

    small = [cv2.resize(image, (64, 64), interpolation=cv2.INTER_AREA)
             for image in pictures.images.images]  # fmt: skip
    images = dataclasses.replace(pictures.images, images=np.stack(small))
    train = images.subset(learning)
    effort = Effort(1, False, seconds=60.0, tuning=60.0)
    network = Network("normalized", 4e6, True)
    choice = tune(train, effort, network)
    plan = Plan(choice["rate"], choice["smoothing"], effort.seconds)
    predict = fit(network, train, plan, effort).predict
    return lambda testing: np.asarray(predict(images.images[testing]))


METHODS: dict[str, Method] = {
    "HOG + SVM": _histograms,
    "CNN from scratch": _convolutions,
    "logistic regression on activations": _logistic,
    "all activations, without the search": _all_features,
    "ImageClassifier()": _ours("auto"),
    "ImageClassifier(pretrained=False)": _ours(False),
}


def measured(pictures: Photographs, method: str, size: int | None, draw: int) -> dict[str, float]:
    """Return the test error of a method, and the seconds of this processor that it learned."""
    labels = pictures.images.labels
    tests = stratified_mask(labels, _HELD_OUT, draw)
    learning = np.flatnonzero(~tests)
    if size is not None:
        rng = np.random.default_rng(draw)
        learning = learning[sample_per_class(labels[learning], size, rng)]
    testing = np.flatnonzero(tests)
    begun = time.process_time()
    predict = METHODS[method](pictures, learning)
    seconds = time.process_time() - begun
    error = float(np.mean(predict(testing) != labels[testing]))
    return {"error": error, "seconds": round(seconds, 1)}


def summary(figures: dict[str, dict[str, float]]) -> str:
    """Return a table of mean errors ± standard deviations, in %, and mean seconds."""
    lines = []
    for method in METHODS:
        for size in SIZES:
            found = [v for key, v in figures.items() if key.startswith(f"{method}/{size}/")]
            if found:
                errors = [100 * one["error"] for one in found]
                seconds = float(np.mean([one["seconds"] for one in found]))
                lines.append(
                    f"{method:36} {size or 'all':>4} {np.mean(errors):6.2f} ± {np.std(errors):.2f}"
                    f" %  {seconds:7.1f} s  ({len(found)} draws)"
                )
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure what is not measured yet, and print all figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--methods", nargs="*", choices=METHODS, default=list(METHODS))
    parser.add_argument("--sizes", nargs="*", default=["5", "20", "100", "all"])
    parser.add_argument("--draws", type=int, default=5)
    given = parser.parse_args(arguments)
    figures = json.loads(given.out.read_text()) if given.out.exists() else {}
    found = find_pictures(os.fspath(given.data))
    read = read_pictures(found, (SIDE, SIDE), "color")
    images = ImageSet(read.images, found.labels[read.numbers], found.classes, found.name)
    pictures = Photographs(images, given.out.parent)
    sizes = [None if size == "all" else int(size) for size in given.sizes]
    for draw in range(given.draws):
        for method in given.methods:
            for size in sizes:
                key = f"{method}/{size}/{draw}"
                if key not in figures and not (size is None and draw >= 3):
                    figures[key] = measured(pictures, method, size, draw)
                    write_text(given.out, json.dumps(figures, indent=1) + "\n")
                    print(key, figures[key], flush=True)
    print(summary(figures))


if __name__ == "__main__":
    main()
