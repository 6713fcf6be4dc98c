"""Losses of one number against finite differences and generic minimizers."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from visionshare.errors import InputError
from visionshare.losses import make_task_loss

Z = np.array([-3.0, -0.7, -1e-3, 1e-3, 0.4, 1.0, 2.5, 30.0])


SMOOTH = {
    name: make_task_loss(name)
    for name in ("squared", "squared_hinge", "logistic", "exponential", "insensitive")
}


@pytest.mark.parametrize("name", SMOOTH)
def test_derivatives_are_those_of_the_value(name):
    loss, step = SMOOTH[name], 1e-5
    slope = (loss.value(Z + step) - loss.value(Z - step)) / (2 * step)
    assert_allclose(loss.derivative(Z), slope, rtol=1e-5, atol=1e-6)
    bend = (loss.derivative(Z + step) - loss.derivative(Z - step)) / (2 * step)
    assert_allclose(loss.second_derivative(Z), bend, rtol=1e-5, atol=1e-6)
    assert loss.second_derivative(np.linspace(-5, 5, 999)).max() <= loss.curvature + 1e-12


def test_unknown_losses_are_refused():
    with pytest.raises(InputError, match=r"^loss: got 'huber'"):
        make_task_loss("huber")


def test_the_exponential_loss_stays_finite():
    loss, far = make_task_loss("exponential"), np.array([-2000.0, 2000.0])
    assert np.isfinite(loss.value(far)).all()
