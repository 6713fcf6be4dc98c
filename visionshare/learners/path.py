"""The path of a learner: its rounds as the classifiers that a compact classifier carries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from visionshare.classifier.path import PathStep
from visionshare.columns import Columns
from visionshare.learners.examples import Examples
from visionshare.learners.rounds import Round
from visionshare.scores import two_sided
from visionshare.search import Pool

__all__ = [
    "Prefix",
    "generation_path",
    "greedy_path",
    "joint_support",
    "prefix_path",
    "support_of",
    "widest",
]

# Scores of models on examples that are computed together, at most: 2 MiB.
_SCORES_AT_ONCE = 1 << 18


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
    values = columns.each(_precise, columns.columns_of(support, scaled=False))
    y = columns.of_examples(examples.y)
    omega = columns.of_examples(examples.omega)
    total = examples.omega.sum()
    steps: list[PathStep] = []
    for block in _blocks(list(prefixes), len(examples.omega)):
        coef = _padded(block)
        intercept = np.array([prefix.intercept for prefix in block])
        wrong = columns.total(_wrong_weights, values, coef, intercept, y, omega) / total
        models = _models(coef, intercept)
        for prefix, model, error in zip(block, zip(*models, strict=True), wrong, strict=True):
            before = steps[-1].n_features if steps else 0
            shorter = support[: prefix.coef.shape[1]]
            steps.append(_step(columns, shorter, before, prefix, model, float(error), None))
    return tuple(steps)


def _blocks(prefixes: list[Prefix], m: int) -> Iterator[list[Prefix]]:
    """Yield prefixes in a row whose scores of m examples are computed together."""
    n_scores = sum(len(prefix.intercept) for prefix in prefixes[:1]) * m
    each = max(1, _SCORES_AT_ONCE // max(1, n_scores))
    for start in range(0, len(prefixes), each):
        yield prefixes[start : start + each]


def _padded(block: list[Prefix]) -> np.ndarray:
    """Return weights (prefixes, k, n) of the longest of some prefixes, zeros beyond each."""
    n = max(prefix.coef.shape[1] for prefix in block)
    coef = np.zeros((len(block), len(block[0].coef), n))
    for row, prefix in zip(coef, block, strict=True):
        row[:, : prefix.coef.shape[1]] = prefix.coef
    return coef


def _models(coef: np.ndarray, intercept: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return weights (models, k, n) and intercepts (models, k) with a row a class, float32."""
    # A compact classifier refuses what is infinite then; a learner has its own weights.
    with np.errstate(over="ignore"):
        return two_sided(coef).astype(np.float32), two_sided(intercept).astype(np.float32)


def _precise(values: np.ndarray) -> np.ndarray:
    return values.astype(np.float64)


def _wrong_weights(
    values: np.ndarray, coef: np.ndarray, intercept: np.ndarray, y: np.ndarray, omega: np.ndarray
) -> np.ndarray:
    """Return the weight of the examples that each model on the first columns gets wrong."""
    models, k, n = coef.shape
    # Weights that are infinite in float32, as paths keep them, have no errors to speak of.
    with np.errstate(invalid="ignore"):
        scores = (coef.reshape(models * k, n) @ values[:n]).reshape(models, k, len(y))
        scores += intercept[:, :, None]
    labels = scores[:, 0] > 0 if k == 1 else np.argmax(scores, axis=1)
    return np.asarray((labels != y) @ omega)


def _step(
    columns: Columns,
    support: np.ndarray,
    before: int,
    prefix: Prefix,
    model: tuple[np.ndarray, np.ndarray],
    train_error: float,
    validation_error: float | None,
) -> PathStep:
    """Return the step of a prefix, given its weights (zero beyond its features) and intercepts."""
    # A copy: the weights of many prefixes lie in one array.
    weights = model[0][:, : len(support)].copy()
    return PathStep(
        round=prefix.round,
        feature=tuple(support[before:].tolist()),
        n_features=len(support),
        weights=weights,
        intercept=model[1],
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
        weights, intercepts = _models(coef[None], intercept[None])
        model = weights[0], intercepts[0]
        steps.append(_step(pool.columns, support, before, prefix, model, record.train_error, error))
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
