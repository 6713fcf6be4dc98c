"""Forward selection for ridge regression, by rank-one updates."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from visionshare.columns import ArrayColumns
from visionshare.search import Pool, Search
from visionshare.search.exhaustive import ExhaustiveSearch
from visionshare.search.ridge_gain import RidgeGain, RidgeState

__all__ = ["RidgeRound", "RidgeSettings", "ridge_rounds"]


@dataclass(frozen=True)
class RidgeSettings:
    """The choices of a forward selection.

    Attributes
    ----------
    rounds : int
        Candidates that enter at most.
    alpha : float
        λ.
    tol : float
        δ: stop when a round lowers the regularized error by less than this share of ‖y‖².
    search : Search
    """

    rounds: int
    alpha: float
    tol: float
    search: Search


@dataclass(frozen=True)
class RidgeRound:
    """What one round did.

    Attributes
    ----------
    number : int
        From 1.
    candidate : int
    features : ndarray of int64
        What entered.
    score : float
        What yᵀGy lost.
    weights : ndarray of float64
        Of all chosen columns, scaled, after the round.
    error : float
        λ yᵀGy / ‖y‖²: what ridge regression leaves of y.
    left_out : ndarray of shape (m,), float64
        Each example's score from a regression without it, for centered y.
    seconds : float
    """

    number: int
    candidate: int
    features: np.ndarray
    score: float
    weights: np.ndarray
    error: float
    left_out: np.ndarray
    seconds: float


def ridge_rounds(
    pool: Pool, y: np.ndarray, omega: np.ndarray, settings: RidgeSettings
) -> Iterator[RidgeRound]:
    """Yield the rounds of a forward selection.

    With v = Gz and c = 1/(1 + zᵀv), a column z that enters turns G into G − c·vvᵀ: a step costs
    O(m) a candidate, and no matrix is ever inverted. Where all candidates are looked at, stand
    alone and lie in memory, all rounds are one compiled loop; ``seconds`` are then equal shares.

    Parameters
    ----------
    pool : Pool
        Of columns scaled to weighted mean 0 and variance 1.
    y : ndarray of shape (m,), float64
    omega : ndarray of shape (m,), float64
        Weights of the examples, of sum m; the weighted mean of y is taken out.
    settings : RidgeSettings

    Yields
    ------
    RidgeRound
    """
    alpha, root = settings.alpha, np.sqrt(omega)
    centered = root * (y - np.dot(omega, y) / omega.sum())
    table = _table(pool, settings.search)
    if table is not None:
        yield from _compiled_rounds(pool, table, centered, omega, settings)
        return
    whole = float(centered @ centered)
    Gy, U = centered / alpha, np.zeros((len(y), 0))
    chosen = np.zeros((0, len(y)))
    excluded, support = pool.flat(), np.empty(0, np.int64)
    criterion, error = RidgeGain(), 1.0
    square = float(omega.sum())
    for number in range(1, settings.rounds + 1):
        begun = time.perf_counter()
        state = RidgeState((root * Gy)[:, None], number, support, U, root, square, alpha)
        best = settings.search.best(pool, state, criterion, excluded)
        if not best or not best[0].score > 1e-12 * whole / alpha:
            return
        found = best[0]
        excluded[found.number] = True
        columns = pool.columns.columns_of(found.features).astype(np.float64) * root
        for z in columns:
            v = z / alpha - U @ (U.T @ z)
            direction = v / np.sqrt(1 + z @ v)
            U = np.column_stack([U, direction])
            Gy = Gy - direction * (direction @ centered)
        chosen = np.vstack([chosen, columns])
        support = np.concatenate([support, found.features])
        before, error = error, alpha * float(centered @ Gy) / whole
        diagonal = 1 / alpha - np.einsum("ij,ij->i", U, U)
        held = np.where(root > 0, centered - Gy / diagonal, 0)
        left_out = held / np.where(root > 0, root, 1)
        seconds = time.perf_counter() - begun
        yield RidgeRound(
            number, found.number, found.features, found.score, chosen @ Gy, error, left_out, seconds
        )
        if before - error < settings.tol:
            return


def _table(pool: Pool, search: Search) -> np.ndarray | None:
    """Return all candidates, one a row, if one compiled loop can look at them."""
    if not isinstance(search, ExhaustiveSearch) or pool.order is not None:
        return None
    return pool.columns.table() if isinstance(pool.columns, ArrayColumns) else None


def _compiled_rounds(
    pool: Pool, table: np.ndarray, centered: np.ndarray, omega: np.ndarray, settings: RidgeSettings
) -> Iterator[RidgeRound]:
    from visionshare.learners.ridge_kernels import select

    begun = time.perf_counter()
    alpha, root, whole = settings.alpha, np.sqrt(omega), float(centered @ centered)
    offset, scale = pool.columns.scaling_of()
    square, most = float(omega.sum()), min(settings.rounds, len(table))
    choices = (square, alpha, settings.tol, most)
    ids, gains, U, Gys = select(table, offset, scale, root, centered, *choices)
    chosen = (table[ids] - offset[ids, None]) * (scale[ids, None] * root)
    errors = alpha * (Gys @ centered) / whole if len(ids) else np.empty(0)
    weights = Gys @ chosen.T
    held = centered - Gys / (1 / alpha - np.cumsum(U * U, axis=0))
    left_out = np.where(root > 0, held / np.where(root > 0, root, 1), 0)
    seconds = (time.perf_counter() - begun) / max(1, len(ids))
    for r, entered in enumerate(ids.tolist()):
        yield RidgeRound(
            number=r + 1,
            candidate=entered,
            features=ids[r : r + 1],
            score=float(gains[r]),
            weights=weights[r, : r + 1],
            error=float(errors[r]),
            left_out=left_out[r],
            seconds=seconds,
        )
