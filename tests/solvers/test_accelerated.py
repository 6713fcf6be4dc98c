"""The refit against scikit-learn, a generic minimizer, and itself on other threads."""

from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize as generic_minimize
from sklearn.linear_model import LogisticRegression

from visionshare.losses import MulticlassLogistic
from visionshare.machine.resources import thread_limit
from visionshare.penalties import make_penalty
from visionshare.solvers import ActiveSet, minimize
from visionshare.solvers.preconditioner import Preconditioner


def _data(m=300, n=6, k=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, n)) * np.logspace(-1, 1, n)
    X[:, 1] += 3 * X[:, 0]
    y = np.argmax(X @ rng.normal(size=(n, k)) + rng.gumbel(size=(m, k)), axis=1)
    return X, y


def _active(X, y, k, dtype=np.float64, omega=None, executor=None):
    omega = np.full(len(y), 1 / len(y)) if omega is None else omega
    active = ActiveSet(y, omega, k, dtype=dtype, executor=executor)
    active.append(X.T)
    return active


@pytest.mark.parametrize(("n", "k"), [(6, 3), (30, 8)])
def test_agrees_with_scikit_learn(n, k):
    X, y = _data(m=600, n=n, k=k)
    X /= X.std(axis=0)
    alpha = 1e-2
    active = _active(X, y, k)
    result = minimize(
        active,
        MulticlassLogistic(0.0),
        make_penalty("ridge", alpha),
        np.zeros((k, n + 1)),
        tol=1e-13,
        max_iter=2000,
    )
    assert result.converged
    peer = LogisticRegression(C=1 / (2 * alpha * len(y)), tol=1e-10, max_iter=10_000).fit(X, y)
    assert_allclose(result.W[:, 1:], peer.coef_, atol=2e-5)
    assert_allclose(
        result.W[:, 0] - result.W[:, 0].mean(), peer.intercept_ - peer.intercept_.mean(), atol=2e-5
    )


@pytest.mark.parametrize("name", ["ridge", "l1", "max"])
def test_reaches_the_minimum_of_a_generic_minimizer(name):
    X, y = _data(m=120)
    k, n = 3, X.shape[1]
    omega = np.random.default_rng(1).random(len(y))
    omega /= omega.sum()
    loss, penalty = MulticlassLogistic(), make_penalty(name, 0.02, 20.0)
    active = _active(X, y, k, omega=omega)

    def objective(w):
        W = w.reshape(k, n + 1)
        value, G = active.gradient(loss, active.scores(W))
        G[:, 1:] += penalty.gradient(W[:, 1:])
        return value + penalty.value(W[:, 1:]), G.ravel()

    start = np.zeros(k * (n + 1))
    peer = generic_minimize(
        objective,
        start,
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": 5000, "maxfun": 20_000, "ftol": 1e-15, "gtol": 1e-9},
    )
    result = minimize(active, loss, penalty, start.reshape(k, -1), tol=1e-12, max_iter=2000)
    assert_allclose(result.value, peer.fun, rtol=1e-7)


def test_gradient_is_the_finite_difference():
    X, y = _data(m=50)
    active, loss = _active(X, y, 3), MulticlassLogistic()
    W = np.random.default_rng(2).normal(size=(3, X.shape[1] + 1))
    _, G = active.gradient(loss, active.scores(W))
    for entry in np.ndindex(*W.shape):
        up, down = W.copy(), W.copy()
        up[entry] += 1e-6
        down[entry] -= 1e-6
        slope = (
            active.value(loss, active.scores(up)) - active.value(loss, active.scores(down))
        ) / 2e-6
        assert_allclose(G[entry], slope, atol=1e-7)


def test_hessian_and_blocks_are_the_second_differences():
    X, y = _data(m=40, n=3)
    active, loss = _active(X, y, 3), MulticlassLogistic()
    W = np.random.default_rng(3).normal(size=(3, 4))
    Z = active.scores(W)
    H = active.hessian(loss, Z)
    for entry in range(W.size):
        up, down = W.copy(), W.copy()
        up.flat[entry] += 1e-5
        down.flat[entry] -= 1e-5
        G_up = active.gradient(loss, active.scores(up))[1]
        G_down = active.gradient(loss, active.scores(down))[1]
        assert_allclose(H[entry], ((G_up - G_down) / 2e-5).ravel(), atol=1e-7)
    blocks = active.curvature_grams(loss, Z, stride=1)
    for q in range(3):
        assert_allclose(blocks[q], H[4 * q : 4 * q + 4, 4 * q : 4 * q + 4], atol=1e-12)


def test_same_bits_for_any_number_of_threads():
    X, y = _data(m=9000, n=25, k=7)
    weights = []
    for jobs in (1, 2):
        with thread_limit(jobs), ThreadPoolExecutor(jobs) as threads:
            active = _active(X, y, 7, np.float32, executor=threads)
            W = np.zeros((7, 26))
            weights.append(minimize(active, MulticlassLogistic(), make_penalty("ridge", 1e-4), W).W)
    assert_array_equal(weights[0], weights[1])


def test_ill_conditioned_columns_converge():
    rng = np.random.default_rng(4)
    X, y = _data(m=3000, n=20, k=5, seed=4)
    X = np.hstack([X, X[:, :10] + 1e-2 * rng.normal(size=(3000, 10))])
    active = _active(X / X.std(axis=0), y, 5, np.float32)
    result = minimize(active, MulticlassLogistic(), make_penalty("ridge", 1e-5), np.zeros((5, 31)))
    assert result.converged


def test_keep_restores_an_earlier_active_set():
    X, y = _data(m=70)
    active = _active(X, y, 3)
    active.append(np.ones((2, 70)))
    active.keep(np.arange(6))
    W = np.random.default_rng(5).normal(size=(3, 7))
    assert_array_equal(active.scores(W), _active(X, y, 3).scores(W))


def test_shared_blocks_are_the_mean_of_the_class_blocks():
    X, y = _data(n=7)
    active = _active(X, y, 3)
    loss = MulticlassLogistic()
    Z = active.scores(np.random.default_rng(2).normal(size=(3, 8)) / 10)
    grams = active.curvature_grams(loss, Z, stride=1)
    diagonals, blocks = active.curvature_blocks(loss, Z, stride=1, width=3)
    assert_allclose(diagonals, np.einsum("qii->qi", grams))
    whole = np.zeros((9, 9))
    whole[:8, :8] = grams.mean(axis=0)
    for b, block in enumerate(blocks):
        entries = slice(3 * b, 3 * b + 3)
        assert_allclose(block, whole[entries, entries], atol=1e-12)


def test_a_metric_of_shared_blocks_reaches_the_same_minimum():
    X, y = _data(m=400, n=60)
    X /= X.std(axis=0)
    loss, penalty = MulticlassLogistic(), make_penalty("ridge", 1e-3)
    start = np.zeros((3, 61))
    expected = minimize(_active(X, y, 3), loss, penalty, start, tol=1e-12, max_iter=500)
    result = minimize(
        _active(X, y, 3), loss, penalty, start, tol=1e-12, max_iter=2000,
        preconditioner=partial(Preconditioner, max_weights=20, block=16),
    )  # fmt: skip
    assert expected.converged
    assert result.converged
    assert_allclose(result.value, expected.value, rtol=1e-9)
    assert_allclose(result.W[:, 1:], expected.W[:, 1:], atol=1e-4)


@pytest.mark.parametrize("penalty", ["l1", "max", "none"])
@pytest.mark.parametrize("seed", range(4))
def test_single_precision_has_the_minimum_of_double(penalty, seed):
    """A constant added to all classes has no curvature, and single precision noise there."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, 90)
    X = rng.normal(size=(90, 4)).astype(np.float32)
    X[np.arange(90), y] += 1.5
    reached = []
    for dtype in (np.float32, np.float64):
        active = _active(X.astype(dtype), y, 3, dtype)
        found = minimize(
            active, MulticlassLogistic(), make_penalty(penalty, 1e-3, 20.0), np.zeros((3, 5))
        )
        assert found.converged
        assert np.abs(found.W[:, 1:]).max() < 50
        reached.append(found.value)
    assert_allclose(*reached, rtol=1e-5)
