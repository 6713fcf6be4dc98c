"""Norms that leave tasks apart: against norms of each task alone and generic minimizers."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize

from visionshare.errors import InputError
from visionshare.penalties import EuclideanNorm, GroupNorm, TaskGroupNorm

STARTS = np.array([0, 1, 3, 6])


def _weights(seed, d=8, T=3):
    return np.random.default_rng(seed).normal(0, 2, (d, T))


@pytest.mark.parametrize("q", [1.3, 2, np.inf])
def test_each_task_has_the_norm_of_one(q):
    W, norm, alone = _weights(0), TaskGroupNorm(q), GroupNorm(q)
    columns = [W[:, [t]] for t in range(3)]
    assert_allclose(norm.value(W, STARTS), sum(alone.value(w, STARTS) for w in columns))
    assert_allclose(norm.norms(W, STARTS), sum(alone.norms(w, STARTS) for w in columns))
    largest = np.max([alone.dual_norms(w, STARTS) for w in columns], axis=0)
    assert_allclose(norm.dual_norms(W, STARTS), largest)
    for step in (0.0, 0.7, np.repeat([0.2, 1.0, 3.0, 0.5], [1, 2, 3, 2])):
        expected = np.hstack([alone.prox(w, STARTS, step) for w in columns])
        assert_allclose(norm.prox(W, STARTS, step), expected)


def test_a_group_stays_at_zero_up_to_its_dual_norm():
    G, norm = _weights(1), TaskGroupNorm()
    dual = norm.dual_norms(G, STARTS)
    steps = np.repeat(dual, [1, 2, 3, 2])
    assert not norm.prox(G, STARTS, steps * (1 + 1e-9)).any()
    assert np.add.reduceat(norm.prox(G, STARTS, steps * 0.99) ** 2, STARTS).sum(axis=1).all()


@pytest.mark.parametrize("steps", [0.5, 3.0, 30.0, np.linspace(0.1, 4, 8), np.linspace(5, 90, 8)])
def test_the_euclidean_prox_is_the_minimizer(steps):
    W, norm = _weights(2), EuclideanNorm()
    U = norm.prox(W, STARTS, steps)
    each = np.broadcast_to(steps, 8)
    for t in range(3):

        def objective(u, t=t):
            return np.linalg.norm(u) + 0.5 * np.sum((u - W[:, t]) ** 2 / each)

        least = minimize(objective, W[:, t] * 0.9, method="BFGS", tol=1e-10).fun
        least = min(least, objective(np.zeros(8)))
        assert objective(U[:, t]) <= least * (1 + 1e-9)
        # w − u is a subgradient's step: of length 1 in the steps' metric, along u.
        if U[:, t].any():
            unit = (W[:, t] - U[:, t]) / each
            assert_allclose(unit, U[:, t] / np.linalg.norm(U[:, t]), rtol=1e-9, atol=1e-12)
    assert_allclose(norm.value(W, STARTS), np.linalg.norm(W, axis=0).sum())


def test_the_zero_is_the_least_where_nothing_pulls_farther():
    W = np.array([[3.0], [4.0]])
    starts = np.array([0, 1])
    assert not EuclideanNorm().prox(W, starts, np.array([5.0, 5.0 + 1e-6])).any()
    assert EuclideanNorm().prox(W, starts, np.array([4.9, 5.0])).all()


def test_other_powers_are_refused():
    with pytest.raises(InputError, match=r"^q: got 0.5"):
        TaskGroupNorm(0.5)
