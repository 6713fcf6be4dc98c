"""Penalties with a proximal operator: the mixed norms ℓ1, ℓ1/ℓ2, ℓ1/ℓ∞, and half the squares.

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
from visionshare.registry import Registry

# Exponents q, and q' with 1/q + 1/q' = 1.
_DUAL = {1: np.inf, 2: 2, np.inf: 1}


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
        1, 2 or infinity. 1 is the plain ℓ1 norm, whatever the groups.

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
        if isinstance(self.q, bool) or not isinstance(self.q, Real) or self.q not in _DUAL:
            raise InputError("q", self.q, "1, 2 or infinity")
        if not isinstance(self.q, (int, float)):
            object.__setattr__(self, "q", float(self.q))

    def norms(self, W: np.ndarray, starts: np.ndarray) -> np.ndarray:
        """Return ‖W_J‖_q of each group."""
        return _norms(W, starts, self.q)

    def dual_norms(self, G: np.ndarray, starts: np.ndarray) -> np.ndarray:
        """Return ‖G_J‖_{q'} of each group: a group stays at 0 while it is at most λ."""
        return _norms(G, starts, _DUAL[self.q])

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
        steps = np.full(len(W), step, np.float64)
        if self.q == 1:
            return np.sign(W) * np.maximum(np.abs(W) - steps[:, None], 0)
        levels = steps[starts]
        # One group alone, or every row one: most steps are of these.
        even = len(starts) in (1, len(W))
        sizes = np.zeros(0, np.int64) if even else np.diff(np.append(starts, len(W)))
        if self.q == 2:
            norms = _norms(W, starts, 2)
            shrunk = np.maximum(1 - levels / np.where(norms > 0, norms, 1), 0)
            return W * (shrunk if even else np.repeat(shrunk, sizes))[:, None]
        if even:
            return _prox_max(W.reshape(len(starts), -1), levels).reshape(W.shape)
        out = np.empty_like(W)
        for size in np.unique(sizes):
            chosen = np.flatnonzero(sizes == size)
            rows = starts[chosen, None] + np.arange(size)
            blocks = W[rows].reshape(len(chosen), -1)
            out[rows] = _prox_max(blocks, levels[chosen]).reshape(len(chosen), int(size), -1)
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
        return W / (1 + np.full(len(W), step)[:, None])

    def distance(
        self, W: np.ndarray, G: np.ndarray, starts: np.ndarray, alpha: float
    ) -> np.ndarray:
        return np.abs(G + alpha * W)


def violations(
    G: np.ndarray, starts: np.ndarray, norm: RowPenalty, alpha: float, shared_alpha: float
) -> np.ndarray:
    """Return by how much each group's gradient G exceeds what leaves it at 0, at most 0 if not.

    The larger excess of its dual norm and of its largest sum over tasks, of which shared weights
    are zero up to ``shared_alpha``; an infinite α violates nothing.

    Examples
    --------
    >>> import numpy as np
    >>> G, starts = np.array([[3.0, -4.0], [1.0, 0.0]]), np.array([0, 1])
    >>> violations(G, starts, GroupNorm(2), 2.0, np.inf).tolist()
    [3.0, -1.0]
    """
    scores = np.full(len(starts), -np.inf)
    if np.isfinite(alpha):
        scores = norm.dual_norms(G, starts) - norm.least(alpha)
    if np.isfinite(shared_alpha):
        largest = np.maximum.reduceat(np.abs(G.sum(axis=1)), starts)
        scores = np.maximum(scores, largest - shared_alpha)
    return scores


def _norms(W: np.ndarray, starts: np.ndarray, q: float) -> np.ndarray:
    if len(starts) == 0:
        return np.zeros(0)
    A = np.abs(W)
    if np.isinf(q):
        return np.maximum.reduceat(A.max(axis=1), starts)
    if q == 1:
        return np.add.reduceat(A.sum(axis=1), starts)
    return np.sqrt(np.add.reduceat(np.einsum("ij,ij->i", A, A), starts))


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


#: The penalties with a proximal operator by name. To add one, add a line here.
NORMS: Registry[RowPenalty] = Registry(
    "penalty",
    {
        "l1": partial(GroupNorm, 1),
        "l1/l2": partial(GroupNorm, 2),
        "l1/linf": partial(GroupNorm, float("inf")),
        "l2^2": HalfSquares,
    },
    ("prox", "dual_norms", "norms"),
)


def make_norm(given: str | RowPenalty) -> RowPenalty:
    """Return the penalty of a name, or the penalty that is given.

    Examples
    --------
    >>> make_norm("l1/l2").q
    2
    """
    return NORMS.make(given)
