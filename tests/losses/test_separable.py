"""Losses of one number against finite differences and generic minimisers."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize_scalar

from visionshare.errors import InputError
from visionshare.losses import TASK_LOSSES, make_task_loss

Z = np.array([-3.0, -0.7, -1e-3, 1e-3, 0.4, 1.0, 2.5, 30.0])


@pytest.mark.parametrize("name", TASK_LOSSES)
def test_derivatives_are_those_of_the_value(name):
    loss, step = make_task_loss(name), 1e-5
    slope = (loss.value(Z + step) - loss.value(Z - step)) / (2 * step)
    assert_allclose(loss.derivative(Z), slope, rtol=1e-5, atol=1e-6)
    bend = (loss.derivative(Z + step) - loss.derivative(Z - step)) / (2 * step)
    assert_allclose(loss.second_derivative(Z), bend, rtol=1e-5, atol=1e-6)
    assert loss.second_derivative(np.linspace(-5, 5, 999)).max() <= loss.curvature + 1e-12


@pytest.mark.parametrize("name", TASK_LOSSES)
@pytest.mark.parametrize("step", [0.01, 1.0, 50.0])
def test_prox_is_the_minimiser(name, step):
    loss = make_task_loss(name)
    for z, a in zip(Z, loss.prox(Z, np.array(step)), strict=True):

        def objective(t, z=z):
            return step * float(loss.value(np.array(t))) + 0.5 * (t - z) ** 2

        bounds = (z - step * 70 - 1, z + 1)
        found = minimize_scalar(objective, bounds=bounds, method="bounded")
        assert objective(a) <= found.fun * (1 + 1e-12)
    # The condition of optimality, to all digits.
    a = loss.prox(Z, np.array(step))
    assert_allclose(a + step * loss.derivative(a), Z, rtol=1e-10, atol=1e-10)


def test_steps_of_examples_broadcast():
    loss, steps = make_task_loss("logistic"), np.array([[0.5], [2.0]])
    z = np.random.default_rng(0).normal(size=(2, 3))
    rows = [loss.prox(z[i], steps[i]) for i in range(2)]
    assert_allclose(loss.prox(z, steps), rows, rtol=1e-12)


def test_unknown_losses_are_refused():
    with pytest.raises(InputError, match=r"^loss: got 'hinge'"):
        make_task_loss("hinge")
