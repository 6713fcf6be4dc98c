"""What a teacher says, as a loss."""

import numpy as np
import pytest

from visionshare.errors import InputError
from visionshare.losses import SoftTargets


@pytest.mark.parametrize("temperature", [0.5, 1.0, 4.0])
def test_the_derivative_is_that_of_the_value(temperature):
    rng, step = np.random.default_rng(0), 1e-6
    loss, Z = SoftTargets(temperature), rng.normal(0, 3, (4, 5))
    P, omega = loss.softmax(rng.normal(0, 3, (4, 5))), rng.uniform(0.1, 1, 5)
    value, R = loss.residual(Z, P, omega)
    shares = np.exp(Z / temperature) / np.exp(Z / temperature).sum(axis=0)
    expected = temperature**2 * np.sum(omega * np.sum(P * np.log(P / shares), axis=0))
    assert value == pytest.approx(expected, rel=1e-12)
    for c, i in np.ndindex(Z.shape):
        moved = [Z.copy(), Z.copy()]
        moved[0][c, i] += step
        moved[1][c, i] -= step
        up, down = (loss.residual(M, P, omega)[0] for M in moved)
        assert R[c, i] == pytest.approx((up - down) / (2 * step), rel=1e-5, abs=1e-9)


def test_large_scores_and_certain_teachers_stay_finite():
    loss = SoftTargets(1.0)
    Z = np.array([[1e4, -1e4], [0.0, 0.0]], np.float32)
    P = loss.softmax(Z[:, ::-1].copy())
    value, R = loss.residual(Z, P, np.full(2, 0.5))
    assert np.isfinite(value)
    assert R.dtype == np.float32
    np.testing.assert_allclose(R, [[0.5, -0.5], [-0.5, 0.5]])
    assert loss.residual(Z, loss.softmax(Z), np.ones(2))[0] == pytest.approx(0)


def test_warm_answers_ask_for_the_teachers_scores():
    rng = np.random.default_rng(1)
    Z, T = rng.normal(size=(3, 6)), rng.normal(size=(3, 6))
    loss = SoftTargets(1e4)
    _, R = loss.residual(Z, loss.softmax(T), np.ones(6))
    expected = ((Z - Z.mean(axis=0)) - (T - T.mean(axis=0))) / 3
    np.testing.assert_allclose(R, expected, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("temperature", [0.0, -1.0, float("inf"), float("nan")])
def test_temperatures_are_checked(temperature):
    with pytest.raises(InputError, match=r"^temperature"):
        SoftTargets(temperature)
