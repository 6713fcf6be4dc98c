"""JointBoost: GentleBoost with stumps that a subset of the classes shares.

A round adds h(v, c) = a · 1[v_f > θ] + b to the scores of the classes of a subset, and a constant
to those of the others; input, threshold and subset are those of the least weighted squared error.
All thresholds of all inputs are examined; at each the subset grows by the class that leaves least
error, up to all classes, and the best subset on the way counts (in the paper one subset grows for
all thresholds together). Weights of earlier rounds stay unchanged.

A. Torralba, K. P. Murphy, W. T. Freeman, "Sharing visual features for multiclass and multiview
object detection", IEEE PAMI 29, 2007.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from scripts.reproduce.joint_kernels import best_shared_stumps, grown_subset
from visionshare.generators.stumps import StumpColumns
from visionshare.learners.examples import class_signs

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


@dataclass(frozen=True)
class Step:
    """The classifier after the last round of so many different stumps."""

    n_features: int
    weights: np.ndarray
    intercept: np.ndarray
    seconds: float


class JointBoost:
    """Some rounds: ``rounds_``, the stumps ``support_``, and a step of each in ``path_``."""

    def __init__(self, rounds: int) -> None:
        self.rounds = rounds

    def fit(
        self, columns: StumpColumns, y: np.ndarray, omega: np.ndarray | None = None
    ) -> JointBoost:
        """Choose stumps, the classes that share them and their numbers; y is 0 … k − 1, k > 2."""
        omega = np.ones(len(y)) if omega is None else omega
        signs = class_signs(y, int(y.max()) + 1)
        self.rounds_ = tuple(shared_stumps(columns, signs, omega / omega.sum(), self.rounds))
        self.support_ = np.array(list(dict.fromkeys(r.feature for r in self.rounds_)), np.int64)
        position = {int(j): i for i, j in enumerate(self.support_)}
        weights = np.zeros((signs.shape[1], len(position)))
        intercept = np.zeros(signs.shape[1])
        steps: dict[int, Step] = {}
        width = 0
        seconds = 0.0
        for r in self.rounds_:
            weights[:, position[r.feature]] += r.weights
            intercept = intercept + r.intercepts
            width = max(width, position[r.feature] + 1)
            seconds += r.seconds
            steps[width] = Step(width, weights[:, :width].copy(), intercept, seconds)
        self.path_ = tuple(steps.values())
        return self


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
