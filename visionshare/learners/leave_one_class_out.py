"""Leave-one-class-out: each class learned from few examples, with sources of all other classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from visionshare.datasets.sampling import sample_one_class
from visionshare.errors import InputError
from visionshare.generators.checks import check_whole
from visionshare.learners.greedytl import GreedyTL
from visionshare.machine.resources import thread_limit

__all__ = ["Transferability", "leave_one_class_out"]


@dataclass(frozen=True)
class Transferability:
    """Which sources each class learns from.

    Attributes
    ----------
    targets : tuple of str
        The classes that were learned.
    sources : tuple of str
        Names of the sources' scores.
    weights : ndarray of shape (n_targets, n_sources), float64
        Means over the draws, of columns at variance 1; NaN where a source was excluded.
    accuracy : ndarray of shape (n_targets, draws), float64
        Balanced accuracy on all examples that were not drawn; NaN where a side has none left.
    """

    targets: tuple[str, ...]
    sources: tuple[str, ...]
    weights: np.ndarray
    accuracy: np.ndarray


def leave_one_class_out(
    X: np.ndarray,
    scores: np.ndarray,
    y: np.ndarray,
    source_classes: Sequence[Any],
    *,
    source_names: Sequence[str] | None = None,
    learner: GreedyTL | None = None,
    positives: int = 5,
    negatives: int = 10,
    draws: int = 10,
    random_state: int = 0,
) -> Transferability:
    """Learn every class from few examples; the sources are those of the other classes.

    Parameters
    ----------
    X : ndarray of shape (m, d)
        Features of the examples; d may be 0.
    scores : ndarray of shape (m, n)
        Scores of sources, see :class:`visionshare.SourceClassifiers`.
    y : ndarray of shape (m,)
        Classes.
    source_classes : sequence
        The class that each score stands for: it is excluded where that class is learned. A class
        may also be written as text, as names that are read from files are.
    source_names : sequence of str, optional
        Their classes when omitted.
    learner : GreedyTL, optional
        With settings, unfitted; with fit_intercept=False, as in the paper, when omitted.
    positives, negatives : int, default 5 and 10
        Examples of the class, and of all others, that train.
    draws : int, default 10
        Number of random draws of them.
    random_state : int, default 0
        Seed of the draws.

    Raises
    ------
    InputError
        If arrays do not fit together, or a class has too few examples.

    References
    ----------
    I. Kuzborskij, F. Orabona, B. Caputo, "Scalable greedy algorithms for transfer learning",
    Computer Vision and Image Understanding 156, 2017, sections 5 and 5.5.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat(["a", "b", "c"], 30)
    >>> scores = (y[:, None] == np.array(["a", "b", "c"])) + 0.1 * rng.normal(size=(90, 3))
    >>> result = leave_one_class_out(np.empty((90, 0)), scores, y, ["a", "b", "c"], draws=3)
    >>> np.sign(result.weights).tolist()
    [[nan, -1.0, -1.0], [-1.0, nan, -1.0], [-1.0, -1.0, nan]]
    """
    X = np.asarray(X)
    scores = np.asarray(scores)
    y = np.asarray(y)
    if X.ndim != 2 or scores.ndim != 2 or not len(X) == len(scores) == len(y):
        shapes = (X.shape, scores.shape, y.shape)
        raise InputError("scores", shapes, "X (m, d), scores (m, n) and y (m,) of the same m")
    for name, value in (("positives", positives), ("negatives", negatives), ("draws", draws)):
        check_whole(name, value)
    names = tuple(map(str, source_classes if source_names is None else source_names))
    if not len(source_classes) == len(names) == scores.shape[1]:
        given = (len(source_classes), len(names))
        raise InputError("source_classes", given, f"a name for each of {scores.shape[1]} scores")
    learner = GreedyTL(fit_intercept=False) if learner is None else learner
    learner.check_parameters()
    Z = np.hstack([X, scores])
    d = X.shape[1]
    classes, labels = np.unique(y, return_inverse=True)
    targets = tuple(str(c) for c in classes)
    weights = np.full((len(targets), len(names)), np.nan)
    accuracy = np.full((len(targets), draws), np.nan)
    with thread_limit(learner.n_jobs):
        for t, name in enumerate(targets):
            kept = np.flatnonzero([not _same(c, classes[t]) for c in source_classes])
            columns = np.concatenate([np.arange(d), d + kept])
            if len(columns) == 0:
                raise InputError("scores", "none but its own", f"a source for the class {name!r}")
            drawn_weights = np.zeros((draws, len(columns)))
            for draw in range(draws):
                rng = np.random.default_rng([random_state, t, draw])
                rows = sample_one_class(labels, t, positives, negatives, rng)
                model = clone(learner).fit(Z[rows][:, columns], labels[rows] == t)
                drawn_weights[draw, model.support_] = model.scaled_coef_[0]
                accuracy[t, draw] = _balanced(model, Z, columns, rows, labels == t)
            weights[t, kept] = drawn_weights[:, d:].mean(axis=0)
    return Transferability(targets, names, weights, accuracy)


def _same(a: Any, b: Any) -> bool:
    """Return whether two names are of one class: equal, or one is the other as text."""
    if isinstance(a, str) == isinstance(b, str):
        return bool(a == b)
    text, value = (a, b) if isinstance(a, str) else (b, a)
    try:
        return str(value) == text or bool(float(text) == value)
    except ValueError:
        return False


def _balanced(
    model: Any, Z: np.ndarray, columns: np.ndarray, rows: np.ndarray, truth: np.ndarray
) -> float:
    """Return the balanced accuracy on the other rows; only the columns it chose are read."""
    rest = np.ones(len(Z), bool)
    rest[rows] = False
    chosen = Z[np.ix_(rest, columns[model.support_])]
    right = (chosen @ model.coef_[0] + model.intercept_[0] > 0) == truth[rest]
    sides = [right[truth[rest] == side] for side in (True, False)]
    if any(len(side) == 0 for side in sides):
        return float("nan")
    return float(np.mean([side.mean() for side in sides]))
