"""Forward greedy selection in a ball: the smoothed losses, the bound, the gap, the guarantee."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import linprog, minimize_scalar

from scripts.reproduce.forward_greedy import forward_greedy
from scripts.reproduce.smoothed import LOSSES, Smoothed

Z = np.array([-3.0, -0.7, -1e-3, 1e-3, 0.4, 1.0, 2.5, 30.0])


@pytest.mark.parametrize("name", ["logistic", "hinge", "absolute"])
@pytest.mark.parametrize("step", [0.01, 1.0, 50.0])
def test_prox_is_the_minimizer(name, step):
    loss = LOSSES[name]()
    for z, a in zip(Z, loss.prox(Z, np.array(step)), strict=True):

        def objective(t, z=z):
            return step * float(loss.value(np.array(t))) + 0.5 * (t - z) ** 2

        bounds = (z - step * 70 - 1, z + 1)
        solution = minimize_scalar(objective, bounds=bounds, method="bounded")
        assert objective(a) <= solution.fun * (1 + 1e-12)
    # The condition of optimality, to all digits.
    if name != "logistic":
        return
    a = loss.prox(Z, np.array(step))
    assert_allclose(a + step * loss.derivative(a), Z, rtol=1e-10, atol=1e-10)


def test_steps_of_examples_broadcast():
    loss, steps = LOSSES["logistic"](), np.array([[0.5], [2.0]])
    z = np.random.default_rng(0).normal(size=(2, 3))
    rows = [loss.prox(z[i], steps[i]) for i in range(2)]
    assert_allclose(loss.prox(z, steps), rows, rtol=1e-12)


@pytest.mark.parametrize("name", ["hinge", "absolute", "logistic"])
@pytest.mark.parametrize("eps", [0.01, 0.5, 3.0])
def test_smoothed_losses_are_near_and_smooth(name, eps):
    loss = LOSSES[name]()
    smooth = Smoothed(loss, eps)
    z = np.linspace(-6, 6, 2001)
    gap = loss.value(z) - smooth.value(z)
    assert gap.min() >= -1e-12
    assert gap.max() <= eps / 4 + 1e-12
    slopes = np.diff(smooth.derivative(z)) / np.diff(z)
    assert slopes.max() <= 2 * loss.lipschitz**2 / eps * (1 + 1e-9)
    # The definition, by search over a fine grid of u.
    u = np.linspace(-8, 8, 40001)
    for x in (-2.0, -0.1, 0.3, 2.2):
        least = np.min(loss.lipschitz**2 / eps * (u - x) ** 2 + loss.value(u))
        assert_allclose(smooth.value(np.array(x)), least, atol=1e-4)


def test_the_smoothed_hinge_is_that_of_the_slides():
    # In terms of the margin v = 1 − z; its first breakpoint is 1 − ε/2, misprinted as 1 − 1/ε.
    eps = 0.4
    v = np.linspace(-2, 2, 401)
    expected = np.where(v > 1, 0, np.where(v >= 1 - eps / 2, (1 - v) ** 2 / eps, 1 - eps / 4 - v))
    assert_allclose(Smoothed(LOSSES["hinge"](), eps).value(1 - v), expected, atol=1e-12)


def _data(seed=0, m=150, d=30):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (m, d))
    return X / np.abs(X).max(axis=0), X[:, :4] @ [1.5, -1.0, 0.8, 0.5] + 0.1 * rng.normal(size=m)


@pytest.mark.parametrize("bound", [0.5, 3.0, 20.0])
@pytest.mark.parametrize("loss", LOSSES)
def test_weights_stay_in_the_ball_and_the_loss_falls(bound, loss):
    X, f = _data()
    y = f if loss == "absolute" else np.sign(f)
    steps = list(forward_greedy(X, y, bound, loss, rounds=80, tol=0))
    assert all(np.abs(step.weights).sum() <= bound * (1 + 1e-9) for step in steps)
    assert (np.diff([step.loss for step in steps]) <= 1e-12).all()
    assert all(0 < step.step <= 1 for step in steps)


def _least_hinge(X, y, bound):
    """Return the least mean hinge loss in the ball, by linear programming."""
    m, d = X.shape
    A = np.hstack([-(y[:, None] * X), y[:, None] * X, -y[:, None], y[:, None], -np.eye(m)])
    ball = np.concatenate([np.ones(2 * d), np.zeros(2 + m)])
    cost = np.concatenate([np.zeros(2 * d + 2), np.full(m, 1 / m)])
    solution = linprog(cost, np.vstack([A, ball]), np.append(-np.ones(m), bound), method="highs")
    return solution.fun


def test_the_loss_comes_within_eps_of_the_least_in_the_ball():
    X, f = _data()
    y = np.where(f > 0.2, 1.0, -1.0)
    eps, bound = 0.1, 4.0
    *_, last = forward_greedy(X, y, bound, eps=eps, rounds=3000, tol=1e-2)
    scores = X[:, last.support] @ last.weights + last.intercept
    hinge = np.mean(np.maximum(0, 1 - y * scores))
    least = _least_hinge(X, y, bound)
    assert least - 1e-9 <= hinge <= least + eps
    # The gap bounds what is left of the smoothed loss, which is within ε/4 of the loss.
    assert last.loss <= least + last.gap + 1e-9
    assert last.loss >= least - eps / 4 - 1e-9


def test_regression_finds_what_matters_within_a_budget_of_features():
    X, f = _data()
    *_, last = forward_greedy(X, f, 4.0, "absolute", eps=0.05, rounds=2000, max_features=4)
    assert sorted(last.support) == [0, 1, 2, 3]
    assert_allclose(X[:, last.support] @ last.weights + last.intercept, f, atol=0.8)
