"""Gradient boosted trees on pixels: LightGBM."""

from __future__ import annotations

import itertools
from importlib.metadata import version
from typing import Any

import numpy as np

from benchmarks.peers.peer import Effort, Trained, pixel_rows, two_parts
from scripts.reproduce.results import listed, render, stopwatch
from visionshare.datasets import ImageSet

__all__ = ["comparisons", "learn"]

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


def learn(train: ImageSet, effort: Effort) -> Trained:
    """Choose leaves, inputs per tree and rounds on parts of the training images; train on all."""
    rounds = QUICK_ROUNDS if effort.quick else ROUNDS
    fixed = {
        "objective": "multiclass",
        "num_class": len(train.classes),
        "learning_rate": RATE,
        "num_threads": effort.jobs,
        # The loss is least long before the errors are.
        "metric": "multi_error",
        "force_col_wise": True,
        "verbosity": -1,
        "seed": 0,
    }
    with stopwatch() as tuning:
        part, validation = two_parts(train, MOST, VALIDATION)
        pairs, errors = list(itertools.product(LEAVES, FRACTIONS)), []
        for leaves, fraction in pairs:
            varied = fixed | {"num_leaves": leaves, "feature_fraction": fraction}
            errors.append(_error(_boosted(part, varied, rounds, validation), validation))
        leaves, fraction = pairs[int(np.argmin(errors))]
        chosen = fixed | {"num_leaves": leaves, "feature_fraction": fraction}
        rest, stopping = two_parts(train)
        enough = _boosted(rest, chosen, rounds, stopping).best_iteration
    with stopwatch() as seconds:
        booster = _boosted(train, chosen, enough)
    counted = comparisons(booster, train.images[:COUNTED])
    settings = render(
        "peers/boosted_trees",
        version=version("lightgbm"),
        jobs=effort.jobs,
        rate=f"{RATE:g}",
        leaves_tried=listed(LEAVES),
        fractions_tried=listed(FRACTIONS),
        n_validation=len(validation),
        n_train=len(part),
        leaves=leaves,
        fraction=fraction,
        n_stopping=len(stopping),
        patience=PATIENCE,
        most_rounds=rounds,
        rounds=enough,
        n_counted=min(COUNTED, len(train)),
    )

    def predict(images: np.ndarray) -> np.ndarray:
        scores = booster.predict(pixel_rows(images), raw_score=True, num_threads=1)
        return np.argmax(scores, axis=1)

    return Trained(predict, f"{counted:,.0f} comparisons", settings, seconds[0], tuning[0])
