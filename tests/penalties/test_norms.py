"""Mixed norms: values, dual norms and proximal operators against generic minimizers."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize

from visionshare.errors import InputError
from visionshare.penalties import GroupNorm, HalfSquares, make_norm

STARTS = np.array([0, 1, 3, 6])
QS = [1, 2, np.inf]


def _weights(seed, d=8, T=3):
    return np.random.default_rng(seed).normal(0, 2, (d, T))


def _blocks(W):
    return [W[a:b].ravel() for a, b in zip(STARTS, [*STARTS[1:], len(W)], strict=True)]


@pytest.mark.parametrize("q", QS)
def test_norms_are_those_of_numpy(q):
    W, norm = _weights(0), GroupNorm(q)
    assert_allclose(norm.norms(W, STARTS), [np.linalg.norm(b, q) for b in _blocks(W)])
    dual = {1: np.inf, 2: 2, np.inf: 1}[q]
    assert_allclose(norm.dual_norms(W, STARTS), [np.linalg.norm(b, dual) for b in _blocks(W)])
    assert_allclose(norm.value(W, STARTS), sum(np.linalg.norm(b, q) for b in _blocks(W)))


@pytest.mark.parametrize("q", QS)
def test_huge_and_tiny_weights_do_not_overflow(q):
    norm = GroupNorm(q)
    for size in (1e-100, 1e100):
        W = np.full((2, 2), size)
        assert_allclose(norm.norms(W, np.array([0])) / size, [np.linalg.norm(np.ones(4), q)])


@pytest.mark.parametrize("q", QS)
@pytest.mark.parametrize("step", [0.0, 0.3, 2.0, 1e3])
def test_prox_satisfies_the_condition_of_optimality(q, step):
    # u = prox(w) iff w − u is step times a subgradient: ‖w − u‖_q' ≤ step, and <w − u, u> =
    # step ‖u‖_q where u is not zero.
    W, norm = _weights(1), GroupNorm(q)
    U = norm.prox(W, STARTS, step)
    rest = W - U
    assert (norm.dual_norms(rest, STARTS) <= step * (1 + 1e-9) + 1e-12).all()
    for r, u in zip(_blocks(rest), _blocks(U), strict=True):
        assert_allclose(r @ u, step * np.linalg.norm(u, q), rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("q", [1, 2, np.inf])
def test_prox_is_the_minimizer(q):
    w = _weights(2, 1, 4)
    u = GroupNorm(q).prox(w, np.array([0]), 0.8).ravel()

    def objective(v):
        return 0.8 * np.linalg.norm(v, q) + 0.5 * np.sum((v - w.ravel()) ** 2)

    solution = minimize(objective, u + 0.01, method="Nelder-Mead", options={"xatol": 1e-9})
    assert objective(u) <= solution.fun + 1e-9


@pytest.mark.parametrize("q", [np.int64(2), np.float32(2), np.float64(2), 2])
def test_exponents_may_be_numbers_of_numpy(q):
    assert GroupNorm(q) == GroupNorm(2.0)
    assert isinstance(GroupNorm(q).q, (int, float))


def test_a_step_may_be_given_for_each_row():
    W, steps = _weights(3), np.repeat([0.1, 0.5, 1.0, 2.0], [1, 2, 3, 2])
    for q in QS:
        norm = GroupNorm(q)
        whole = norm.prox(W, STARTS, steps)
        for g, (a, b) in enumerate(zip(STARTS, [*STARTS[1:], 8], strict=True)):
            alone = norm.prox(W[a:b], np.array([0]), float(steps[STARTS[g]]))
            assert_allclose(whole[a:b], alone, rtol=1e-9, atol=1e-12)


def test_nothing_stays_nothing():
    for q in QS:
        assert GroupNorm(q).prox(np.zeros((0, 2)), np.empty(0, np.int64), 1.0).shape == (0, 2)
        assert not GroupNorm(q).prox(np.zeros((8, 2)), STARTS, 1.0).any()


@pytest.mark.parametrize("q", [0.5, 3, -1, float("nan"), "two", True])
def test_wrong_exponents_are_refused(q):
    with pytest.raises(InputError, match=r"^q: got"):
        GroupNorm(q)


def test_half_the_squares():
    rng = np.random.default_rng(4)
    V, starts = rng.normal(size=(5, 3)), np.array([0, 2])
    for step in (0.3, np.array([0.1, 0.1, 2.0, 2.0, 2.0])):
        U = HalfSquares().prox(V, starts, step)
        # Where step·U + U − V is zero.
        assert_allclose(np.broadcast_to(step, 5)[:, None] * U + U - V, 0, atol=1e-14)
    assert_allclose(HalfSquares().norms(V, starts).sum(), HalfSquares().value(V, starts))
    assert HalfSquares().least(3.0) == 0
    assert GroupNorm(2).least(3.0) == 3.0
    G = rng.normal(size=(5, 3))
    assert_allclose(HalfSquares().distance(-G / 3, G, starts, 3.0), 0, atol=1e-15)


def test_penalties_have_names():
    assert make_norm("l1/linf") == GroupNorm(float("inf"))
    with pytest.raises(InputError, match=r"^penalty: got"):
        make_norm("l3")
