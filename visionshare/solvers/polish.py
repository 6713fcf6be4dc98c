"""Newton steps on the weights that are not zero: the last digits of a tasks' master problem."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from visionshare.solvers.tasks import TaskBlock, TaskProblem, TaskWeights

__all__ = ["polish"]

_LARGEST = 1 << 28
_STEPS = 30


def polish(problem: TaskProblem, weights: TaskWeights) -> TaskWeights:
    """Return weights nearer to the optimum with the same zeros, or the same weights.

    Where weights are not zero, ℓ1 and ℓ1/ℓ2 norms are smooth: Newton's method squares the error
    that a first-order method leaves. Steps end when they no longer lower the KKT residual. Norms
    of other q, and problems for which the Hessian is dear, are returned as they are.

    Parameters
    ----------
    problem : TaskProblem
    weights : TaskWeights
        Near the optimum.
    """
    if problem.norm.q not in (1, 2):
        return weights
    free = _Free(problem, weights)
    if problem.m * free.n**2 > _LARGEST:
        return weights
    best = problem.examine(weights)[1]
    for _ in range(_STEPS):
        slacks = [problem.slack(block, weights) for block in problem.blocks]
        gradient = free.pack(problem.gradient(slacks)) + free.penalty_gradient(weights)
        hessian = free.hessian(slacks) + free.penalty_hessian(weights)
        step = np.linalg.lstsq(hessian, -gradient, rcond=1e-13)[0]
        new = free.moved(weights, step)
        kkt = problem.examine(new)[1]
        if not kkt < best:
            break
        weights, best = new, kkt
    return weights


class _Free:
    """The weights that may move: their places, and the derivatives in them."""

    def __init__(self, problem: TaskProblem, weights: TaskWeights) -> None:
        self.problem = problem
        alive = weights.W != 0
        if problem.norm.q == 2 and problem.n:
            sizes = np.diff(np.append(problem.starts, problem.n))
            norms = problem.norm.norms(weights.W, problem.starts)
            alive = np.broadcast_to(np.repeat(norms > 0, sizes)[:, None], alive.shape)
        self.own = np.nonzero(alive & problem.own)
        self.shared = np.flatnonzero((weights.shared != 0) & problem.sharing)
        self.n = len(self.own[0]) + len(self.shared) + problem.n_tasks

    def pack(self, weights: TaskWeights) -> np.ndarray:
        """Return the free weights as one vector."""
        return np.concatenate([weights.W[self.own], weights.shared[self.shared], weights.b])

    def moved(self, weights: TaskWeights, step: np.ndarray) -> TaskWeights:
        """Return weights after a step of the free ones."""
        W, shared, a = weights.W.copy(), weights.shared.copy(), len(self.own[0])
        W[self.own] += step[:a]
        shared[self.shared] += step[a : a + len(self.shared)]
        return TaskWeights(W, shared, weights.b + step[a + len(self.shared) :])

    def hessian(self, slacks: list[np.ndarray]) -> np.ndarray:
        """Return the loss's Hessian."""
        H = np.zeros((self.n, self.n))
        for block, z in zip(self.problem.blocks, slacks, strict=True):
            bends = self.problem.loss.second_derivative(z) * block.omega[:, None]
            for i, task in enumerate(block.tasks):
                A, places = self._columns(block, int(task))
                H[np.ix_(places, places)] += (A * bends[:, i]) @ A.T
        return H

    def _columns(self, block: TaskBlock, task: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the columns that move a task's scores, as rows, and their places."""
        own = np.flatnonzero(self.own[1] == task)
        X = self.problem.columns[:, block.rows].astype(np.float64)
        first = len(self.own[0])
        rows = [X[self.own[0][own]], X[self.shared], np.ones((1, X.shape[1]))]
        last = first + len(self.shared) + task
        return np.vstack(rows), np.concatenate([own, first + np.arange(len(self.shared)), [last]])

    def _groups(self, weights: TaskWeights) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield the places of each free group, and its weights."""
        starts = self.problem.starts
        group = np.searchsorted(starts, self.own[0], side="right") - 1
        values = weights.W[self.own]
        for g in np.unique(group):
            places = np.flatnonzero(group == g)
            yield places, values[places]

    def penalty_gradient(self, weights: TaskWeights) -> np.ndarray:
        """Return the penalties' gradient."""
        problem, out = self.problem, np.zeros(self.n)
        if problem.own and problem.norm.q == 1:
            out[: len(self.own[0])] = problem.strength * np.sign(weights.W[self.own])
        elif problem.own:
            for places, w in self._groups(weights):
                out[places] = problem.strength * w / np.linalg.norm(w)
        if problem.sharing:
            a = len(self.own[0])
            signs = np.sign(weights.shared[self.shared])
            out[a : a + len(self.shared)] = problem.shared_strength * signs
        return out

    def penalty_hessian(self, weights: TaskWeights) -> np.ndarray:
        """Return the penalties' Hessian: λ (I − ŵŵᵀ) / ‖w‖ of each group, for q = 2."""
        problem, H = self.problem, np.zeros((self.n, self.n))
        if problem.own and problem.norm.q == 2:
            for places, w in self._groups(weights):
                norm = np.linalg.norm(w)
                unit = w / norm
                bent = np.eye(len(w)) - np.outer(unit, unit)
                H[np.ix_(places, places)] = problem.strength / norm * bent
        return H
