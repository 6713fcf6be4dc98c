"""Backward steps: the least useful of the chosen features leave, one candidate at a time."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from visionshare.learners.greedy import GreedySettings, Round, measured, refit
from visionshare.losses import Loss
from visionshare.penalties import Penalty
from visionshare.solvers import ActiveSet

__all__ = ["Remainder", "backward_steps", "nested_path", "removals"]

# Examples that estimate the curvature: the order of removal costs needs no more digits.
_SAMPLE = 32768


def removals(
    active: ActiveSet,
    loss: Loss,
    penalty: Penalty,
    W: np.ndarray,
    places: Sequence[np.ndarray],
) -> tuple[np.ndarray, np.ndarray]:
    """Return what removing each candidate would cost, and where the weights would then go.

    In the quadratic model of the objective at its minimum, with a class a block of the Hessian
    H_q, weights w_J that are forced to zero raise the objective by ½ Σ_q w_qJᵀ ([H_q⁻¹]_JJ)⁻¹ w_qJ,
    and the others move by −[H_q⁻¹]_·J ([H_q⁻¹]_JJ)⁻¹ w_qJ.

    Parameters
    ----------
    active : ActiveSet
    loss : Loss
    penalty : Penalty
    W : ndarray of shape (k, n + 1)
        Weights at the minimum, intercept first.
    places : sequence of ndarray
        Columns of W, from 1, of each candidate.

    Returns
    -------
    costs : ndarray of shape (candidates,)
    moved : ndarray of shape (k, n + 1)
        The weights after the cheapest removal; those of the removed columns are 0.

    References
    ----------
    B. Hassibi, D. Stork, "Second order derivatives for network pruning", NIPS 1992.
    """
    k, p = W.shape
    stride = max(1, active.m // _SAMPLE)
    blocks = active.curvature_grams(loss, active.scores(W), stride)
    entries = np.arange(p)
    diagonal = np.zeros((k, p))
    diagonal[:, 1:] = penalty.curvature(W[:, 1:])
    blocks[:, entries, entries] += diagonal
    blocks[:, entries, entries] += 1e-6 * np.mean(blocks[:, entries, entries]) + 1e-12
    inverse = np.linalg.inv(blocks)
    costs = np.zeros(len(places))
    for c, J in enumerate(places):
        pull = np.linalg.solve(inverse[:, J[:, None], J], W[:, J, None])
        costs[c] = 0.5 * float(np.sum(W[:, J] * pull[:, :, 0]))
    J = places[int(np.argmin(costs))]
    pull = np.linalg.solve(inverse[:, J[:, None], J], W[:, J, None])
    moved = W - np.matmul(inverse[:, :, J], pull)[:, :, 0]
    moved[:, J] = 0
    return costs, moved


@dataclass(frozen=True)
class Remainder:
    """What is left after some removals.

    Attributes
    ----------
    left : tuple of int
        Which rounds' features are left, in their order.
    W : ndarray of shape (k, n + 1)
        Their weights, intercept first.
    cost : float
        What the cheapest removal would cost.
    figures : tuple of float
        Objective, loss, training error, validation error.
    seconds : float
        How long it took to come here from the one before.
    """

    left: tuple[int, ...]
    W: np.ndarray
    cost: float
    figures: tuple[float, float, float, float]
    seconds: float


def backward_steps(
    active: ActiveSet,
    settings: GreedySettings,
    history: Sequence[Round],
    judged: np.ndarray | None = None,
) -> Iterator[Remainder]:
    """Remove candidates one at a time, always the one whose removal costs least, down to one.

    Parameters
    ----------
    active : ActiveSet
        Holds the features of ``history``, in that order; at the end those of one candidate.
    settings : GreedySettings
    history : sequence of Round
        The rounds that chose the features.
    judged : ndarray of bool, optional
        Validation examples.

    Yields
    ------
    Remainder
        First the whole history's, at last a single candidate's.
    """
    left, W = list(range(len(history))), history[-1].W
    while True:
        begun = time.perf_counter()
        ends = np.cumsum([len(history[i].features) for i in left])
        places = [p + 1 for p in np.split(np.arange(ends[-1]), ends[:-1])]
        costs, moved = removals(active, settings.loss, settings.penalty, W, places)
        worst = int(np.argmin(costs))
        figures = measured(active, settings, W, judged)
        seconds = time.perf_counter() - begun
        yield Remainder(tuple(left), W, float(costs[worst]), figures, seconds)
        if len(left) == 1:
            return
        del left[worst]
        kept = np.delete(np.arange(W.shape[1]), places[worst])
        active.keep(kept[1:] - 1)
        W = refit(active, settings, moved[:, kept])


def nested_path(history: Sequence[Round], remainders: Sequence[Remainder]) -> list[Round]:
    """Return remainders as a path of rounds that each add a candidate.

    The sets that were left are nested: round t holds the t candidates that were left when t
    were left, with their own weights. Its score is what removing its candidate was to cost, and
    the seconds of the whole history stand in round 1.

    Parameters
    ----------
    history : sequence of Round
        The rounds that chose the features.
    remainders : sequence of Remainder
        The last ones that :func:`backward_steps` yielded, in that order.
    """
    path: list[Round] = []
    order: list[int] = []
    for r in reversed(remainders):
        (entered,) = set(r.left) - set(order)
        order.append(entered)
        ends = np.cumsum([0] + [len(history[i].features) for i in r.left])
        first = dict(zip(r.left, ends[:-1], strict=True))
        places = [first[i] + 1 + np.arange(len(history[i].features)) for i in order]
        W = r.W[:, np.concatenate([[0], *places])]
        chosen = history[entered]
        done = (len(order), chosen.candidate, chosen.features, r.cost, W)
        before = sum(h.seconds for h in history) if len(order) == 1 else 0.0
        path.append(Round(*done, *r.figures, r.seconds + before))
    return path
