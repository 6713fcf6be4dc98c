"""Penalties with a proximal operator: the mixed norms ℓ1/ℓq, and half the squares.

Weights are (d, T) here: one row a column of features, one column a task. A group is a run of
rows that enter or leave together, given by where each begins. The mixed norm is the sum over
groups of the ℓq norm of each group's weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from numbers import Real
from typing import ClassVar, Protocol

import numpy as np

from visionshare.errors import InputError

_STEPS = 200
# Beyond this exponent no bit tells the norm from the maximum.
_LARGEST = 1e16


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
        if isinstance(self.q, bool) or not isinstance(self.q, Real) or not self.q >= 1:
            raise InputError("q", self.q, "a number from 1 to infinity")
        if not isinstance(self.q, (int, float)):
            object.__setattr__(self, "q", float(self.q))

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
        solve = _prox_max if self.q > _LARGEST else partial(_prox_q, q=self.q)
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

    Examples
    --------
    >>> import numpy as np
    >>> HalfSquares().prox(np.array([[3.0], [-1.0]]), np.array([0, 1]), 1.0).ravel().tolist()
    [1.5, -0.5]
    """

    q: ClassVar[float] = float("nan")

    def norms(self, W: np.ndarray, starts: np.ndarray) -> np.ndarray:
        return 0.5 * _norms(W, starts, 2) ** 2

    def dual_norms(self, G: np.ndarray, starts: np.ndarray) -> np.ndarray:
        return _norms(G, starts, 2)

    def least(self, alpha: float) -> float:
        return 0.0

    def value(self, W: np.ndarray, starts: np.ndarray) -> float:
        return 0.5 * float(np.sum(W * W))

    def prox(self, W: np.ndarray, starts: np.ndarray, step: float | np.ndarray) -> np.ndarray:
        return np.asarray(W / (1 + np.broadcast_to(step, len(W))[:, None]))

    def distance(
        self, W: np.ndarray, G: np.ndarray, starts: np.ndarray, alpha: float
    ) -> np.ndarray:
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
    """Return the proximal operator of step·‖·‖_q for 1 < q < ∞, row by row."""
    # x = |u| is r·y, where r = ‖x‖_q and r·y_i + step·y_i^{q−1} = |v_i|. As r grows each y_i
    # falls, and ‖y‖_q is 1 once, between r = 0 and ‖v‖_q.
    dual = q / (q - 1)
    A = np.abs(V)
    peak = A.max(axis=1)
    starts = np.arange(0, A.size, A.shape[1])
    lengths = _norms(A.reshape(-1, 1), starts, dual)
    alive = lengths > step
    out = np.zeros_like(V)
    free = step <= 0
    out[free] = V[free]
    alive = alive & ~free
    if not alive.any():
        return out
    # In units of each row's largest value.
    A = A[alive] / peak[alive, None]
    t = step[alive] / peak[alive]
    whole = _norms(A.reshape(-1, 1), starts[: len(A)], q)
    # Where all values are equal, or q is 2, the norm shrinks as the dual norm does.
    x = _shrunk(A, t, whole, whole * (1 - step[alive] / lengths[alive]), q)
    out[alive] = np.sign(V[alive]) * x * peak[alive, None]
    return out


def _shrunk(A: np.ndarray, t: np.ndarray, whole: np.ndarray, r: np.ndarray, q: float) -> np.ndarray:
    """Return x = r·y ≥ 0, row by row: from a start r, by Newton steps inside a bracket."""
    # Steps are those of 1/‖y‖_q, which is a line in r where q is 2 or r is large.
    with np.errstate(divide="ignore"):
        log_A = np.log(A)
        log_t = np.log(t)[:, None]
    low = np.zeros_like(r)
    high = whole.copy()
    r = np.clip(r, 1e-300, high)
    log_y = np.full_like(A, np.inf)
    slope = np.zeros_like(A)
    log_r = np.log(r)[:, None]
    for i in range(_STEPS):
        log_y, slope = _roots(log_A, log_r, log_t, q, log_y)
        powers = q * log_y
        top = powers.max(axis=1)
        shares = np.exp(powers - top[:, None])
        total = shares.sum(axis=1)
        # Of log ‖y‖_q, and of how fast it falls in log r.
        excess = np.minimum((top + np.log(total)) / q, 700)
        fall = np.maximum(np.sum(shares * slope, axis=1) / total, 1e-300)
        move = r * (np.expm1(excess) / fall)
        low = np.where(excess > 0, r, low)
        high = np.where(excess > 0, high, r)
        moving = (np.abs(move) > 1e-15 * (r + t)) & (high - low > 1e-15 * (r + t))
        if not moving.any():
            break
        newton = r + move
        # Halved now and then, so that steps from one side cannot be many.
        halved = (newton <= low) | (newton >= high) | (i % 8 == 7)
        r = np.where(moving, np.where(halved, 0.5 * (low + high), newton), r)
        before = log_r
        log_r = np.log(r)[:, None]
        log_y = log_y - slope * (log_r - before)
    return np.exp(log_r + log_y)


def _roots(
    log_A: np.ndarray, log_r: np.ndarray, log_t: np.ndarray, q: float, start: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return log y with r·y + t·y^{q−1} = A, and how fast it falls as log r grows."""
    # In log y the logarithm of the sum is convex, with slopes between 1 and q − 1: Newton steps
    # descend after the first, and none needs to begin above where the larger term alone is A.
    nothing = np.isneginf(log_A)
    target = np.where(nothing, 0, log_A)
    most = np.minimum(target - log_r, (target - log_t) / (q - 1))
    y = np.where(nothing, most, np.minimum(start, most))
    for _ in range(_STEPS):
        first = np.exp(log_r + y - target)
        second = np.exp(log_t + (q - 1) * y - target)
        total = first + second
        weighted = first + (q - 1) * second
        move = np.log(total) * total / weighted
        y = np.minimum(y - move, most)
        if np.all(np.abs(move) <= 1e-15 * (np.abs(y) + total / weighted)):
            break
    return np.where(nothing, -np.inf, y), first / weighted
