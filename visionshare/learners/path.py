"""The path of a learner: its rounds as the classifiers that a compact classifier carries."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from visionshare.classifier.path import PathStep
from visionshare.columns import Columns
from visionshare.learners.examples import Examples
from visionshare.learners.rounds import Round
from visionshare.scores import two_sided
from visionshare.search import Pool


class Prefix(NamedTuple):
    """A model on the first columns of a support, in the columns' own units."""

    round: int
    coef: np.ndarray
    intercept: np.ndarray
    loss: float
    score: float
    seconds: float


def support_of(pool: Pool, candidates: Iterable[int | np.integer]) -> np.ndarray:
    """Return the ids of candidates' columns, in order."""
    features = [pool.features(candidate) for candidate in candidates]
    return np.concatenate([np.empty(0, np.int64), *features]).astype(np.int64)


def joint_support(
    ids: Sequence[np.ndarray], weights: Sequence[np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Return one support for tasks that chose their own columns, and weights (T, n) on it."""
    entered = np.concatenate([np.empty(0, np.int64), *ids]).astype(np.int64)
    _, first = np.unique(entered, return_index=True)
    support = entered[np.sort(first)]
    position = {int(j): i for i, j in enumerate(support)}
    W = np.zeros((len(ids), len(support)))
    for t, (chosen, values) in enumerate(zip(ids, weights, strict=True)):
        W[t, [position[int(j)] for j in chosen]] = values
    return support, W


def widest(prefixes: Iterable[Prefix]) -> list[Prefix]:
    """Return the last prefix of each width, by width."""
    last = {prefix.coef.shape[1]: prefix for prefix in prefixes}
    return [last[n] for n in sorted(last) if n]


def prefix_path(
    columns: Columns, support: np.ndarray, examples: Examples, prefixes: Iterable[Prefix]
) -> tuple[PathStep, ...]:
    """Return models on growing prefixes of a support as a path, with their training errors."""
    if len(support) == 0:
        return ()
    precise = operator.methodcaller("astype", np.float64)
    values = columns.each(precise, columns.columns_of(support, scaled=False))
    y = columns.of_examples(examples.y)
    omega = columns.of_examples(examples.omega)
    total = examples.omega.sum()
    steps: list[PathStep] = []
    for prefix in prefixes:
        wrong = columns.total(_wrong_weight, values, prefix.coef, prefix.intercept, y, omega)
        before = steps[-1].n_features if steps else 0
        shorter = support[: prefix.coef.shape[1]]
        steps.append(_step(columns, shorter, before, prefix, float(wrong / total), None))
    return tuple(steps)


def _wrong_weight(
    values: np.ndarray, coef: np.ndarray, intercept: np.ndarray, y: np.ndarray, omega: np.ndarray
) -> float:
    """Return the weight of the examples that a model (k, n) on the first columns gets wrong."""
    # Weights that are infinite in float32, as paths keep them, have no errors to speak of.
    with np.errstate(invalid="ignore", over="ignore"):
        scores = coef @ values[: coef.shape[1]] + intercept[:, None]
    labels = scores[0] > 0 if len(scores) == 1 else np.argmax(scores, axis=0)
    return float((labels != y) @ omega)


def _step(
    columns: Columns,
    support: np.ndarray,
    before: int,
    prefix: Prefix,
    train_error: float,
    validation_error: float | None,
) -> PathStep:
    """Return the step of a prefix, with a row of weights for each class."""
    # A compact classifier refuses what is infinite in float32; a learner has its own weights.
    with np.errstate(over="ignore"):
        weights = two_sided(prefix.coef[None])[0].astype(np.float32)
        intercept = two_sided(prefix.intercept[None])[0].astype(np.float32)
    return PathStep(
        round=prefix.round,
        feature=tuple(support[before:].tolist()),
        n_features=len(support),
        weights=weights,
        intercept=intercept,
        loss=prefix.loss,
        train_error=train_error,
        validation_error=validation_error,
        test_error=None,
        seconds=prefix.seconds,
        macs=(columns.macs(support) or 0) + weights.size,
        score=prefix.score,
    )


def greedy_path(pool: Pool, history: Sequence[Round]) -> tuple[PathStep, ...]:
    """Return rounds that each add a candidate as a path; they know their errors."""
    steps: list[PathStep] = []
    seconds = 0.0
    for record in history:
        support = support_of(pool, record.candidates)
        seconds += record.seconds
        coef, intercept = pool.columns.unscaled(record.coef, record.intercept, support)
        prefix = Prefix(record.number, coef, intercept, record.loss, record.score, seconds)
        error = None if np.isnan(record.validation_error) else record.validation_error
        before = steps[-1].n_features if steps else 0
        steps.append(_step(pool.columns, support, before, prefix, record.train_error, error))
    return tuple(steps)


def generation_path(
    history: Sequence[Round], pool: Pool, examples: Examples
) -> tuple[PathStep, ...]:
    """Return the rounds whose candidates are the first of those that are left at the end."""
    # A round with a candidate that left later is no part of the final classifier's path. Of
    # rounds with the same candidates the last counts.
    final = history[-1].candidates
    total = float(examples.omega.sum())
    prefixes: list[Prefix] = []
    seconds = 0.0
    for record in history:
        seconds += record.seconds
        n = len(record.candidates)
        if not n or not np.array_equal(record.candidates, final[:n]):
            continue
        support = support_of(pool, record.candidates)
        coef, intercept = pool.columns.unscaled(
            record.coef + record.shared, record.intercept, support
        )
        value = record.value / total
        prefixes.append(Prefix(record.number, coef, intercept, value, record.score, seconds))
    support = support_of(pool, final)
    return prefix_path(pool.columns, support, examples, widest(prefixes))
