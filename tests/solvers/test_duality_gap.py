"""The duality gap against a dual by brute force, and against the true distance from the optimum."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize, minimize_scalar

from visionshare.errors import InputError
from visionshare.losses import Multinomial, Smoothed, make_task_loss
from visionshare.penalties import GroupNorm, HalfSquares, violations
from visionshare.solvers import Fista, TaskProblem, TaskTargets

M = 24
ACTIVE = [0, 1, 2]
# One of each column but the last two, which are one group.
SIZES = [1] * 8 + [2]
LIMITS = [(0.4, np.inf), (np.inf, 0.6), (0.4, 0.5)]
LOSSES = {
    name: make_task_loss(name) for name in ("squared", "squared_hinge", "logistic", "exponential")
}
# Of these the gap is a bound of that of the dual.
BOUNDED = {
    "insensitive": make_task_loss("insensitive"),
    "smoothed hinge": Smoothed(make_task_loss("hinge"), 0.5),
}
LOSSES["multinomial"] = Multinomial(np.arange(M) % 3)


def _problems(loss, norm, limits):
    """Return the problem of all columns, and one of some of them."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(sum(SIZES), M))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    s, c = np.where(X[[0, 4, 8]].T + 0.1 > 0, 1.0, -1.0), np.ones((M, 3))
    if isinstance(loss, Multinomial):
        s, c = -np.ones((M, 3)), np.zeros((M, 3))
    elif loss in (LOSSES["squared"], BOUNDED["insensitive"]):
        s, c = np.ones((M, 3)), 3 + 5 * X[[0, 4, 8]].T + X[[1, 5, 9]].T
    targets = TaskTargets(s, c, rng.uniform(0.5, 2, M))
    whole, part = (TaskProblem(targets, loss, norm, *limits) for _ in range(2))
    whole.append(X, SIZES)
    part.append(X[ACTIVE], [1] * len(ACTIVE))
    return whole, part


def _solved(problem):
    solution = Fista(problem).solve(problem.empty().padded(problem.n), 1e-9, 20_000)
    assert solution.converged
    return solution


def _excesses(problem, R):
    limits = (problem.norm, problem.alpha, problem.shared_alpha)
    return violations(problem.backward(R), problem.starts, *limits)


def _conjugate(problem, theta):
    """Return Σ sup_f θf − ωL(c − sf), each by scipy."""
    targets, loss, total = problem.targets, problem.loss, 0.0
    for i in range(M):
        omega = targets.omega[i]
        if isinstance(loss, Multinomial):
            alone = Multinomial(loss.y[i : i + 1])

            def negative(f, i=i, omega=omega, alone=alone):
                z = f[None]
                return omega * alone.value(z)[0, 0] - theta[i] @ f

            def slope(f, i=i, omega=omega, alone=alone):
                return omega * alone.derivative(f[None])[0] - theta[i]

            total -= minimize(negative, np.zeros(3), jac=slope, tol=1e-12).fun
            continue
        for t in range(3):

            def negative(f, i=i, t=t, omega=omega):
                z = targets.c[i, t] - targets.s[i, t] * np.array(f)
                return omega * float(loss.value(z)) - theta[i, t] * f

            options = {"xatol": 1e-9}
            found = minimize_scalar(negative, bounds=(-40, 40), method="bounded", options=options)
            total -= found.fun
    return total


# The sum over coupled tasks is 0: weights that these share alone stay at 0.
CASES = [
    (name, q, limits)
    for name in LOSSES
    for q, limits in [(1, LIMITS[0]), (np.inf, LIMITS[0]), *((2, limits) for limits in LIMITS)]
    if name != "multinomial" or np.isfinite(limits[0])
] + [(name, 2, LIMITS[0]) for name in BOUNDED]


@pytest.mark.parametrize(("name", "q", "limits"), CASES, ids=str)
def test_it_is_the_objective_minus_the_dual(name, q, limits):
    whole, part = _problems((LOSSES | BOUNDED)[name], GroupNorm(q), limits)
    optimum, solved = _solved(whole), _solved(part)
    R = part.residual(part.slack(solved.weights))
    worst = float(_excesses(whole, R).max())
    assert worst > 0.1
    theta = whole.least_alpha / (whole.least_alpha + worst) * R
    # The dual's constraints, of all columns and of the intercepts.
    assert _excesses(whole, theta).max() <= 1e-7
    assert_allclose(theta.sum(axis=0), 0, atol=1e-7)
    gap = part.duality_gap(solved.weights, worst)
    dual = solved.value + _conjugate(whole, theta)
    if name in BOUNDED:
        assert gap >= dual * (1 - 1e-6)
    else:
        assert_allclose(gap, dual, rtol=1e-5)
    assert 0 < solved.value - optimum.value <= gap
    share = worst / (whole.least_alpha + worst)
    assert gap <= share * solved.value * (1 + 1e-7)
    # At the optimum of all columns nothing is left of it.
    assert abs(whole.duality_gap(optimum.weights, 0.0)) <= 1e-7 * optimum.value


@pytest.mark.parametrize("name", ["squared", "squared_hinge"])
def test_of_squares_it_has_a_closed_form(name):
    _, part = _problems(LOSSES[name], GroupNorm(2), LIMITS[0])
    solved = _solved(part)
    share = 0.3 / (part.alpha + 0.3)
    penalty = part.penalty(solved.weights)
    expected = share * penalty + share**2 * (solved.value - penalty)
    assert_allclose(part.duality_gap(solved.weights, 0.3), expected, rtol=1e-6)


def test_active_columns_that_violate_count():
    whole, _ = _problems(LOSSES["squared"], GroupNorm(2), LIMITS[0])
    optimum, rough = _solved(whole), Fista(whole).solve(whole.empty().padded(whole.n), 0.05, 100)
    far = rough.value - optimum.value
    assert far > 1e-6
    assert whole.duality_gap(rough.weights, -1.0) >= far


def test_penalties_without_zeros_are_refused():
    _, part = _problems(LOSSES["squared"], HalfSquares(), LIMITS[0])
    with pytest.raises(InputError, match=r"^norm: got"):
        part.duality_gap(part.empty().padded(part.n), 0.0)
