"""Bounds of the loss for a change of one feature's weights, which boosting minimizes with Ω.

A bound knows the gradient of each row of weights, and what it needs besides: the squares of the
column, or the importance of the examples where it is not zero. The same bound moves the weights
of a solver and scores the candidates of a search.

References
----------
J. Duchi, Y. Singer, "Boosting with structural sparsity", ICML 2009, lemmas 4.1 and 5.1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np

from visionshare.errors import InputError
from visionshare.losses import ImportanceLoss, TaskLoss
from visionshare.penalties import GroupNorm, RowPenalty
from visionshare.solvers.tasks import TaskProblem

# Exponents that are taken: a sum of so large numbers is finite.
_LONGEST = 600.0


class MovingRows(NamedTuple):
    """Rows of weights that may move, one for each column of features."""

    w: np.ndarray
    gradient: np.ndarray
    # Importance of the examples times |x|; zeros for bounds that do not weigh.
    total: np.ndarray
    # How far each row may move, see :meth:`RowBound.sized`.
    size: np.ndarray
    # Where each group of rows begins.
    starts: np.ndarray


class QuadraticBound:
    """L(w + δ) ≤ L(w) + g·δ + ½ Σ_j B_j ‖δ_j‖², GradBoost's.

    A row has B = c Σ_i ω_i x_i² for the loss's largest curvature c.
    """

    # Whether it needs the importance of the examples, and how :meth:`measure` of examples in
    # several places is joined.
    weighs = False
    how = "sum"

    def __init__(self, problem: TaskProblem) -> None:
        check_quadratic_bound(problem.loss, problem.norm)
        self.penalty = problem.norm
        self.alpha = problem.alpha
        self._curvature = problem.loss.curvature

    def measure(self, X: np.ndarray, omegas: np.ndarray) -> np.ndarray:
        """Return Σ_i ω_i x_i² of each row by each of the weights, (n, n_weights)."""
        return (X * X) @ omegas.T

    def sized(self, measure: np.ndarray, starts: np.ndarray) -> np.ndarray:
        """Return B of each row: how far it may move alone, by the measure of all examples."""
        values = np.add.reduceat(measure.max(axis=1), starts)
        sizes = np.diff(np.append(starts, len(measure)))
        return self._curvature * np.repeat(np.where(values > 0, values, 1.0), sizes)

    def minimize(self, rows: MovingRows) -> np.ndarray:
        """Return the new weights of each row, the proximal operator of λ/B at w − g/B."""
        steps = rows.gradient / rows.size[:, None]
        return self.penalty.prox(rows.w - steps, rows.starts, self.alpha / rows.size)

    def decrease(self, rows: MovingRows) -> np.ndarray:
        """Return −g·δ − ½B‖δ‖² + λΩ(w) − λΩ(w + δ) of each group."""
        w, gradient, _, size, starts = rows
        new = self.minimize(rows)
        move = new - w
        fallen = -np.sum(gradient * move + 0.5 * size[:, None] * move**2, axis=1)
        penalty = self.penalty.norms(w, starts) - self.penalty.norms(new, starts)
        return np.add.reduceat(fallen, starts) + self.alpha * penalty

    def intercepts(self, gradient: np.ndarray, total: np.ndarray, omega: np.ndarray) -> np.ndarray:
        """Return the steps of intercepts, −g/(c Σω), for their gradients, totals and Σω (T,)."""
        return -gradient / (self._curvature * omega)


class ExponentialBound:
    """L(w) − L(w + δ) ≥ Σ_j a_j Σ_r μ⁺_jr(1 − e^{−δ_jr/a_j}) + μ⁻_jr(1 − e^{δ_jr/a_j}), AdaBoost's.

    μ⁺ − μ⁻ is −g, μ⁺ + μ⁻ the importance of the examples times |x|, so that the losses of classes,
    tasks and numbers differ in their importance alone. Σ_j a_j |x_ij| ≤ the loss's ``template``.
    """

    weighs = True
    how = "max"
    _tiny = 1e-300
    _longest = 5.0

    def __init__(self, problem: TaskProblem) -> None:
        self._template = checked_importance(problem.loss, problem.norm).template
        self.penalty: RowPenalty = problem.norm
        self.alpha = problem.alpha

    def measure(self, X: np.ndarray, omegas: np.ndarray) -> np.ndarray:
        """Return the largest |x| of each row over the examples that count, (n,)."""
        used = omegas.max(axis=0) > 0
        return np.abs(X[:, used]).max(axis=1, initial=0.0)

    def sized(self, measure: np.ndarray, starts: np.ndarray) -> np.ndarray:
        """Return a_j of each row."""
        if len(starts) != len(measure):
            raise InputError("groups", "several columns each", "one column each, for AdaBoost")
        return self._template / np.where(measure > 0, measure, 1.0)

    def minimize(self, rows: MovingRows) -> np.ndarray:
        """Return the rows of least bound and norm, in closed form."""
        up, down = _sides(rows.gradient, rows.total)
        if self.penalty.q == 1:
            return rows.w + exponential_l1(rows.w, up, down, rows.size[:, None], self.alpha)
        return exponential_max(rows.w, up, down, rows.size, self.alpha)

    def decrease(self, rows: MovingRows) -> np.ndarray:
        """Return the bound on the loss's fall, plus λΩ(w) − λΩ(w + δ), of each row."""
        w, gradient, total, size, starts = rows
        new = self.minimize(rows)
        up, down = _sides(gradient, total)
        steps = (new - w) / size[:, None]
        fallen = -size * np.sum(up * np.expm1(-steps) + down * np.expm1(steps), axis=1)
        penalty = self.penalty.norms(w, starts) - self.penalty.norms(new, starts)
        return fallen + self.alpha * penalty

    def intercepts(self, gradient: np.ndarray, total: np.ndarray, omega: np.ndarray) -> np.ndarray:
        """Return (a/2) ln(μ⁺/μ⁻), and no more than a few units."""
        up, down = _sides(gradient, total)
        ratio = np.log(np.maximum(up, self._tiny) / np.maximum(down, self._tiny))
        return np.clip(0.5 * self._template * ratio, -self._longest, self._longest)


def checked_importance(loss: TaskLoss, norm: RowPenalty) -> ImportanceLoss:
    """Return a loss that the exponential bound of one feature's weights holds for."""
    if not isinstance(norm, GroupNorm) or norm.q not in (1, np.inf):
        given = norm.q if isinstance(norm, GroupNorm) else "half the squares"
        raise InputError("q", given, "1 or infinity, for AdaBoost")
    if not isinstance(loss, ImportanceLoss):
        accepted = "'logistic', 'exponential', 'multinomial' or 'insensitive', for AdaBoost"
        raise InputError("loss", type(loss).__name__, accepted)
    return loss


def check_quadratic_bound(loss: TaskLoss, norm: RowPenalty) -> None:
    """Raise an InputError where no quadratic bound of one feature's weights can be minimized.

    That is for a loss whose curvature has no bound, and a penalty that is no sum over features.
    """
    if not np.isfinite(loss.curvature):
        accepted = (
            "a loss of bounded curvature for the quadratic bound; or solver 'adaboost', or "
            "criterion 'violation' with solver 'newton', 'fista' or 'admm'"
        )
        raise InputError("loss", type(loss).__name__, accepted)


# Closed forms of one feature's update. μ⁺ and μ⁻ are sums of the examples' importance, where the
# feature agrees with the sign of the example and where it does not.


def exponential_l1(
    w: np.ndarray, up: np.ndarray, down: np.ndarray, a: float | np.ndarray, alpha: float
) -> np.ndarray:
    """Return the δ that minimize a μ⁺e^{−δ/a} + a μ⁻e^{δ/a} + λ|δ + w|, elementwise."""
    # The slope at δ = −w, where the weight becomes zero; its sign is what counts where it is huge.
    exponent = np.clip(w / a, -_LONGEST, _LONGEST)
    slope = up * np.exp(exponent) - down * np.exp(-exponent)
    root = np.sqrt(alpha**2 + 4 * up * down)
    above = 2 * up / np.where(alpha + root > 0, alpha + root, 1)
    below = 2 * down / np.where(alpha + root > 0, alpha + root, 1)
    rise = a * np.log(np.where(above > 0, above, 1))
    fall = -a * np.log(np.where(below > 0, below, 1))
    return np.where(slope > alpha, rise, np.where(slope < -alpha, fall, -w))


def exponential_max(
    w: np.ndarray, up: np.ndarray, down: np.ndarray, a: float | np.ndarray, alpha: float
) -> np.ndarray:
    """Return the rows γ·a that minimize Σ_r a μ⁺_r e^{−δ_r/a} + a μ⁻_r e^{δ_r/a} + λ‖w + δ‖_∞."""
    a = np.asarray(a, np.float64)[..., None]
    # With γ = (w + δ)/a the bound is a Σ p_r e^{−γ_r} + n_r e^{γ_r}; the norm is a ‖γ‖_∞. All by
    # logarithms: weights may be many times as large as a.
    with np.errstate(divide="ignore"):
        p = np.log(up) + w / a
        n = np.log(down) - w / a
    slopes = np.exp(np.minimum(p, _LONGEST)) - np.exp(np.minimum(n, _LONGEST))
    zero = np.abs(slopes).sum(axis=-1, keepdims=True) <= alpha
    signs = np.where(p >= n, 1.0, -1.0)
    more = np.maximum(p, n)
    less = np.minimum(p, n)
    counts = more > -np.inf
    row_steps = np.where(counts, 0.5 * (np.where(counts, more, 0.0) - less), 0.0)
    order = np.argsort(-row_steps, axis=-1, kind="stable")
    M, N = (
        np.logaddexp.accumulate(np.take_along_axis(v, order, -1), axis=-1) for v in (more, less)
    )
    # The root of M e^{−ξ} − N e^{ξ} = λ, with the conjugate of its numerator.
    penalty = np.log(alpha) if alpha > 0 else -np.inf
    root = 0.5 * np.logaddexp(2 * penalty, np.log(4) + M + N)
    levels = np.where(zero, 0.0, np.log(2) + M) - np.logaddexp(penalty, root)
    following = np.full_like(levels, -np.inf)
    following[..., :-1] = np.take_along_axis(row_steps, order, -1)[..., 1:]
    first = np.argmax(levels >= following, axis=-1)[..., None]
    level = np.maximum(np.take_along_axis(levels, first, -1), 0.0)
    return np.where(zero, 0.0, a * signs * np.minimum(row_steps, level))


def _sides(gradient: np.ndarray, total: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return μ⁺ and μ⁻."""
    return np.maximum(total - gradient, 0) / 2, np.maximum(total + gradient, 0) / 2


#: What boosting minimizes for each row of weights.
RowBound: TypeAlias = QuadraticBound | ExponentialBound

BOUNDS: dict[str, Callable[[TaskProblem], RowBound]] = {
    "quadratic": QuadraticBound,
    "exponential": ExponentialBound,
}


def majorizer(solver: str | Callable[..., object], problem: TaskProblem) -> RowBound:
    """Return the bound that a solver minimizes; the quadratic one for solvers without any."""
    name = getattr(getattr(solver, "func", solver), "bound_name", "quadratic")
    return BOUNDS["exponential" if solver == "adaboost" else name](problem)
