"""How much of each column is new, estimated on a few examples."""

from __future__ import annotations

import numpy as np

from visionshare.columns import Columns

# Examples that estimate: several times as many as the features of a compact classifier.
_EXAMPLES = 2048
# Below this fraction of a column's square nothing of it is new.
_DEPENDENT = 1e-6


class Novelty:
    """The part of each column's variance that no chosen column explains, on a sample."""

    def __init__(self, columns: Columns, omega: np.ndarray) -> None:
        m = columns.shape[0]
        training = np.flatnonzero(omega > 0)
        drawn = np.random.default_rng(m).permutation(len(training))[:_EXAMPLES]
        rows = training[np.sort(drawn)]
        self._sample = columns.sample(rows)
        self._root = np.sqrt(omega[rows] / omega[rows].sum())
        self._basis = np.empty((0, len(rows)))
        self._n = 0
        if self._sample is not None:
            self._left = self._squares()
            self._add(np.ones(len(rows)))

    @property
    def known(self) -> bool:
        """Whether the columns can be sampled at all."""
        return self._sample is not None

    def _squares(self) -> np.ndarray:
        """Return Σ ω x² of each scaled column over the sample, (d,) float64."""
        assert self._sample is not None
        mean, square, _ = self._sample.moments(self._root**2).T
        offset = self._sample.offset
        scale = self._sample.scale
        return np.asarray((square - 2 * offset * mean + offset**2) * scale**2)

    def _add(self, column: np.ndarray) -> None:
        """Take from all columns what a column explains beyond those before it."""
        assert self._sample is not None
        v = column * self._root
        whole = float(v @ v)
        # Twice, for the rounding errors of the first time.
        for _ in range(2):
            v = v - (self._basis @ v) @ self._basis
        size = float(v @ v)
        if size <= _DEPENDENT * whole:
            return
        v /= np.sqrt(size)
        self._basis = np.concatenate([self._basis, v[None]])
        self._left -= self._sample.correlate((v * self._root)[:, None])[:, 0] ** 2

    def variances(self, support: np.ndarray) -> np.ndarray:
        """Return what is new in each column, (d,) float64, beyond the columns chosen so far."""
        assert self._sample is not None
        for column in self._sample.columns_of(support[self._n :]):
            self._add(column.astype(np.float64))
        self._n = len(support)
        return self._left
