"""Losses of one number against finite differences and generic minimizers."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize_scalar

from visionshare.errors import InputError
from visionshare.losses import Smoothed, make_task_loss

Z = np.array([-3.0, -0.7, -1e-3, 1e-3, 0.4, 1.0, 2.5, 30.0])


SMOOTH = {
    name: make_task_loss(name)
    for name in ("squared", "squared_hinge", "logistic", "exponential", "insensitive")
}
SMOOTH |= {
    f"{name} smoothed": Smoothed(make_task_loss(name), eps=0.7)
    for name in ("hinge", "absolute", "logistic")
}


@pytest.mark.parametrize("name", SMOOTH)
def test_derivatives_are_those_of_the_value(name):
    loss, step = SMOOTH[name], 1e-5
    slope = (loss.value(Z + step) - loss.value(Z - step)) / (2 * step)
    assert_allclose(loss.derivative(Z), slope, rtol=1e-5, atol=1e-6)
    bend = (loss.derivative(Z + step) - loss.derivative(Z - step)) / (2 * step)
    assert_allclose(loss.second_derivative(Z), bend, rtol=1e-5, atol=1e-6)
    assert loss.second_derivative(np.linspace(-5, 5, 999)).max() <= loss.curvature + 1e-12


@pytest.mark.parametrize("name", {**SMOOTH, "hinge": 0, "absolute": 0})
@pytest.mark.parametrize("step", [0.01, 1.0, 50.0])
def test_prox_is_the_minimizer(name, step):
    loss = SMOOTH.get(name) or make_task_loss(name)
    for z, a in zip(Z, loss.prox(Z, np.array(step)), strict=True):

        def objective(t, z=z):
            return step * float(loss.value(np.array(t))) + 0.5 * (t - z) ** 2

        bounds = (z - step * 70 - 1, z + 1)
        solution = minimize_scalar(objective, bounds=bounds, method="bounded")
        assert objective(a) <= solution.fun * (1 + 1e-12)
    # The condition of optimality, to all digits.
    if name not in SMOOTH:
        return
    a = loss.prox(Z, np.array(step))
    assert_allclose(a + step * loss.derivative(a), Z, rtol=1e-10, atol=1e-10)


def test_steps_of_examples_broadcast():
    loss, steps = make_task_loss("logistic"), np.array([[0.5], [2.0]])
    z = np.random.default_rng(0).normal(size=(2, 3))
    rows = [loss.prox(z[i], steps[i]) for i in range(2)]
    assert_allclose(loss.prox(z, steps), rows, rtol=1e-12)


@pytest.mark.parametrize("name", ["hinge", "absolute", "logistic"])
@pytest.mark.parametrize("eps", [0.01, 0.5, 3.0])
def test_smoothed_losses_are_near_and_smooth(name, eps):
    loss = make_task_loss(name)
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
    assert_allclose(Smoothed(make_task_loss("hinge"), eps).value(1 - v), expected, atol=1e-12)


def test_only_lipschitz_losses_are_smoothed():
    with pytest.raises(InputError, match=r"^loss: got"):
        Smoothed(make_task_loss("squared"), 1.0)
    with pytest.raises(InputError, match=r"^eps: got"):
        Smoothed(make_task_loss("hinge"), 0.0)


def test_unknown_losses_are_refused():
    with pytest.raises(InputError, match=r"^loss: got 'huber'"):
        make_task_loss("huber")


def test_the_exponential_loss_stays_finite():
    loss, far = make_task_loss("exponential"), np.array([-2000.0, 2000.0])
    assert np.isfinite(loss.value(far)).all()
    assert np.isfinite(loss.prox(far, np.array(1.0))).all()
    assert_allclose(loss.prox(far, np.zeros(2)), far)
