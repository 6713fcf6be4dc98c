"""Temperatures: the one of the least log loss, and a finite one where all examples are right."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax

from visionshare.learners.calibration import fit_temperature, row_folds, with_an_error


def _log_loss(temperature, scores, y, omega):
    logs = log_softmax(scores / temperature, axis=1)
    return -np.sum(omega * logs[np.arange(len(y)), y]) / omega.sum()


@pytest.mark.parametrize("scale", [0.5, 30.0])
def test_it_has_the_least_log_loss(scale):
    rng = np.random.default_rng(0)
    y, omega = rng.integers(0, 3, 200), rng.random(200)
    scores = scale * (rng.normal(size=(200, 3)) + 1.5 * np.eye(3)[y])
    temperature = fit_temperature(scores, y, omega)
    best = minimize_scalar(
        lambda t: _log_loss(np.exp(t), scores, y, omega), bounds=(-6, 6), method="bounded"
    )
    assert np.log(temperature) == pytest.approx(best.x, abs=1e-3)


def test_examples_that_are_all_right_do_not_make_it_sure():
    scores, y = np.array([[4.0, 0.0], [0.0, 1.0], [3.0, 0.0]]), np.array([0, 1, 0])
    assert fit_temperature(scores, y, np.ones(3)) < 0.1
    more, true = with_an_error(scores, y)
    np.testing.assert_array_equal(more, [*scores.tolist(), [1.0, 0.0]])
    np.testing.assert_array_equal(true, [0, 1, 0, 1])
    assert fit_temperature(more, true, np.ones(4)) > 0.3
    # One that is wrong is enough.
    again, same = with_an_error(more, true)
    assert again is more
    assert same is true


def test_zeros_of_either_sign_share_a_fold():
    rows = np.random.default_rng(0).normal(size=(50, 3))
    rows[:, 1] = 0.0
    other = rows * [1, -1, 1]
    assert np.signbit(other[:, 1]).all()
    np.testing.assert_array_equal(row_folds(rows, 3), row_folds(other, 3))
    assert len(set(row_folds(rows, 3))) == 3
