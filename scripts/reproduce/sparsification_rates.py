"""How many inputs the talk's tight example needs, computed and not drawn.

S. Shalev-Shwartz, N. Srebro, "Low ℓ1 norm and guarantees on sparsifiability", 2008: y = ±1, n
inputs that each agree with y with probability (1 + 1/B)/2, the loss |⟨w, x⟩ − y|, the dense weights
B/n. Part of ``python -m scripts.reproduce.sparsification``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import binom

from scripts.reproduce.results import render, table

BOUNDS, EPSILONS = (2.0, 3.0, 4.0, 6.0, 8.0, 12.0), (0.1, 0.2, 0.3)
LOW_NORM, SIZES = 0.1, (400, 1600, 6400, 25600)
_MOST = 1 << 17


class Rate(NamedTuple):
    """Inputs needed for a risk, of any weights and of equal draws, at one B and ε."""

    bound: float
    epsilon: float
    needed: int
    draws: int


class LowNorm(NamedTuple):
    """A predictor of n inputs with ‖w‖₂ = ε: its risk, and the inputs that 2ε needs."""

    n: int
    bound: float
    dense: float
    needed: int


def risk(n: int, bound: float, weight: float | None = None) -> float:
    """Return E|c Σ x_i − y| of n inputs with one weight c, the best where none is given.

    No other weights of n inputs do better: the mean over all orders of the inputs has equal
    weights, and the loss is convex.
    """
    agree = np.arange(n + 1)
    probability, total = binom.pmf(agree, n, (1 + 1 / bound) / 2), 2.0 * agree - n
    if weight is None:
        # Of Σ p |s| |c − 1/s| a weighted median of 1/s is the minimizer.
        some = total != 0
        inverse, mass = 1 / total[some], (probability * np.abs(total))[some]
        order = np.argsort(inverse)
        half = np.searchsorted(np.cumsum(mass[order]), mass.sum() / 2)
        weight = float(inverse[order][half])
    return float(probability @ np.abs(weight * total - 1))


def fewest(of: Callable[[int], float], epsilon: float) -> int:
    """Return the least n whose risk is at most epsilon, for a risk that falls with n."""
    high = 1
    while of(high) > epsilon:
        high *= 2
        if high > _MOST:
            raise ValueError(f"epsilon {epsilon}: more than {_MOST} inputs")
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if of(middle) <= epsilon else (middle, high)
    return high


def rates() -> list[Rate]:
    """Return the inputs that each B and ε need."""
    return [
        Rate(
            bound,
            epsilon,
            fewest(lambda n, b=bound: risk(n, b), epsilon),  # type: ignore[misc]
            fewest(lambda n, b=bound: risk(n, b, b / n), epsilon),  # type: ignore[misc]
        )
        for bound in BOUNDS
        for epsilon in EPSILONS
    ]


def low_norms() -> list[LowNorm]:
    """Return predictors of more and more inputs with the same ‖w‖₂."""
    out = []
    for n in SIZES:
        bound = LOW_NORM * np.sqrt(n)
        needed = fewest(lambda k, b=bound: risk(k, b), 2 * LOW_NORM)  # type: ignore[misc]
        out.append(LowNorm(n, bound, risk(n, bound, bound / n), needed))
    return out


def slope(found: list[Rate], field: str) -> float:
    """Return the power of B/ε that inputs grow with, by least squares of logarithms."""
    x = np.log([r.bound / r.epsilon for r in found])
    return float(np.polyfit(x, np.log([getattr(r, field) for r in found]), 1)[0])


def described(found: list[Rate], low: list[LowNorm]) -> str:
    """Return the part of the page about both."""
    rows: list[list[Any]] = []
    for bound in BOUNDS:
        at = {r.epsilon: r for r in found if r.bound == bound}
        rows.append([f"{bound:g}", *(f"{at[e].needed}; {at[e].draws}" for e in EPSILONS)])
    few = [[r.n, f"{r.bound:g}", f"{r.dense:.3f}", r.needed, f"{r.needed / r.n:.2f}"] for r in low]
    return render(
        "sparsification/rates",
        needed=table(["B", *(f"ε = {e}" for e in EPSILONS)], rows),
        slope=f"{slope(found, 'needed'):.2f}",
        slope_of_draws=f"{slope(found, 'draws'):.2f}",
        norm=LOW_NORM,
        twice=2 * LOW_NORM,
        low=table(["n", "‖w‖₁ = B", "its risk", "inputs needed", "of n"], few),
    )
