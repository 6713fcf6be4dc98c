"""Forward selection for ridge regression, by rank-one updates."""

from __future__ import annotations

import operator
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from visionshare.columns import ArrayColumns, Columns
from visionshare.errors import InputError
from visionshare.learners.rounds import Round
from visionshare.search import Exhaustive, Pool, RandomSubset, Search
from visionshare.search.ridge_gain import RidgeGain, RidgeState

# Scales of columns whose unscaled squares are as exact as others.
_SCALES_OF_LOOP = (1e-140, 1e140)


@dataclass(frozen=True)
class RidgeSettings:
    """The choices of a forward selection."""

    rounds: int | None
    alpha: float | None
    tol: float
    search: Search

    @property
    def chosen(self) -> tuple[int, float]:
        """Rounds and alpha."""
        if self.rounds is None or self.alpha is None:
            raise InputError("rounds" if self.rounds is None else "alpha", None, "a number")
        return self.rounds, self.alpha


def kept_rounds(columns: Columns, rounds: Iterable[Round]) -> list[Round]:
    """Return rounds, of which the last alone has what it left out if examples are in places."""
    kept: list[Round] = []
    for record in rounds:
        if kept and columns.partitioned:
            kept[-1] = replace(kept[-1], left_out=np.empty(0))
        kept.append(record)
    return kept


def ridge_rounds(
    pool: Pool, y: np.ndarray, omega: np.ndarray, settings: RidgeSettings
) -> Iterator[Round]:
    """Yield the rounds of a forward selection."""
    # With v = Gz and c = 1/(1 + zᵀv), a column z that enters turns G into G − c·vvᵀ: a step costs
    # O(m) a candidate, and no matrix is ever inverted. Where candidates lie in memory, or are
    # drawn, and all are looked at, and where a random subset is of single columns in memory, all
    # rounds are one compiled loop; ``seconds`` are then equal shares.
    centered = np.sqrt(omega) * (y - np.dot(omega, y) / omega.sum())
    table = _table(pool, settings.search)
    if table is not None:
        yield from _compiled_rounds(pool, table, centered, omega, settings)
        return
    yield from _searched_rounds(pool, centered, omega, settings)


def _searched_rounds(
    pool: Pool, centered: np.ndarray, omega: np.ndarray, settings: RidgeSettings
) -> Iterator[Round]:
    """Yield rounds of any search, over examples that may lie in several places."""
    columns, (most, alpha), m = pool.columns, settings.chosen, len(centered)
    target = columns.of_examples(centered)
    root = columns.of_examples(np.sqrt(omega))
    whole = float(columns.total(np.dot, target, target))
    Gy = columns.each(operator.truediv, target, alpha)
    U = columns.of_examples(np.zeros((m, 0)))
    chosen = columns.each(_no_rows, target)
    excluded = pool.flat()
    support = np.empty(0, np.int64)
    candidates = np.empty(0, np.int64)
    criterion = RidgeGain()
    error = 1.0
    square = float(omega.sum())
    for number in range(1, most + 1):
        begun = time.perf_counter()
        residual = columns.each(_weighed_column, root, Gy)
        state = RidgeState(residual, number, support, U, root, square, alpha)
        winners = settings.search.best(pool, state, criterion, excluded)
        if not winners or not winners[0].score > 1e-12 * whole / alpha:
            return
        best = winners[0]
        excluded[best.number] = True
        entered = columns.each(_rooted, columns.columns_of(best.features), root)
        for i in range(len(best.features)):
            z = columns.each(operator.getitem, entered, i)
            v = columns.each(_image, z, U, columns.total(_products, U, z), alpha)
            length = np.sqrt(1 + columns.total(np.dot, z, v))
            direction = columns.each(operator.truediv, v, length)
            U = columns.each(_beside, U, direction)
            Gy = Gy - columns.total(np.dot, direction, target) * direction
        chosen = columns.each(_below, chosen, entered)
        support = np.concatenate([support, best.features])
        candidates = np.append(candidates, best.number)
        before = error
        error = alpha * float(columns.total(np.dot, target, Gy)) / whole
        weights = columns.total(np.dot, chosen, Gy)
        left_out = columns.each(_left_out, target, Gy, U, root, alpha)
        seconds = time.perf_counter() - begun
        yield _round(number, candidates, weights, best.score, error, left_out, seconds)
        if before - error < settings.tol:
            return


def _no_rows(values: np.ndarray) -> np.ndarray:
    return np.zeros((0, len(values)))


def _weighed_column(root: np.ndarray, values: np.ndarray) -> np.ndarray:
    return (root * values)[:, None]


def _rooted(columns: np.ndarray, root: np.ndarray) -> np.ndarray:
    return columns.astype(np.float64) * root


def _products(U: np.ndarray, z: np.ndarray) -> np.ndarray:
    return U.T @ z


def _image(z: np.ndarray, U: np.ndarray, inner: np.ndarray, alpha: float) -> np.ndarray:
    """Return Gz."""
    return z / alpha - U @ inner


def _beside(U: np.ndarray, new: np.ndarray) -> np.ndarray:
    return np.column_stack([U, new])


def _below(chosen: np.ndarray, new: np.ndarray) -> np.ndarray:
    return np.vstack([chosen, new])


def _left_out(
    centered: np.ndarray, Gy: np.ndarray, U: np.ndarray, root: np.ndarray, alpha: float
) -> np.ndarray:
    """Return each example's score from a fit without it."""
    diagonal = 1 / alpha - np.einsum("ij,ij->i", U, U)
    rooted = np.where(root > 0, centered - Gy / diagonal, 0)
    return rooted / np.where(root > 0, root, 1)


def _round(
    number: int,
    candidates: np.ndarray,
    weights: np.ndarray,
    score: float,
    error: float,
    left_out: Any,
    seconds: float,
) -> Round:
    return Round(
        number=number,
        entered=candidates[-1:],
        candidates=candidates,
        coef=weights[None],
        intercept=np.zeros(1),
        score=score,
        loss=error,
        left_out=left_out,
        seconds=seconds,
    )


def _table(pool: Pool, search: Search) -> np.ndarray | None:
    """Return all columns, one a row, if one compiled loop can look at them."""
    drawn = isinstance(search, RandomSubset)
    if pool.order is not None or not (drawn or isinstance(search, Exhaustive)):
        return None
    if drawn and not isinstance(pool.columns, ArrayColumns):
        return None
    table = pool.columns.table()
    if table is None or table.dtype != np.float64:
        return table
    # That loop squares unscaled values.
    scale = pool.columns.scale
    least, largest = _SCALES_OF_LOOP
    return None if ((scale > 0) & ((scale < least) | (scale > largest))).any() else table


def _compiled_rounds(
    pool: Pool, table: np.ndarray, centered: np.ndarray, omega: np.ndarray, settings: RidgeSettings
) -> Iterator[Round]:
    from visionshare.learners.ridge_kernels import select

    begun = time.perf_counter()
    rounds, alpha = settings.chosen
    root = np.sqrt(omega)
    whole = float(centered @ centered)
    offset, scale = pool.columns.scaling_of()
    problem = (table, offset, scale, root, centered, float(omega.sum()), alpha, settings.tol)
    most = min(rounds, pool.size)
    if isinstance(settings.search, RandomSubset):
        numbers, gains, U, Gys = _drawn_rounds(problem, np.flatnonzero(pool.flat()), most, settings)
    else:
        numbers, gains, U, Gys = select(*problem, most)
    ids = np.array([pool.features(number)[0] for number in numbers], np.int64)
    chosen = (table[ids] - offset[ids, None]) * (scale[ids, None] * root)
    errors = alpha * (Gys @ centered) / whole if len(ids) else np.empty(0)
    weights = Gys @ chosen.T
    rooted = centered - Gys / (1 / alpha - np.cumsum(U * U, axis=0))
    left_out = np.where(root > 0, rooted / np.where(root > 0, root, 1), 0)
    seconds = (time.perf_counter() - begun) / max(1, len(numbers))
    for r in range(len(numbers)):
        yield _round(
            r + 1, numbers[: r + 1], weights[r, : r + 1], float(gains[r]), float(errors[r]),
            left_out[r], seconds,
        )  # fmt: skip


def _drawn_rounds(
    problem: tuple[Any, ...], flat: np.ndarray, most: int, settings: RidgeSettings
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return what the compiled selection returns, of a draw of the candidates in each round."""
    from visionshare.learners.ridge_kernels import select_drawn

    m = len(problem[4])
    gone = np.concatenate([flat, np.zeros(most, np.int64)])
    found = np.empty(most, np.int64), np.empty(most), np.empty((most, m)), np.empty((most, m))
    count = 0
    ended = False
    while count < most and not ended:
        draws = cast(RandomSubset, settings.search).uniforms(count + 1)[: most - count]
        count, ended = select_drawn(*problem, draws, count, gone, *found)
    ids, gains, U, Gys = (part[:count] for part in found)
    return ids, gains, U, Gys
