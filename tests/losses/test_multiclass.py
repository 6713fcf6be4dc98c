"""The loss against its definition, finite differences and the paper's smoothness lemma."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from visionshare.errors import InputError
from visionshare.losses import MulticlassLogistic, checked_margin


def _problem(seed, k=5, n=40, spread=2.0):
    rng = np.random.default_rng(seed)
    return rng.normal(0, spread, (k, n)), rng.integers(k, size=n), rng.random(n)


def _by_definition(Z, y, omega, margin):
    total = 0.0
    for i in range(Z.shape[1]):
        terms = [margin * (c != y[i]) - Z[y[i], i] + Z[c, i] for c in range(len(Z))]
        total += omega[i] * np.log(np.sum(np.exp(terms)))
    return total


@pytest.mark.parametrize("margin", [0.0, 1.0, 2.5])
def test_value_is_the_definition(margin):
    Z, y, omega = _problem(0)
    loss = MulticlassLogistic(margin)
    assert_allclose(loss.value(Z, y, omega), _by_definition(Z, y, omega, margin), rtol=1e-12)
    assert_allclose(loss.residual(Z, y, omega)[0], loss.value(Z, y, omega), rtol=1e-13)


@pytest.mark.parametrize("margin", [0.0, 1.0])
def test_residual_is_the_gradient(margin):
    Z, y, omega = _problem(1, n=8)
    loss = MulticlassLogistic(margin)
    R = loss.residual(Z, y, omega)[1]
    step = 1e-6
    for q, i in np.ndindex(*Z.shape):
        up, down = Z.copy(), Z.copy()
        up[q, i] += step
        down[q, i] -= step
        slope = (loss.value(up, y, omega) - loss.value(down, y, omega)) / (2 * step)
        assert_allclose(R[q, i], slope, atol=1e-8)


def test_residual_is_rho_minus_the_true_class():
    Z, y, omega = _problem(2)
    loss = MulticlassLogistic()
    P = loss.curvature(Z, y)
    assert_allclose(P.sum(axis=0), 1)
    P[y, np.arange(len(y))] -= 1
    assert_allclose(loss.residual(Z, y, omega)[1], omega * P, atol=1e-15)


def test_no_overflow_and_no_lost_digits():
    loss = MulticlassLogistic()
    Z = np.array([[500.0, -500.0, 30.0], [-500.0, 500.0, 0.0]])
    y = np.array([0, 0, 0])
    values = [loss.value(Z[:, [i]], y[[i]], np.ones(1)) for i in range(3)]
    assert values[0] == 0
    assert_allclose(values[1], 1001)
    assert_allclose(values[2], np.exp(-29.0), rtol=1e-9)
    narrow = loss.value(Z[:, [2]].astype(np.float32), y[[2]], np.ones(1))
    assert_allclose(narrow, np.exp(-29.0), rtol=1e-5)


def test_lemma_1_smoothness_in_the_max_norm():
    rng = np.random.default_rng(3)
    loss = MulticlassLogistic()
    for _ in range(300):
        k = int(rng.integers(2, 8))
        u, v = rng.normal(0, 3, (k, 1)), rng.normal(0, rng.choice([0.01, 1, 5]), (k, 1))
        y, one = rng.integers(k, size=1), np.ones(1)
        value, R = loss.residual(u, y, one)
        bound = value + float(np.sum(R * v)) + np.max(np.abs(v)) ** 2
        assert loss.value(u + v, y, one) <= bound + 1e-12


def test_a_margin_of_each_pair_of_classes_is_the_sum_written_out():
    rng = np.random.default_rng(0)
    Z, y, omega = rng.normal(size=(4, 30)), rng.integers(0, 4, 30), rng.uniform(0.5, 2, 30)
    delta = rng.uniform(0, 3, (4, 4))
    loss = MulticlassLogistic(checked_margin(delta))
    expected = 0.0
    for i in range(30):
        terms = [delta[y[i], c] * (c != y[i]) - Z[y[i], i] + Z[c, i] for c in range(4)]
        expected += omega[i] * np.log(np.sum(np.exp(terms)))
    assert_allclose(loss.value(Z, y, omega), expected)
    value, R = loss.residual(Z, y, omega)
    assert_allclose(value, expected)
    step = 1e-6
    for q in range(4):
        ahead, back = Z.copy(), Z.copy()
        ahead[q] += step
        back[q] -= step
        slopes = (loss.losses(ahead, y) - loss.losses(back, y)) / (2 * step)
        assert_allclose(R[q], omega * slopes, atol=1e-7)
    assert_allclose(loss.curvature(Z, y), R / omega + np.eye(4)[:, y])
    equal = MulticlassLogistic(checked_margin(np.full((4, 4), 0.7)))
    assert_allclose(equal.losses(Z, y), MulticlassLogistic(0.7).losses(Z, y))


@pytest.mark.parametrize("given", [-1, [1, 2], [[0, 1]], "large", np.nan, [[0, -1], [1, 0]], True])
def test_other_margins_are_refused(given):
    with pytest.raises(InputError, match=r"^margin: got"):
        checked_margin(given)
