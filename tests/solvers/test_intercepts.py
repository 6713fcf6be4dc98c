"""Intercepts alone, against a search for the least of one number."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize_scalar

from visionshare.losses import Insensitive
from visionshare.penalties import GroupNorm
from visionshare.solvers import TaskProblem, TaskTargets, intercepts_alone


@pytest.mark.parametrize("shift", [0.0, -1e4])
@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3, 1e6])
def test_they_are_the_best_of_each_task(size, shift):
    rng = np.random.default_rng(0)
    Y = size * rng.exponential(size=(41, 3)) + shift
    Y[:, 2] = shift
    omega = rng.uniform(0.5, 2, (41, 3)) * (rng.random((41, 3)) < 0.7)
    loss = Insensitive(0.1)
    targets = TaskTargets(np.ones((41, 3)), Y, omega)
    found = intercepts_alone(TaskProblem(targets, loss, GroupNorm(1), 1.0))
    assert found.W.shape == (0, 3)
    for t in range(3):

        def value(b, t=t):
            return np.dot(omega[:, t], loss.value(Y[:, t] - b))

        bounds = (Y[:, t].min() - 1, Y[:, t].max() + 1)
        best = minimize_scalar(value, bounds=bounds, method="bounded", options={"xatol": 1e-9})
        assert value(found.b[t]) <= best.fun * (1 + 1e-12)
        slope = np.dot(omega[:, t], loss.derivative(Y[:, t] - found.b[t]))
        assert_allclose(slope, 0, atol=1e-6)
