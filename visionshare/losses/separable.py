"""Losses of one number an example: value, derivative and proximal operator.

All are functions of z = c − s·f, where f is the score: for regression c is the target and s = 1,
so that z is what is left; for classes s = ±1 is the sign and c = 1, so that z = 1 − s·f is how far
the score is short of its margin. To add a loss, write a frozen dataclass with the methods of
:class:`TaskLoss` and add one line to :data:`TASK_LOSSES`.

References
----------
A. Rakotomamonjy, R. Flamary, F. Yger, "Learning with infinitely many features", Machine Learning
91, 2013, table 2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from scipy.special import expit, wrightomega

from visionshare.errors import InputError
from visionshare.registry import Registry

# Exponents are cut off here: a sum of many such numbers is still finite.
_HIGHEST = 600.0


@runtime_checkable
class ImportanceLoss(Protocol):
    """What boosting's exponential bound asks of a loss of logistic or exponential terms.

    The importance is the sum of all terms' slopes without their signs, L' the sum with them.
    """

    @property
    def template(self) -> float:
        """Σ_j a_j |x_ij| may be so much for the bound to hold."""
        ...

    def importance(self, z: np.ndarray) -> np.ndarray:
        """Return the importance, of the shape of z."""
        ...


class TaskLoss(Protocol):
    """What a solver asks of a loss of one number."""

    @property
    def curvature(self) -> float:
        """Largest second derivative, infinity where there is a kink."""
        ...

    def value(self, z: np.ndarray) -> np.ndarray:
        """Return L(z), elementwise."""
        ...

    def derivative(self, z: np.ndarray) -> np.ndarray:
        """Return L'(z)."""
        ...

    def second_derivative(self, z: np.ndarray) -> np.ndarray:
        """Return L''(z)."""
        ...

    def prox(self, z: np.ndarray, step: np.ndarray) -> np.ndarray:
        """Return argmin_a step·L(a) + ½(a − z)², elementwise; ``step`` broadcasts."""
        ...


@runtime_checkable
class ConjugateLoss(Protocol):
    """What the duality gap asks of a loss whose conjugate L* is known."""

    def fenchel_young(self, z: np.ndarray, scale: float) -> np.ndarray:
        """Return L(z) + L*(u) − zu with u = scale·L'(z), at least 0; 0 < scale < 1.

        Or an upper bound: (1 − scale)·L(z) is one for every convex loss of at least 0.
        """
        ...


@dataclass(frozen=True)
class Squared:
    """L(z) = z²."""

    curvature = 2.0

    def value(self, z: np.ndarray) -> np.ndarray:
        return z * z

    def derivative(self, z: np.ndarray) -> np.ndarray:
        return 2 * z

    def second_derivative(self, z: np.ndarray) -> np.ndarray:
        return np.full_like(z, 2)

    def prox(self, z: np.ndarray, step: np.ndarray) -> np.ndarray:
        return z / (1 + 2 * step)

    def fenchel_young(self, z: np.ndarray, scale: float) -> np.ndarray:
        return (1 - scale) ** 2 * self.value(z)


@dataclass(frozen=True)
class SquaredHinge:
    """L(z) = max(0, z)²."""

    curvature = 2.0

    def value(self, z: np.ndarray) -> np.ndarray:
        return np.maximum(z, 0) ** 2

    def derivative(self, z: np.ndarray) -> np.ndarray:
        return 2 * np.maximum(z, 0)

    def second_derivative(self, z: np.ndarray) -> np.ndarray:
        return 2.0 * (z > 0)

    def prox(self, z: np.ndarray, step: np.ndarray) -> np.ndarray:
        return np.where(z >= 0, z / (1 + 2 * step), z)

    def fenchel_young(self, z: np.ndarray, scale: float) -> np.ndarray:
        return (1 - scale) ** 2 * self.value(z)


@dataclass(frozen=True)
class Logistic:
    """L(z) = ln(1 + e^{z−1}), the logistic loss ln(1 + e^{−s·f})."""

    curvature = 0.25
    lipschitz = 1.0
    template = 1.0

    def importance(self, z: np.ndarray) -> np.ndarray:
        """Return 1 / (1 + e^{1−z}), the probability of the other class."""
        return self.derivative(z)

    def value(self, z: np.ndarray) -> np.ndarray:
        return np.logaddexp(0, z - 1)

    def derivative(self, z: np.ndarray) -> np.ndarray:
        return expit(z - 1)

    def second_derivative(self, z: np.ndarray) -> np.ndarray:
        p = self.derivative(z)
        return p * (1 - p)

    def prox(self, z: np.ndarray, step: np.ndarray) -> np.ndarray:
        return _newton_prox(self, np.asarray(z, np.float64), step)

    def fenchel_young(self, z: np.ndarray, scale: float) -> np.ndarray:
        return divergence(self.value(z), self.derivative(z), scale)


@dataclass(frozen=True)
class Exponential:
    """L(z) = e^{z−1}, AdaBoost's loss e^{−s·f}: its curvature has no bound."""

    curvature = float("inf")
    template = 1.0

    def value(self, z: np.ndarray) -> np.ndarray:
        """Return e^{z−1}; beyond e^600 it no longer grows, so that sums stay finite."""
        return np.exp(np.minimum(z - 1, _HIGHEST))

    # e^x is its own derivative.
    importance = derivative = second_derivative = value

    def prox(self, z: np.ndarray, step: np.ndarray) -> np.ndarray:
        """Return z − ω(ln step + z − 1), with the Wright omega function."""
        z = np.asarray(z, np.float64)
        with np.errstate(divide="ignore"):
            return z - wrightomega(np.log(step) + z - 1).real

    def fenchel_young(self, z: np.ndarray, scale: float) -> np.ndarray:
        return (1 - scale + scale * np.log(scale)) * self.value(z)


@dataclass(frozen=True)
class Insensitive:
    """L(z) = ln(1 + e^{z−ε}) + ln(1 + e^{−z−ε}), small where |z| is below ε.

    Parameters
    ----------
    eps : float, default 0.1
        ε, at least 0.
    """

    eps: float = 0.1
    curvature = 0.5
    lipschitz = 1.0
    template = 1.0

    def __post_init__(self) -> None:
        if not 0 <= self.eps < np.inf:
            raise InputError("eps", self.eps, "a finite number of at least 0")

    def importance(self, z: np.ndarray) -> np.ndarray:
        return expit(z - self.eps) + expit(-z - self.eps)

    def value(self, z: np.ndarray) -> np.ndarray:
        return np.logaddexp(0, z - self.eps) + np.logaddexp(0, -z - self.eps)

    def derivative(self, z: np.ndarray) -> np.ndarray:
        return expit(z - self.eps) - expit(-z - self.eps)

    def second_derivative(self, z: np.ndarray) -> np.ndarray:
        p = expit(z - self.eps)
        q = expit(-z - self.eps)
        return p * (1 - p) + q * (1 - q)

    def prox(self, z: np.ndarray, step: np.ndarray) -> np.ndarray:
        return _newton_prox(self, np.asarray(z, np.float64), step)

    def fenchel_young(self, z: np.ndarray, scale: float) -> np.ndarray:
        """Return an upper bound: the sum of both terms' bounds."""
        half = Logistic()
        up, down = 1 + z - self.eps, 1 - z - self.eps
        return half.fenchel_young(up, scale) + half.fenchel_young(down, scale)


def divergence(loss: np.ndarray, wrong: np.ndarray, scale: float) -> np.ndarray:
    """Return the divergence of probabilities from themselves with less of what is wrong.

    Of scale·p + (1 − scale)·e from p, where e is sure of the truth: p leaves ``wrong`` to all else
    and has the logarithmic loss ``loss``.
    """
    kept = scale * wrong
    return kept * np.log(scale) + (1 - kept) * (np.log1p(-kept) + loss)


def _newton_prox(loss: TaskLoss, z: np.ndarray, step: np.ndarray) -> np.ndarray:
    """Return the root of a − z + step·L'(a) for |L'| ≤ 1, by Newton steps inside a bracket."""
    low = z - step
    high = z + step
    a = z - step * loss.derivative(z)
    for _ in range(60):
        slack = a - z + step * loss.derivative(a)
        low = np.where(slack < 0, a, low)
        high = np.where(slack < 0, high, a)
        move = slack / (1 + step * loss.second_derivative(a))
        moving = np.abs(move) > 4e-16 * (1 + np.abs(a))
        if not moving.any():
            break
        newton = a - move
        # Between far points Newton's steps may go to and fro for good: halve instead.
        outside = moving & ((newton <= low) | (newton >= high))
        a = np.where(outside, 0.5 * (low + high), newton)
    return np.asarray(a)


@dataclass(frozen=True)
class Hinge:
    """L(z) = max(0, z), with a kink at 0: for solvers only once it is smoothed."""

    curvature = float("inf")
    lipschitz = 1.0

    def value(self, z: np.ndarray) -> np.ndarray:
        return np.maximum(z, 0)

    def derivative(self, z: np.ndarray) -> np.ndarray:
        return 1.0 * (z > 0)

    def second_derivative(self, z: np.ndarray) -> np.ndarray:
        return np.where(z == 0, np.inf, 0.0)

    def prox(self, z: np.ndarray, step: np.ndarray) -> np.ndarray:
        return np.where(z > step, z - step, np.minimum(z, 0))


@dataclass(frozen=True)
class Absolute:
    """L(z) = |z|, with a kink at 0: for solvers only once it is smoothed."""

    curvature = float("inf")
    lipschitz = 1.0

    def value(self, z: np.ndarray) -> np.ndarray:
        return np.abs(z)

    def derivative(self, z: np.ndarray) -> np.ndarray:
        return np.sign(z)

    def second_derivative(self, z: np.ndarray) -> np.ndarray:
        return np.where(z == 0, np.inf, 0.0)

    def prox(self, z: np.ndarray, step: np.ndarray) -> np.ndarray:
        return np.sign(z) * np.maximum(np.abs(z) - step, 0)


TASK_LOSSES: Registry[TaskLoss] = Registry(
    "loss",
    {
        "squared": Squared,
        "squared_hinge": SquaredHinge,
        "logistic": Logistic,
        "exponential": Exponential,
        "hinge": Hinge,
        "absolute": Absolute,
        "insensitive": Insensitive,
    },
    ("value", "derivative"),
)


def make_task_loss(given: str | TaskLoss, **options: Any) -> TaskLoss:
    """Return the loss of a name and its options, or the loss that is given.

    Examples
    --------
    >>> make_task_loss("squared").value(np.array([3.0])).tolist()
    [9.0]
    """
    return TASK_LOSSES.make(given, **options)
