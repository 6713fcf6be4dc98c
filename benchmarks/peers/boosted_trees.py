"""Gradient boosted trees on pixels: LightGBM."""

from __future__ import annotations

import itertools
from importlib.metadata import version
from typing import Any

import numpy as np

from benchmarks.peers.peer import (
    Choice,
    Effort,
    Trained,
    pixel_rows,
    processor_stopwatch,
    two_parts,
)
from scripts.reproduce.results import listed, render
from visionshare.datasets import ImageSet

__all__ = ["TreesPredictor", "comparisons", "learn", "tune"]

LEAVES, FRACTIONS = (15, 31, 63), (0.1, 0.5)
RATE, ROUNDS, QUICK_ROUNDS, PATIENCE = 0.1, 1500, 30, 50
MOST, VALIDATION, COUNTED = 10_000, 5_000, 1_000


def _boosted(
    train: ImageSet, settings: dict[str, Any], rounds: int, validation: ImageSet | None = None
) -> Any:
    """Return a booster; with validation images it stops when they gain nothing for a while."""
    import lightgbm

    data = lightgbm.Dataset(pixel_rows(train.images), train.labels)
    if validation is None:
        return lightgbm.train(settings, data, rounds)
    evaluated = data.create_valid(pixel_rows(validation.images), validation.labels)
    stop = lightgbm.early_stopping(PATIENCE, verbose=False)
    return lightgbm.train(settings, data, rounds, [evaluated], callbacks=[stop])


def _error(booster: Any, images: ImageSet) -> float:
    scores = booster.predict(pixel_rows(images.images))
    return float(np.mean(np.argmax(scores, axis=1) != images.labels))


def _depths(node: dict[str, Any], depth: int = 0) -> dict[int, int]:
    """Return how many comparisons lead to each leaf."""
    if "split_index" not in node:
        return {node.get("leaf_index", 0): depth}
    sides = (_depths(node[side], depth + 1) for side in ("left_child", "right_child"))
    return {leaf: count for side in sides for leaf, count in side.items()}


def comparisons(booster: Any, images: np.ndarray) -> float:
    """Return the comparisons per image, on average."""
    leaves = booster.predict(pixel_rows(images), pred_leaf=True).astype(np.int64)
    count = 0
    for tree, reached in zip(booster.dump_model()["tree_info"], leaves.T, strict=True):
        depths = _depths(tree["tree_structure"])
        count += sum(depths[leaf] for leaf in reached.tolist())
    return count / len(images)


class TreesPredictor:
    """The labels that a booster gives to images, on one thread."""

    def __init__(self, booster: Any) -> None:
        self._booster = booster

    def __call__(self, images: np.ndarray) -> np.ndarray:
        scores = self._booster.predict(pixel_rows(images), raw_score=True, num_threads=1)
        return np.argmax(scores, axis=1)


def _fixed(train: ImageSet, effort: Effort) -> dict[str, Any]:
    """Return what is not tuned."""
    return {
        "objective": "multiclass",
        "num_class": len(train.classes),
        "learning_rate": RATE,
        "num_threads": effort.jobs,
        # The loss is least long before the errors are.
        "metric": "multi_error",
        "force_col_wise": True,
        "verbosity": -1,
        "seed": effort.seed,
    }


def tune(train: ImageSet, effort: Effort) -> Choice:
    """Choose leaves, inputs per tree and rounds on parts of the training images."""
    rounds, fixed = QUICK_ROUNDS if effort.quick else ROUNDS, _fixed(train, effort)
    part, validation = two_parts(train, MOST, VALIDATION)
    pairs, errors = list(itertools.product(LEAVES, FRACTIONS)), []
    for leaves, fraction in pairs:
        varied = fixed | {"num_leaves": leaves, "feature_fraction": fraction}
        errors.append(_error(_boosted(part, varied, rounds, validation), validation))
    leaves, fraction = pairs[int(np.argmin(errors))]
    chosen = {"num_leaves": leaves, "feature_fraction": fraction}
    rest, stopping = two_parts(train)
    enough = _boosted(rest, fixed | chosen, rounds, stopping).best_iteration
    counts = {"n_train": len(part), "n_validation": len(validation), "n_stopping": len(stopping)}
    return {"settings": chosen, "rounds": enough, "most_rounds": rounds, **counts}


def learn(train: ImageSet, effort: Effort, choice: Choice) -> Trained:
    """Train on all images."""
    chosen = choice["settings"]
    with processor_stopwatch() as seconds:
        booster = _boosted(train, _fixed(train, effort) | chosen, choice["rounds"])
    counted = comparisons(booster, train.images[:COUNTED])
    settings = render(
        "peers/boosted_trees",
        version=version("lightgbm"),
        jobs=effort.jobs,
        rate=f"{RATE:g}",
        leaves_tried=listed(LEAVES),
        fractions_tried=listed(FRACTIONS),
        n_validation=choice["n_validation"],
        n_train=choice["n_train"],
        leaves=chosen["num_leaves"],
        fraction=chosen["feature_fraction"],
        n_stopping=choice["n_stopping"],
        patience=PATIENCE,
        most_rounds=choice["most_rounds"],
        rounds=choice["rounds"],
        n_counted=min(COUNTED, len(train)),
    )
    cost, size = f"{counted:,.0f} comparisons", len(booster.model_to_string())
    return Trained(TreesPredictor(booster), None, cost, size, settings, seconds[0])
