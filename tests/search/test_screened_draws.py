"""Draws that are screened on a sample of the examples before they are scored on all of them."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from visionshare import GaborBank, GroupFeatureClassifier, RandomFourier, ShareBoost
from visionshare.errors import InputError
from visionshare.generators.draws import Draws
from visionshare.search import Sampled
from visionshare.search.per_cost import PerCost
from visionshare.search.pool import Pool, SearchState
from visionshare.search.screened import sample_by_residual, weighted_sample
from visionshare.store import DrawnColumns


class _Norm:
    """The norm of the gradient, as a criterion."""

    def score(self, pool, state, numbers):
        ids, _ = pool.members(numbers)
        G = pool.columns.correlate(state.residual, ids)
        return np.sqrt((G**2).reshape(len(numbers), -1).sum(axis=1))


def _vectors(m=400, p=5, seed=0):
    X = np.random.default_rng(seed).normal(size=(m, p))
    return X, np.cos(1.3 * X[:, 0] - 0.4 * X[:, 1]) > 0.2


def _columns(kind="fourier", n=40, n_jobs=1, scaling="unit_norm", rounds=40):
    X, _ = _vectors()
    if kind == "gabor":
        X = np.random.default_rng(0).normal(size=(400, 9, 9))
        family = GaborBank().fit(X)
    else:
        family = RandomFourier().fit(X)
    columns = DrawnColumns(Draws(family, n=n, rounds=rounds), X, n_jobs)
    columns.fit_scaling(scaling)
    return columns


def _state(number=2, m=400, k=2):
    rng = np.random.default_rng(3)
    # A few examples have most of the residual.
    R = rng.normal(size=(m, k)) * rng.random((m, 1)) ** 4
    return SearchState(R - R.mean(axis=0), number, np.empty(0, np.int64))


def test_weighted_samples_have_no_bias():
    X, R = _vectors()[0], _state().residual
    exact, estimates = X.T @ R, []
    for seed in range(2000):
        rows, inverse = sample_by_residual(R, 40, (seed,))
        estimates.append(X[rows].T @ weighted_sample(R, rows, inverse, centered=True))
    error = np.std(estimates, axis=0) / np.sqrt(len(estimates))
    assert (np.abs(np.mean(estimates, axis=0) - exact) < 4 * error).all()
    # By the residual the error is smaller than that of examples that are drawn alike.
    rng = np.random.default_rng(0)
    alike = [10 * X[rows].T @ R[rows] for rows in (rng.random((2000, 400)) < 0.1)]
    assert (np.std(estimates, axis=0) < 0.8 * np.std(alike, axis=0)).all()


@pytest.mark.parametrize("scaling", ["unit_norm", "unit_variance", "none"])
@pytest.mark.parametrize("kind", ["fourier", "gabor"])
def test_the_estimate_on_all_examples_is_exact(kind, scaling):
    columns, state = _columns(kind, scaling=scaling), _state()
    pool, numbers = Pool(columns), np.array([41, 47, 70])
    estimate = Sampled(keep=1, fraction=1.0).estimate(pool, state, numbers)
    assert_allclose(estimate, _Norm().score(pool, state, numbers), rtol=1e-4)
    # On a part of them it goes with the truth.
    numbers = columns.draws.of_round(2)
    estimate = Sampled(keep=1, fraction=0.3).estimate(pool, state, numbers)
    exact = _Norm().score(pool, state, numbers)
    assert np.corrcoef(estimate, exact)[0, 1] > 0.4


@pytest.mark.parametrize("kind", ["fourier", "gabor"])
@pytest.mark.parametrize("n", [1, 3, 7])
def test_the_best_of_those_that_are_scored_enters(kind, n):
    columns, state, search = _columns(kind), _state(), Sampled(keep=5, fraction=0.2)
    pool, numbers = Pool(columns), columns.draws.of_round(2)
    kept = search.screen(pool, state, _Norm(), numbers, n)
    estimate = search.estimate(pool, state, numbers)
    assert_array_equal(kept, np.sort(numbers[np.argsort(-estimate)[: max(5, n)]]))
    found = search.best(pool, state, _Norm(), np.zeros(pool.size, bool), n)
    scores = _Norm().score(pool, state, kept)
    order = np.argsort(-scores)[:n]
    assert [candidate.number for candidate in found] == kept[order].tolist()
    assert_allclose([candidate.score for candidate in found], scores[order])


def test_all_are_scored_where_as_many_are_kept():
    columns, state = _columns(n=6), _state()
    pool = Pool(columns)
    every = Sampled().best(pool, state, _Norm(), np.zeros(pool.size, bool), 2)
    for keep in (6, 50):
        kept = Sampled(keep=keep).best(pool, state, _Norm(), np.zeros(pool.size, bool), 2)
        assert [c.number for c in kept] == [c.number for c in every]


def test_a_cost_divides_the_estimate():
    columns, state, numbers = _columns("gabor"), _state(), np.arange(40, 80)
    search, criterion = Sampled(keep=4, fraction=0.5), PerCost(_Norm())
    pool = Pool(columns)
    by_cost = search.estimate(pool, state, numbers) / criterion.costs(pool, state, numbers)
    kept = search.screen(pool, state, criterion, numbers)
    assert_array_equal(kept, np.sort(numbers[np.argsort(-by_cost)[:4]]))


@pytest.mark.parametrize("learner", [
    GroupFeatureClassifier(alpha=0.5, rounds=5, loss="logistic"), ShareBoost(5)
], ids=lambda learner: type(learner).__name__)  # fmt: skip
def test_many_screened_draws_are_better_than_few(learner):
    _, y = _vectors()

    def fitted(n, n_jobs=1, **options):
        learner.set_params(search="sampled", search_options=options, n_jobs=n_jobs)
        columns = _columns(n=n, n_jobs=n_jobs, rounds=10)
        return learner.fit(columns, y), columns

    def loss(model, columns):
        return np.mean(np.logaddexp(0, -(2.0 * y - 1) * model.decision_function(columns)))

    few = loss(*fitted(4))
    options = {"keep": 4, "fraction": 0.2, "steps": 2}
    model, columns = fitted(40, **options)
    support, coef = model.support_, model.coef_
    assert loss(model, columns) < 0.9 * few
    again, _ = fitted(40, n_jobs=2, **options)
    assert_array_equal(again.support_, support)
    assert_array_equal(again.coef_, coef)


def test_options_are_checked():
    for options in ({"keep": 0}, {"fraction": 0}, {"fraction": 1.5}, {"random_state": -1}):
        with pytest.raises(InputError, match=f"^{next(iter(options))}: got"):
            Sampled(**options)
