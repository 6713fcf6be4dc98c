"""The papers' bounds on fitted models, against the formulas by hand."""

import math

import numpy as np
import pytest

from scripts.reproduce.theorems import (
    approximation,
    generalization_gap,
    selection_gap,
    shareboost_features,
    shareboost_rounds,
    transfer_gap,
)
from visionshare import GreedyTL, ShareBoost
from visionshare.errors import InputError


@pytest.fixture(scope="module")
def transfer():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 6))
    y = np.where(X[:, 1] - X[:, 4] > 0, "new", "old")
    sources = [lambda X: X[:, 1] - X[:, 4] + 0.1, lambda X: X[:, 2] * 3]
    return GreedyTL(rounds=2, sources=sources, alpha=5.0, tol=0).fit(X, y), X, y


def test_shareboost_pays_for_features_and_the_logarithm_of_the_pool():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 12)), np.arange(200) % 4
    model = ShareBoost(rounds=3).fit(X, y)
    T, k, m, d, delta = 3, 4, 200, 12, 0.1
    expected = math.sqrt(
        (T * k * math.log(T * k) * math.log(k) + T * math.log(d) + math.log(1 / delta)) / m
    )
    assert generalization_gap(model, m, d, delta) == pytest.approx(expected)
    more = generalization_gap(model, m, d**2, delta) ** 2 - expected**2
    assert more == pytest.approx(T * math.log(d) / m)


@pytest.mark.parametrize("wrong", [{"examples": 0}, {"columns": 0}, {"delta": 1.0}])
def test_wrong_numbers_are_refused(wrong):
    model = ShareBoost(rounds=1).fit(np.eye(8)[:, :3], np.arange(8) % 2)
    with pytest.raises(InputError, match=f"^{next(iter(wrong))}"):
        generalization_gap(model, **{"examples": 8, "columns": 3, **wrong})


def test_few_bounded_weights_need_the_rounds_of_their_norm():
    weights = np.zeros((4, 9))
    weights[1, :3] = [2, -2, 2]
    assert shareboost_rounds(weights, 0.5) == 4 * 6**2 / 0.5
    assert shareboost_features(3, 2.0, 0.5) == shareboost_rounds(weights, 0.5)
    with pytest.raises(InputError, match=r"^epsilon"):
        shareboost_rounds(weights, math.nan)
    with pytest.raises(InputError, match=r"^n_features"):
        shareboost_features(0, 2.0, 0.5)


def test_good_sources_make_the_slow_term_small(transfer):
    model, X, y = transfer
    assert 6 in model.support_
    scores = np.column_stack([source(X) for source in model.sources])
    scores = (scores - scores.mean(axis=0)) / scores.std(axis=0)
    chosen = [j - 6 for j in model.support_ if j >= 6]
    weights = model.scaled_coef_[0][model.support_ >= 6]
    # The second class is the positive one.
    signs = np.where(y == "old", 1.0, -1.0)
    risk = np.mean((np.clip(scores[:, chosen] @ weights, -1, 1) - signs) ** 2)
    c = (1 + len(chosen) * np.max(scores[:, chosen] ** 2)) / 5.0
    assert transfer_gap(model, X, y) == pytest.approx(c + math.sqrt(risk * c))
    wrong = np.where(y == "old", "new", "old")
    assert transfer_gap(model, X, wrong) > transfer_gap(model, X, y)


def test_the_approximation_is_that_of_correlations(transfer):
    model, X, _ = transfer
    table = np.column_stack([X, *(source(X) for source in model.sources)])
    correlations = np.abs(np.corrcoef(table.T) - np.eye(8))
    found = approximation(model, X)
    assert found.correlation == pytest.approx(correlations.max())
    assert found.allowed == pytest.approx((1 + 5.0 / 40) / 12)
    assert found.epsilon == pytest.approx(16 * 9 * correlations.max() / (1 + 5.0 / 40))
    # The second source is a multiple of a feature.
    assert not found.holds


def test_of_many_classes_there_is_no_bound():
    X, y = np.eye(9)[:, :4], np.arange(9) % 3
    model = GreedyTL(rounds=1).fit(X, y)
    with pytest.raises(InputError, match="two classes"):
        approximation(model, X)


def _good(X):
    return np.sign(X[:, 0] * X[:, 1]) * np.where(X[:, 2] > 1.64, -1, 1)


def _bad(X):
    return np.sign(X[:, 2] * X[:, 3])


def test_one_good_source_makes_the_gap_of_selection_small():
    m = 4000
    X = np.random.default_rng(0).normal(size=(m, 4))
    y = X[:, 0] * X[:, 1] > 0
    signs = 2.0 * y - 1
    model = GreedyTL(1, alpha=40.0, sources=[_bad, _good]).fit(X, y)
    found = approximation(model, X)
    assert found.holds
    scores = np.column_stack([_good(X), _bad(X)])
    scores = (scores - scores.mean(axis=0)) / scores.std(axis=0)
    risk = np.mean((np.clip(scores[:, 0], -1, 1) - signs) ** 2) + 40.0 / m
    c = (1 + np.max(scores**2)) / 40.0
    expected = (1 + found.epsilon) * risk + c + math.sqrt(risk * c)
    assert selection_gap(model, X, y) == pytest.approx(expected)
    useless = GreedyTL(1, alpha=40.0, sources=[_bad]).fit(X, y)
    assert selection_gap(useless, X, y) > 2 * expected


def test_correlated_columns_have_no_bound_of_selection(transfer):
    model, X, y = transfer
    assert selection_gap(model, X, y) == math.inf
