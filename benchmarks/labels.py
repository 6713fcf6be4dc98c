"""Wrong labels that are found, and pictures that are worth labeling.

    python -m benchmarks.labels --data DIR --changed digits --bought digits --json FILE

Of five sets 5 % of the labels are changed: how many of the first 5 % of the ranking are changed
ones, beside cleanlab's ranking by the same probabilities (where it is installed). Of three sets
labels are bought 50 at a time, suggested or at random: the test error of a logistic regression on
the same features, five seeds.
"""

from __future__ import annotations

import argparse
import json
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.picture_sets import load
from visionshare.batch.suggestions import suggested
from visionshare.datasets import ImageSet
from visionshare.datasets.sampling import stratified_mask
from visionshare.recipes.wrong_labels import doubtful_labels, picture_features

__all__ = ["bought", "found", "main"]

CHANGED = ("digits", "mnist", "fashion-mnist", "chars74k", "brodatz")
BOUGHT = ("digits", "mnist", "fashion-mnist")
_PART, _MOST, _STEP, _STEPS, _SEEDS = 0.05, 1000, 50, 5, 5


def _some(images: ImageSet) -> ImageSet:
    if len(images) <= _MOST:
        return images
    return images.subset(np.flatnonzero(stratified_mask(images.labels, _MOST / len(images), 0)))


def found(images: ImageSet, seed: int = 0) -> dict[str, Any]:
    """Return the part of the first 5 % whose labels were changed, and how many are doubted."""
    rng = np.random.default_rng(seed)
    k = len(images.classes)
    changed = rng.permutation(len(images))[: round(_PART * len(images))]
    labels = images.labels.copy()
    labels[changed] = (labels[changed] + rng.integers(1, k, len(changed))) % k
    made = doubtful_labels(images.images, labels, seed=seed)
    clean = doubtful_labels(images.images, images.labels, seed=seed)
    n = len(changed)
    doubted = made.order[: made.n_doubted]
    figures: dict[str, Any] = {
        "images": len(labels), "changed": n,
        "first 5 %": float(np.isin(made.order[:n], changed).mean()),
        "doubted": made.n_doubted, "of them changed": int(np.isin(doubted, changed).sum()),
        "doubted of clean labels": clean.n_doubted,
    }  # fmt: skip
    if find_spec("cleanlab") is not None:
        filters = import_module("cleanlab.filter")
        rank = import_module("cleanlab.rank")
        order = rank.order_label_issues(np.ones(len(labels), bool), labels, made.probabilities)
        figures["cleanlab: first 5 %"] = float(np.isin(order[:n], changed).mean())
        for by in ("prune_by_noise_rate", "confident_learning"):
            issues = filters.find_label_issues(labels, made.probabilities, filter_by=by, n_jobs=1)
            of_clean = filters.find_label_issues(
                images.labels, clean.probabilities, filter_by=by, n_jobs=1
            )
            figures[f"cleanlab, {by}: doubted"] = int(issues.sum())
            figures[f"cleanlab, {by}: of them changed"] = int(issues[changed].sum())
            figures[f"cleanlab, {by}: doubted of clean labels"] = int(of_clean.sum())
    return figures


def bought(
    train: ImageSet, test: ImageSet, values: np.ndarray, test_values: np.ndarray, seed: int
) -> dict[str, list[float]]:
    """Return test errors after each purchase of labels, suggested and at random."""
    errors: dict[str, list[float]] = {}
    for way in ("suggested", "random"):
        rng = np.random.default_rng(seed)
        has = np.zeros(len(train), bool)
        has[rng.permutation(len(train))[: 2 * _STEP]] = True
        errors[way] = []
        for _ in range(_STEPS):
            model = make_pipeline(StandardScaler(), LogisticRegression(C=0.01, max_iter=100))
            model.fit(values[has], train.labels[has])
            errors[way].append(float(np.mean(model.predict(test_values) != test.labels)))
            left = np.flatnonzero(~has)
            if way == "random":
                has[rng.permutation(left)[:_STEP]] = True
            else:
                probabilities = model.predict_proba(values[left])
                has[left[suggested(probabilities, values[left], _STEP)]] = True
    return errors


def main(arguments: list[str] | None = None) -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--changed", nargs="*", default=CHANGED, choices=CHANGED)
    parser.add_argument("--bought", nargs="*", default=BOUGHT, choices=BOUGHT)
    parser.add_argument("--json", type=Path, help="a line is added for each set")
    given = parser.parse_args(arguments)
    for name in given.changed:
        images = _some(load(name, given.data)[0])
        _note({"set": name, "changed labels": found(images)}, given.json)
    for name in given.bought:
        train, test = map(_some, load(name, given.data))
        both = picture_features(np.concatenate([train.images, test.images]), 0)
        parts = both[: len(train)], both[len(train) :]
        runs = [bought(train, test, *parts, seed) for seed in range(_SEEDS)]
        errors = {way: np.round([run[way] for run in runs], 4).tolist() for way in runs[0]}
        _note({"set": name, "labels bought": errors}, given.json)


def _note(row: dict[str, Any], file: Path | None) -> None:
    text = json.dumps(row) + "\n"
    sys.stdout.write(text)
    if file is not None:
        with file.open("a") as lines:
            lines.write(text)


if __name__ == "__main__":
    main()
