"""The multinomial loss of tasks against its definition and finite differences."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from visionshare.errors import InputError
from visionshare.losses import Multinomial


def test_values_and_derivatives():
    rng = np.random.default_rng(0)
    z, y = rng.normal(0, 2, (12, 4)), rng.integers(0, 4, 12)
    loss = Multinomial(y)
    expected = np.log(np.exp(z).sum(axis=1)) - z[np.arange(12), y]
    assert_allclose(loss.value(z)[:, 0], expected)
    step = 1e-6
    for q in range(4):
        up, down = z.copy(), z.copy()
        up[:, q] += step
        down[:, q] -= step
        slope = (loss.value(up) - loss.value(down))[:, 0] / (2 * step)
        assert_allclose(loss.derivative(z)[:, q], slope, atol=1e-7)
        bend = (loss.derivative(up) - loss.derivative(down))[:, q] / (2 * step)
        assert_allclose(loss.second_derivative(z)[:, q], bend, atol=1e-7)
    assert loss.second_derivative(z).max() <= loss.curvature


def test_it_has_no_proximal_operator():
    with pytest.raises(InputError, match=r"^solver: got"):
        Multinomial(np.array([0])).prox(np.zeros((1, 2)), np.array(1.0))
