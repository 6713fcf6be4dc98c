"""Backward steps: removal costs against refits, the path they leave, and resumes."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from visionshare.columns import ArrayColumns
from visionshare.learners import ShareBoost
from visionshare.learners.backward import removals
from visionshare.losses import MulticlassLogistic
from visionshare.penalties import make_penalty
from visionshare.solvers import ActiveSet, minimize


def _problem(m=400, d=30, k=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, 8)) @ rng.normal(size=(8, d)) + rng.normal(size=(m, d))
    y = np.argmax(X[:, :k] + 0.7 * rng.normal(size=(m, k)), axis=1)
    return X, y


def _fitted(X, y, columns, k=3):
    active = ActiveSet(y, np.full(len(y), 1 / len(y)), k, dtype=np.float64)
    active.append(X[:, columns].T)
    loss, penalty = MulticlassLogistic(), make_penalty("ridge", 1e-2, 100.0)
    start = np.zeros((k, len(columns) + 1))
    return active, loss, penalty, minimize(active, loss, penalty, start, 1e-12, 2000)


def test_the_cheapest_removal_is_the_one_that_a_refit_finds():
    X, y = _problem()
    columns = np.arange(10)
    active, loss, penalty, whole = _fitted(X, y, columns)
    entries = [np.array([j + 1]) for j in range(10)]
    costs, moved = removals(active, loss, penalty, whole.W, entries)
    true = np.array([
        _fitted(X, y, np.delete(columns, j))[3].value - whole.value for j in range(10)
    ])  # fmt: skip
    assert np.argmin(costs) == np.argmin(true)
    # The class blocks leave out what classes share: the order is kept, the size not quite.
    assert np.corrcoef(np.log(costs), np.log(true))[0, 1] > 0.95
    # And where the weights would go is nearer to the minimum than leaving them where they are.
    j = int(np.argmin(true))
    rest, _, _, best = _fitted(X, y, np.delete(columns, j))
    kept = np.delete(np.arange(11), j + 1)
    values = [
        rest.value(loss, rest.scores(W)) + penalty.value(W[:, 1:])
        for W in (best.W, moved[:, kept], whole.W[:, kept])
    ]
    assert values[0] <= values[1] < values[2]
    assert_array_equal(moved[:, j + 1], 0)


def test_groups_cost_as_one():
    X, y = _problem()
    active, loss, penalty, whole = _fitted(X, y, np.arange(9))
    groups = [np.array([1, 4, 7]), np.array([2, 5, 8]), np.array([3, 6, 9])]
    costs, _ = removals(active, loss, penalty, whole.W, groups)
    true = [_fitted(X, y, np.delete(np.arange(9), J - 1))[3].value - whole.value for J in groups]
    assert np.argsort(costs).tolist() == np.argsort(true).tolist()


def test_the_path_is_nested_and_each_prefix_is_a_minimum():
    X, y = _problem()
    model = ShareBoost(rounds=6, n_backward=8, alpha=1e-3, refit_tol=1e-10).fit(X, y)
    assert [s.round for s in model.path_] == [1, 2, 3, 4, 5, 6]
    assert len(set(model.support_.tolist())) == 6
    for step in model.path_:
        alone = ShareBoost(rounds=99, alpha=1e-3, refit_tol=1e-10)
        alone.fit(X[:, model.support_[: step.n_features]], y)
        order = np.argsort(alone.support_)
        assert len(order) == step.n_features
        assert_allclose(step.weights, alone.coef_[:, order], atol=2e-3)
        assert_allclose(step.loss, alone.path_[-1].loss, rtol=1e-5)
    assert_allclose(model.coef_, model.path_[-1].weights, rtol=1e-5)


def test_a_feature_that_others_make_useless_leaves():
    # Column 0 is the best alone; columns 1 and 2 together say all that it says, and more.
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 6))
    X[:, 0] = X[:, 1] + X[:, 2] + 0.5 * rng.normal(size=600)
    y = (X[:, 1] + X[:, 2] + 0.3 * rng.normal(size=600) > 0).astype(int)
    assert ShareBoost(rounds=2).fit(X, y).support_[0] == 0
    assert set(ShareBoost(rounds=2, n_backward=2).fit(X, y).support_.tolist()) == {1, 2}


def test_groups_leave_together():
    X, y = _problem()
    columns = ArrayColumns(X, dtype="float64", groups=np.arange(30) % 10)
    model = ShareBoost(rounds=3, n_backward=3).fit(columns, y)
    assert [s.n_features for s in model.path_] == [3, 6, 9]
    for step in model.path_:
        assert len({j % 10 for j in step.feature}) == 1


@pytest.mark.parametrize("first", [2, 7])
def test_resume_and_threads_give_the_same_bits(tmp_path, first):
    X, y = _problem()
    whole = ShareBoost(rounds=4, n_backward=6).fit(X, y)
    settings = {"checkpoint": tmp_path / "rounds"}
    ShareBoost(rounds=first, **settings).fit(X, y)
    resumed = ShareBoost(rounds=4, n_backward=6, n_jobs=2, **settings).fit(X, y)
    assert_array_equal(resumed.support_, whole.support_)
    assert_array_equal(resumed.coef_, whole.coef_)
    assert resumed.temperature_ == whole.temperature_


def test_nothing_leaves_when_the_forward_rounds_stop_early():
    X, y = _problem(d=4)
    model = ShareBoost(rounds=6, n_backward=6).fit(X, y)
    forward = ShareBoost(rounds=6).fit(X, y)
    assert_array_equal(model.coef_, forward.coef_)
