"""The rounds of GentleBoost with stumps that a subset of the classes shares."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from visionshare.generators.stumps import StumpColumns
from visionshare.search.joint_kernels import best_shared_stumps, grown_subset

# Classes are learned as well as numbers can say: what is left of the loss.
_NOTHING = 1e-14


@dataclass(frozen=True)
class SharedStump:
    """What one round adds."""

    number: int
    feature: int
    shared: np.ndarray
    a: float
    b: float
    constants: np.ndarray
    gain: float
    error: float
    loss: float
    seconds: float

    @property
    def weights(self) -> np.ndarray:
        """Weights (T,) of the column 1[v ≤ θ]: a below the threshold is missing."""
        return np.where(self.shared, -self.a, 0.0)

    @property
    def intercepts(self) -> np.ndarray:
        """Intercepts (T,) beside these weights."""
        return np.where(self.shared, self.a + self.b, self.constants)


def shared_stumps(
    columns: StumpColumns,
    z: np.ndarray,
    omega: np.ndarray,
    rounds: int,
) -> Iterator[SharedStump]:
    """Yield the rounds of JointBoost."""
    positive = np.where((z > 0).any(axis=1), np.argmax(z, axis=1), -1).astype(np.int64)
    total = float(omega.sum() * z.shape[1])
    w = np.repeat(omega[:, None], z.shape[1], axis=1).astype(np.float64)
    for number in range(1, rounds + 1):
        begun = time.perf_counter()
        numbers, gains = best_shared_stumps(
            columns.order, columns.starts, columns.counts, w, positive
        )
        # The first input whose gain is the largest but for rounding.
        largest = float(gains.max())
        best = int(np.argmax(gains >= largest - 1e-10 * abs(largest)))
        mass = float(w.sum())
        if numbers[best] < 0 or not gains[best] > _NOTHING * mass or mass <= _NOTHING * total:
            return
        feature = int(numbers[best])
        x = columns.columns_of(np.array([feature]), scaled=False)[0] > 0
        shared, a, b, constants, error = _fitted(x, w, z)
        step = np.where(shared, np.where(x[:, None], b, a + b), constants)
        w *= np.exp(-z * step)
        yield SharedStump(
            number, feature, shared, a, b, constants, float(gains[best] / mass), error / mass,
            float(w.sum()) / total, time.perf_counter() - begun,
        )  # fmt: skip


def _fitted(
    x: np.ndarray, w: np.ndarray, z: np.ndarray
) -> tuple[np.ndarray, float, float, np.ndarray, float]:
    """Return the classes that share a stump, a, b, the constants and the squared error."""
    sides = np.stack([x, ~x]).astype(np.float64)
    weight = sides @ w
    signed = sides @ (w * z)
    chain = np.empty(w.shape[1], np.int64)
    _, size = grown_subset(weight, signed, -np.inf, chain)
    shared = np.isin(np.arange(w.shape[1]), chain[:size])
    low, high = _ratio(signed[:, shared].sum(axis=1), weight[:, shared].sum(axis=1))
    means = _ratio(signed.sum(axis=0), weight.sum(axis=0))
    constants = np.where(shared, 0.0, means)
    fitted = np.where(shared, np.where(x[:, None], low, high), constants)
    error = float(np.sum(w * np.square(z - fitted)))
    return shared, float(high - low), float(low), constants, error


def _ratio(signed: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return weighted means, 0 where there is no weight."""
    return np.divide(signed, weight, out=np.zeros_like(signed), where=weight > 0)
