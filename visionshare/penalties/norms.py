"""Penalties with a proximal operator: the mixed norms ℓ1/ℓq, and half the squares.

Weights are (d, T) here: one row a column of features, one column a task. A group is a run of
rows that enter or leave together, given by where each begins. The mixed norm is the sum over
groups of the ℓq norm of each group's weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Protocol

import numpy as np

from visionshare.errors import InputError

__all__ = ["GroupNorm", "HalfSquares", "RowPenalty"]

_HALVINGS = 200


class RowPenalty(Protocol):
    """What a solver of tasks asks of a penalty; see :class:`GroupNorm` for the arguments."""

    @property
    def q(self) -> float:
        """Norm inside a group; nan where there is none."""
        ...

    def norms(self, W: np.ndarray, starts: np.ndarray) -> np.ndarray:
        """Return Ω(W_J) of each group."""
        ...

    def dual_norms(self, G: np.ndarray, starts: np.ndarray) -> np.ndarray:
        """Return the size of each group's gradient."""
        ...

    def least(self, alpha: float) -> float:
        """Return the dual norm up to which a group stays at 0."""
        ...

    def value(self, W: np.ndarray, starts: np.ndarray) -> float:
        """Return Ω(W)."""
        ...

    def prox(self, W: np.ndarray, starts: np.ndarray, step: float | np.ndarray) -> np.ndarray:
        """Return argmin_U step·Ω(U) + ½‖U − W‖²."""
        ...

    def distance(
        self, W: np.ndarray, G: np.ndarray, starts: np.ndarray, alpha: float
    ) -> np.ndarray:
        """Return how far each weight is from optimal, for the loss's gradient G."""
        ...


@dataclass(frozen=True)
class GroupNorm:
    """Ω(W) = Σ_J ‖W_J‖_q, with its proximal operator and its dual norm.

    Parameters
    ----------
    q : float, default 2
        From 1 to infinity. 1 is the plain ℓ1 norm, whatever the groups.

    Examples
    --------
    >>> import numpy as np
    >>> W, starts = np.array([[3.0], [4.0], [0.5]]), np.array([0, 2])
    >>> GroupNorm(2).norms(W, starts).tolist()
    [5.0, 0.5]
    >>> GroupNorm(2).prox(W, starts, 1.0).round(6).ravel().tolist()
    [2.4, 3.2, 0.0]
    """

    q: float = 2.0

    def __post_init__(self) -> None:
        if isinstance(self.q, bool) or not isinstance(self.q, (int, float)) or not self.q >= 1:
            raise InputError("q", self.q, "a number from 1 to infinity")

    @property
    def dual_q(self) -> float:
        """q' with 1/q + 1/q' = 1."""
        if self.q == 1:
            return float("inf")
        return 1.0 if np.isinf(self.q) else self.q / (self.q - 1)

    def norms(self, W: np.ndarray, starts: np.ndarray) -> np.ndarray:
        """Return ‖W_J‖_q of each group."""
        return _norms(W, starts, self.q)

    def dual_norms(self, G: np.ndarray, starts: np.ndarray) -> np.ndarray:
        """Return ‖G_J‖_{q'} of each group: a group stays at 0 while it is at most λ."""
        return _norms(G, starts, self.dual_q)

    def least(self, alpha: float) -> float:
        """Return λ: a group stays at 0 while its gradient's dual norm is at most that."""
        return alpha

    def value(self, W: np.ndarray, starts: np.ndarray) -> float:
        """Return Ω(W)."""
        return float(self.norms(W, starts).sum())

    def distance(
        self, W: np.ndarray, G: np.ndarray, starts: np.ndarray, alpha: float
    ) -> np.ndarray:
        """Return |W − prox(W − G)|, the step that a proximal gradient of unit length takes."""
        return np.abs(W - self.prox(W - G, starts, alpha))

    def prox(self, W: np.ndarray, starts: np.ndarray, step: float | np.ndarray) -> np.ndarray:
        """Return argmin_U step·Ω(U) + ½‖U − W‖².

        Parameters
        ----------
        W : ndarray of shape (d, T)
        starts : ndarray of int, shape (groups,)
            First row of each group, ascending from 0.
        step : float or ndarray of shape (d,)
            λ over the solver's weight, at least 0; where one is given for each row, rows of a
            group have the same.
        """
        if len(W) == 0:
            return W.copy()
        steps = np.broadcast_to(np.asarray(step, np.float64), len(W))
        if self.q == 1:
            return np.sign(W) * np.maximum(np.abs(W) - steps[:, None], 0)
        levels = steps[starts]
        sizes = np.diff(np.append(starts, len(W)))
        if self.q == 2:
            norms = _norms(W, starts, 2)
            shrunk = np.maximum(1 - levels / np.where(norms > 0, norms, 1), 0)
            return W * np.repeat(shrunk, sizes)[:, None]
        solve = _prox_max if np.isinf(self.q) else partial(_prox_q, q=self.q)
        out = np.empty_like(W)
        for size in np.unique(sizes):
            chosen = np.flatnonzero(sizes == size)
            rows = starts[chosen, None] + np.arange(size)
            blocks = W[rows].reshape(len(chosen), -1)
            out[rows] = solve(blocks, levels[chosen]).reshape(len(chosen), int(size), -1)
        return out


@dataclass(frozen=True)
class HalfSquares:
    """Ω(W) = ½ Σ W²: weights shrink and none becomes zero, so that no candidate is kept out.

    References
    ----------
    J. Duchi, Y. Singer, "Boosting with structural sparsity", ICML 2009, §5.

    Examples
    --------
    >>> import numpy as np
    >>> HalfSquares().prox(np.array([[3.0], [-1.0]]), np.array([0, 1]), 1.0).ravel().tolist()
    [1.5, -0.5]
    """

    q: ClassVar[float] = float("nan")

    def norms(self, W: np.ndarray, starts: np.ndarray) -> np.ndarray:
        """Return ½ ‖W_J‖² of each group."""
        return 0.5 * _norms(W, starts, 2) ** 2

    def dual_norms(self, G: np.ndarray, starts: np.ndarray) -> np.ndarray:
        """Return ‖G_J‖₂ of each group."""
        return _norms(G, starts, 2)

    def least(self, alpha: float) -> float:
        """Return 0: any gradient moves a weight."""
        return 0.0

    def value(self, W: np.ndarray, starts: np.ndarray) -> float:
        """Return ½ Σ W²."""
        return 0.5 * float(np.sum(W * W))

    def prox(self, W: np.ndarray, starts: np.ndarray, step: float | np.ndarray) -> np.ndarray:
        """Return W / (1 + step)."""
        return np.asarray(W / (1 + np.broadcast_to(step, len(W))[:, None]))

    def distance(
        self, W: np.ndarray, G: np.ndarray, starts: np.ndarray, alpha: float
    ) -> np.ndarray:
        """Return |G + λW|, the objective's gradient."""
        return np.abs(G + alpha * W)


def _norms(W: np.ndarray, starts: np.ndarray, q: float) -> np.ndarray:
    if len(starts) == 0:
        return np.zeros(0)
    A = np.abs(W)
    if np.isinf(q):
        return np.asarray(np.maximum.reduceat(A.max(axis=1), starts))
    if q == 1:
        return np.add.reduceat(A.sum(axis=1), starts)
    if q == 2:
        return np.sqrt(np.add.reduceat(np.einsum("ij,ij->i", A, A), starts))
    # Relative to each group's largest, so that no power overflows or vanishes.
    peak = np.maximum.reduceat(A.max(axis=1), starts)
    safe = np.where(peak > 0, peak, 1)
    sizes = np.diff(np.append(starts, len(W)))
    relative = (A / np.repeat(safe, sizes)[:, None]) ** q
    return np.asarray(peak * np.add.reduceat(relative.sum(axis=1), starts) ** (1 / q))


def _prox_max(V: np.ndarray, step: np.ndarray) -> np.ndarray:
    """Return V minus its projection on the ℓ1 ball of radius ``step``, row by row."""
    A = np.sort(np.abs(V), axis=1)[:, ::-1]
    excess = np.cumsum(A, axis=1) - step[:, None]
    counts = np.arange(1, V.shape[1] + 1)
    last = np.sum(A * counts > excess, axis=1) - 1
    level = excess[np.arange(len(V)), np.maximum(last, 0)] / (np.maximum(last, 0) + 1)
    # What is above the level is cut down to it: the largest share one absolute value.
    level = np.where(A.sum(axis=1) <= step, 0, level)
    return np.sign(V) * np.minimum(np.abs(V), level[:, None])


def _prox_q(V: np.ndarray, step: np.ndarray, q: float) -> np.ndarray:
    """Return the proximal operator of step·‖·‖_q for 1 < q < ∞, row by row.

    x = |u| solves x_i + c x_i^{q−1} = |v_i| with c = step·‖x‖_q^{1−q}. As c grows each x_i falls
    and c·x_i^{q−1} = |v_i| − x_i grows: c‖x(c)‖_q^{q−1} passes ``step`` once, found by bisection.
    """
    dual = q / (q - 1)
    A = np.abs(V)
    peak = A.max(axis=1)
    lengths = _norms(A.reshape(-1, 1), np.arange(0, A.size, A.shape[1]), dual)
    alive = lengths > step
    out = np.zeros_like(V)
    free = step <= 0
    out[free], alive = V[free], alive & ~free
    if not alive.any():
        return out
    # In units of each row's largest value.
    A, t = A[alive] / peak[alive, None], step[alive] / peak[alive]
    low, high = np.full(len(A), -300.0), np.full(len(A), 300.0)
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        x = _roots(A, np.exp(middle)[:, None], q)
        norm = np.maximum(np.sum(x**q, axis=1) ** (1 / q), 1e-300)
        above = middle + (q - 1) * np.log(norm) > np.log(t)
        low, high = np.where(above, low, middle), np.where(above, middle, high)
        if np.all(high - low <= 1e-14 * (1 + np.abs(middle))):
            break
    x = _roots(A, np.exp(0.5 * (low + high))[:, None], q)
    out[alive] = np.sign(V[alive]) * x * peak[alive, None]
    return out


def _roots(A: np.ndarray, c: np.ndarray, q: float) -> np.ndarray:
    """Return the roots x in [0, A] of x + c x^{q−1} = A, by Newton steps inside a bracket."""
    low, high = np.zeros_like(A), A.copy()
    positive = np.where(A > 0, A, 1)
    # Where one of the two terms is all of A.
    x = np.minimum(positive, np.exp(np.clip(np.log(positive / c) / (q - 1), -700, 0)))
    x = np.where(A > 0, 0.5 * x, 0)
    for _ in range(60):
        power = c * x ** (q - 1)
        slack = x + power - A
        low, high = np.where(slack < 0, x, low), np.where(slack < 0, high, x)
        move = slack * x / np.maximum(x + (q - 1) * power, 1e-300)
        moving = np.abs(move) > 1e-15 * x
        if not moving.any():
            break
        newton = x - move
        outside = moving & ((newton <= low) | (newton >= high))
        x = np.where(outside, 0.5 * (low + high), newton)
    return x
