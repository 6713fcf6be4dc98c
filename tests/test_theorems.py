"""GreedyTL's bounds on fitted models, against the formulas by hand."""

import math

import numpy as np
import pytest

from scripts.reproduce.theorems import (
    approximation,
    selection_gap,
    transfer_gap,
)
from visionshare import GreedyTL
from visionshare.errors import InputError


@pytest.fixture(scope="module")
def transfer():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 6))
    y = np.where(X[:, 1] - X[:, 4] > 0, "new", "old")
    sources = [lambda X: X[:, 1] - X[:, 4] + 0.1, lambda X: X[:, 2] * 3]
    return GreedyTL(rounds=2, sources=sources, alpha=5.0, tol=0).fit(X, y), X, y


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
