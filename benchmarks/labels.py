"""Wrong labels that are found, and pictures that are worth labeling.

    python -m benchmarks.labels --data DIR --json FILE

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
_PART, _MOST, _STEP, _STEPS, _SEEDS = 0.05, 2500, 50, 5, 5


def _some(images: ImageSet) -> ImageSet:
    if len(images) <= _MOST:
        return images
    return images.subset(np.flatnonzero(stratified_mask(images.labels, _MOST / len(images), 0)))


def found(images: ImageSet, seed: int = 0) -> dict[str, float]:
    """Return the part of the first 5 % whose labels were changed, by ranking."""
    rng = np.random.default_rng(seed)
    k = len(images.classes)
    changed = rng.permutation(len(images))[: round(_PART * len(images))]
    labels = images.labels.copy()
    labels[changed] = (labels[changed] + rng.integers(1, k, len(changed))) % k
    made = doubtful_labels(images.images, labels, seed=seed)
    n = len(changed)
    orders = {"visionshare": made.order}
    if find_spec("cleanlab") is not None:
        mask = np.ones(len(labels), bool)
        rank = import_module("cleanlab.rank")
        ranked = rank.order_label_issues(mask, labels, made.probabilities)
        orders["cleanlab, self-confidence"] = ranked
    return {name: float(np.isin(order[:n], changed).mean()) for name, order in orders.items()}


def bought(train: ImageSet, test: ImageSet, seed: int) -> dict[str, list[float]]:
    """Return test errors after each purchase of labels, suggested and at random."""
    both = picture_features(np.concatenate([train.images, test.images]), 0)
    values, test_values = both[: len(train)], both[len(train) :]
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
    parser.add_argument("--json", type=Path)
    given = parser.parse_args(arguments)
    results: dict[str, Any] = {"changed labels": {}, "labels bought": {}}
    for name in CHANGED:
        results["changed labels"][name] = found(_some(load(name, given.data)[0]))
        sys.stdout.write(f"{name}: {results['changed labels'][name]}\n")
    for name in BOUGHT:
        train, test = map(_some, load(name, given.data))
        runs = [bought(train, test, seed) for seed in range(_SEEDS)]
        means = {way: np.mean([run[way] for run in runs], axis=0).tolist() for way in runs[0]}
        results["labels bought"][name] = means
        for way, errors in means.items():
            text = " ".join(f"{100 * error:5.1f} %" for error in errors)
            sys.stdout.write(f"{name} {way}: {text}\n")
    if given.json is not None:
        given.json.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
