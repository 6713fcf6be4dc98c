"""Screened search: an estimate on the examples that matter, the exact score of the survivors."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from visionshare.columns import Columns
from visionshare.generators.checks import check_fraction, check_whole
from visionshare.search.exhaustive import winners
from visionshare.search.per_cost import PerCost
from visionshare.search.pool import Candidate, Criterion, Pool, SearchState

# Fraction of the sample that is drawn uniformly: an example that is fitted now may not stay so.
_ALIKE = 0.1


@dataclass(frozen=True)
class _Sample:
    """Examples drawn at a round, the inverse of their chances, and their columns if copied."""

    round: int
    rows: np.ndarray
    inverse: np.ndarray
    columns: Columns | None


@dataclass
class Screened:
    """Screen by the gradient norm on a sample of the examples, then verify the best exactly.

    Late in a run few examples hold nearly all of the residual. An example is drawn with a chance
    proportional to its part of it, the largest for certain, and counts by the inverse of its
    chance: the estimate is unbiased, and nearly exact where it matters. The columns of the sample
    are copied, and serve some rounds. Where the criterion divides the gradient by a spread or by
    cost, so does the screen.

    Parameters
    ----------
    fraction : float, default 0.1
        Fraction of the examples in the sample; less where its columns would take too much memory.
    keep : int, default 64
        Candidates that are verified with the criterion on all examples; never fewer than enter.
    rounds : int, default 6
        Rounds that a sample serves, where the learner can say what the residual was.
    random_state : int, default 0
        Seed; a sample depends on it, on its round's number and on the residual alone.
    max_bytes : int, default 2 GiB
        Memory of a sample's columns at most.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from visionshare import ShareBoost
    >>> X, y = load_digits(return_X_y=True)
    >>> ShareBoost(rounds=2, search=Screened(keep=8)).fit(X[:300], y[:300]).support_.size
    2
    """

    fraction: float = 0.1
    keep: int = 64
    rounds: int = 6
    random_state: int = 0
    max_bytes: int = 2 << 30
    _sample: _Sample | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_fraction("fraction", self.fraction)
        self.fraction = float(self.fraction)
        for name, least in {"keep": 1, "rounds": 1, "random_state": 0, "max_bytes": 1}.items():
            check_whole(name, getattr(self, name), least)
            setattr(self, name, int(getattr(self, name)))

    def best(
        self, pool: Pool, state: SearchState, criterion: Criterion, excluded: np.ndarray, n: int = 1
    ) -> list[Candidate]:
        """Return the best survivors."""
        survivors = self.screen(pool, state, criterion, excluded, n)
        if len(survivors) == 0:
            return []
        return winners(pool, survivors, criterion.score(pool, state, survivors), n)

    def screen(
        self, pool: Pool, state: SearchState, criterion: Criterion, excluded: np.ndarray, n: int = 1
    ) -> np.ndarray:
        """Return the numbers of the survivors, ascending."""
        numbers = np.flatnonzero(~excluded)
        keep = max(self.keep, n)
        if len(numbers) <= keep:
            return numbers
        norms = np.abs(self.estimate(pool, state)).sum(axis=1)
        divided = criterion.criterion if isinstance(criterion, PerCost) else criterion
        if hasattr(divided, "spread"):
            norms /= divided.spread(pool, state)
        ids, starts = pool.members(None)
        scores = pool.sums(norms if ids is None else norms[ids], starts)
        if isinstance(criterion, PerCost):
            scores = scores / criterion.costs(pool, state, None)
        best = np.argpartition(-scores[numbers], keep - 1)[:keep]
        return np.sort(numbers[best])

    def estimate(self, pool: Pool, state: SearchState) -> np.ndarray:
        """Return the estimate of XᵀR (d, k) from the sample that serves a round, without bias.

        Examples
        --------
        >>> from types import SimpleNamespace
        >>> from visionshare.columns import ArrayColumns
        >>> rng = np.random.default_rng(0)
        >>> columns, R = ArrayColumns(rng.normal(size=(400, 2))), rng.normal(size=(400, 1))
        >>> state = SimpleNamespace(residual=R, round=1, earlier=None)
        >>> estimate = Screened(fraction=1.0).estimate(Pool(columns), state)
        >>> bool(np.allclose(estimate, columns.correlate(R)))
        True
        """
        if self.fraction == 1:
            return pool.columns.correlate(state.residual)
        sample = self._sample_of(pool, state)
        R = state.residual
        weighted = weighted_sample(R, sample.rows, sample.inverse, bool(pool.columns.offset.any()))
        if sample.columns is not None:
            return sample.columns.correlate(weighted)
        whole = np.zeros_like(R)
        whole[sample.rows] = weighted
        return pool.columns.correlate(whole)

    def _sample_of(self, pool: Pool, state: SearchState) -> _Sample:
        """Return the sample that serves a round: of the first of some rounds, or of its own."""
        first = state.round
        if state.earlier is not None:
            first -= (state.round - 1) % self.rounds
        if self._sample is None or self._sample.round != first:
            residual = state.residual
            if state.earlier is not None and first < state.round:
                residual = state.earlier(first)
            self._sample = self._drawn(pool.columns, residual, first)
        return self._sample

    def _drawn(self, columns: Columns, residual: np.ndarray, number: int) -> _Sample:
        m, d = columns.shape
        most = self.max_bytes // max(1, d * np.dtype(columns.dtype).itemsize)
        size = min(max(1, round(self.fraction * m)), most)
        rows, inverse = sample_by_residual(residual, size, (self.random_state, number))
        old = None if self._sample is None else self._sample.columns
        return _Sample(number, rows, inverse, columns.sample(rows, old))


def sample_by_residual(
    residual: np.ndarray, n: int, seed: tuple[int, ...]
) -> tuple[np.ndarray, np.ndarray]:
    """Return about n examples drawn by their part of a residual."""
    # And the inverse of their chances.
    chances = inclusion(np.abs(residual).sum(axis=1, dtype=np.float64), n)
    rows = np.flatnonzero(np.random.default_rng(seed).random(len(chances)) < chances)
    return rows, (1 / chances[rows]).astype(residual.dtype)


def weighted_sample(
    R: np.ndarray, rows: np.ndarray, inverse: np.ndarray, centered: bool
) -> np.ndarray:
    """Return the residual of sampled examples, each counted by the inverse of its chance."""
    weighted: np.ndarray = R[rows] * inverse[:, None]
    if not centered:
        # The means of columns that are not centered would add more error than all else.
        weighted += (R.sum(axis=0) - weighted.sum(axis=0)) / max(1, len(weighted))
    return weighted


def inclusion(sizes: np.ndarray, n: int) -> np.ndarray:
    """Return each example's chance to be in a sample of about n: by size, at most 1, none 0."""
    m = len(sizes)
    total = sizes.sum()
    fractions = np.full(m, 1 / m) if total == 0 else (1 - _ALIKE) * sizes / total + _ALIKE / m
    chances = np.minimum(1.0, n * fractions)
    factor = float(n)
    # What is cut off at 1 is given to the others, until nothing more is cut off.
    for _ in range(100):
        free = chances < 1
        remaining = n - np.count_nonzero(~free)
        if not free.any() or remaining <= 0:
            break
        before = factor
        factor = remaining / fractions[free].sum()
        if factor <= before * (1 + 1e-9):
            break
        chances = np.minimum(1.0, factor * fractions)
    return chances
