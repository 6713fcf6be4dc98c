"""Penalties against finite differences and the norms they smooth."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from visionshare.errors import InputError
from visionshare.penalties import PENALTIES, make_penalty


@pytest.fixture
def W():
    return np.random.default_rng(0).normal(size=(4, 6))


@pytest.mark.parametrize("name", PENALTIES)
def test_gradient_is_the_derivative(name, W):
    penalty = make_penalty(name, 0.3, beta=5.0)
    G, step = penalty.gradient(W), 1e-6
    for entry in np.ndindex(*W.shape):
        up, down = W.copy(), W.copy()
        up[entry] += step
        down[entry] -= step
        slope = (penalty.value(up) - penalty.value(down)) / (2 * step)
        assert_allclose(G[entry], slope, atol=1e-8)


@pytest.mark.parametrize("name", PENALTIES)
def test_curvature_bounds_the_diagonal_of_the_hessian(name, W):
    penalty = make_penalty(name, 0.3, beta=5.0)
    C, step = penalty.curvature(W), 1e-5
    for entry in np.ndindex(*W.shape):
        up, down = W.copy(), W.copy()
        up[entry] += step
        down[entry] -= step
        bend = (penalty.gradient(up)[entry] - penalty.gradient(down)[entry]) / (2 * step)
        assert bend <= C[entry] + 1e-7


def test_sharp_penalties_are_the_norms(W):
    assert_allclose(make_penalty("l1", 2.0, 1e6).value(W), 2 * np.abs(W).sum(), rtol=1e-5)
    assert_allclose(
        make_penalty("max", 2.0, 1e6).value(W), 2 * np.abs(W).max(axis=0).sum(), rtol=1e-5
    )
    assert_allclose(make_penalty("ridge", 2.0).value(W), 2 * (W**2).sum())
    assert make_penalty("none", 2.0).value(W) == 0


@pytest.mark.parametrize("name", ["l1", "max"])
def test_large_weights_do_not_overflow(name):
    penalty = make_penalty(name, 1.0, 100.0)
    W = np.array([[1e6, -1e6], [3.0, 0.0]])
    assert np.isfinite(penalty.value(W))
    assert np.isfinite(penalty.gradient(W)).all()
    assert np.isfinite(penalty.curvature(W)).all()


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("lasso", 1.0), "penalty"),
        (("l1", -1.0), "alpha"),
        (("l1", 1.0, 0.0), "beta"),
        (("ridge", float("nan")), "alpha"),
    ],
)
def test_bad_arguments_are_named(arguments, named):
    with pytest.raises(InputError, match=f"^{named}: got"):
        make_penalty(*arguments)
