"""Several labels an example, several targets, and entries of them that are missing."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from sklearn.model_selection import cross_val_score

from visionshare import (
    ForwardGreedyClassifier,
    ForwardGreedyRegressor,
    GroupFeatureClassifier,
    GroupFeatureRegressor,
    MixedNormClassifier,
    StructuralBoostingClassifier,
    StructuralBoostingRegressor,
)
from visionshare.columns import ArrayColumns
from visionshare.errors import InputError
from visionshare.generators.pixels import Pixels

CLASSIFIERS = [
    GroupFeatureClassifier(alpha=1.0, rounds=10, loss="logistic"),
    StructuralBoostingClassifier(alpha=2.0, rounds=10),
    StructuralBoostingClassifier(alpha=2.0, rounds=10, penalty="l1/linf", solver="adaboost"),
    MixedNormClassifier(2.0, alpha=2.0),
    ForwardGreedyClassifier(5.0, rounds=40),
]
REGRESSORS = [
    GroupFeatureRegressor(alpha=0.5, scaling="none"),
    StructuralBoostingRegressor(alpha=0.5),
    ForwardGreedyRegressor(8.0, rounds=60),
]


@pytest.fixture(scope="module")
def labels():
    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, (200, 12))
    return X, (X[:, :4] + 0.5 * X[:, 4:8] + 0.2 * rng.normal(size=(200, 4)) > 0.1).astype(int)


def _name(learner):
    solver = getattr(learner, "solver", "")
    return f"{type(learner).__name__}-{solver}"


@pytest.mark.parametrize("learner", CLASSIFIERS, ids=_name)
def test_labels_are_told_from_each_other(learner, labels):
    X, Y = labels
    learner.fit(X[:150], Y[:150])
    predicted = learner.predict(X[150:])
    assert predicted.shape == (50, 4)
    assert set(np.unique(predicted)) <= {0, 1}
    assert np.mean(predicted == Y[150:]) > 0.8 > np.mean(Y == 0) + 0.1
    scores, chances = learner.decision_function(X[150:]), learner.predict_proba(X[150:])
    assert_array_equal(scores > 0, predicted)
    assert_allclose(chances, 1 / (1 + np.exp(-scores)))
    assert learner.classes_.tolist() == [0, 1, 2, 3]
    with pytest.raises(InputError, match=r"^y: got '4 labels'"):
        learner.to_classifier(Pixels().fit(X))


@pytest.mark.parametrize("learner", CLASSIFIERS, ids=_name)
def test_two_labels_have_two_scores(learner, labels):
    X, Y = labels
    learner.fit(X, Y[:, :2])
    assert learner.decision_function(X).shape == learner.predict_proba(X).shape == (200, 2)
    learner.fit(X, Y[:, 0])
    assert learner.decision_function(X).shape == (200,)
    assert learner.n_labels_ is None


@pytest.mark.parametrize("learner", CLASSIFIERS, ids=_name)
def test_a_missing_label_is_an_example_that_its_task_does_not_have(learner, labels):
    X, Y = labels
    known = np.random.default_rng(0).random(Y.shape) < 0.6
    missing = np.where(known, Y, np.nan)
    learner.fit(X, missing)
    first = learner.decision_function(X)
    # What a missing entry would have been changes nothing; examples without any entry neither.
    rows = np.append(np.arange(200), 0)
    more = np.vstack([missing, np.full((1, 4), np.nan)])
    learner.fit(X[rows], more)
    assert_allclose(learner.decision_function(X), first, atol=1e-6 * np.abs(first).max())
    assert np.mean((first > 0) == Y) > 0.8


def test_missing_entries_leave_the_optimum_of_what_is_there(labels):
    X, Y = labels
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    known = np.random.default_rng(2).random(Y.shape) < 0.5
    omega = np.random.default_rng(3).uniform(0.5, 2, 200)
    alpha = 3.0
    learner = GroupFeatureClassifier(
        loss="logistic", q=2.0, alpha=alpha, scaling="none", n_entering=12, tol=1e-7, refit_tol=1e-8
    ).fit(X, np.where(known, Y, np.nan), omega)
    W = np.zeros((12, 4))
    W[learner.support_] = learner.coef_.T

    def objective(flat):
        W, b = flat[:48].reshape(12, 4), flat[48:]
        losses = np.logaddexp(0, -(2 * Y - 1) * (X @ W + b)) * known * omega[:, None]
        return losses.sum() + alpha * np.sqrt((W**2).sum(axis=1) + 1e-18).sum()

    at = objective(np.append(W, learner.intercept_))
    assert_allclose(at, learner.history_[-1].value, rtol=1e-9)
    start = np.append(W, learner.intercept_) + 1e-3
    assert minimize(objective, start, method="L-BFGS-B").fun >= at * (1 - 1e-6)


@pytest.mark.parametrize("learner", REGRESSORS, ids=_name)
def test_missing_numbers_of_several_targets(learner):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (150, 8))
    Y = np.column_stack([2 * X[:, 1] - X[:, 3], X[:, 1] + 0.5])
    missing = np.where(rng.random(Y.shape) < 0.7, Y, np.nan)
    predicted = learner.fit(X, missing).predict(X)
    assert predicted.shape == (150, 2)
    assert np.mean((predicted - Y) ** 2) < 0.05
    assert learner.coef_.shape == (2, len(learner.support_))


@pytest.mark.parametrize(
    ("Y", "message"),
    [
        ([[0, 2], [1, 0], [0, 1]], r"^y: got 2.0"),
        ([[0, 1], [1, 1], [0, 1]], r"^y: got 'one value for label 1'"),
        ([[0, np.nan], [1, np.nan], [0, np.nan]], r"^y: got 'column 1 without entries'"),
        ([["a", "b"], ["b", "a"], ["a", "a"]], r"^y: got 'a matrix of other values'"),
    ],
)
def test_other_matrices_are_refused(Y, message):
    X = np.random.default_rng(0).normal(size=(3, 4))
    for learner in (GroupFeatureClassifier(), ForwardGreedyClassifier()):
        with pytest.raises(InputError, match=message):
            learner.fit(X, Y)


@pytest.mark.parametrize("learner", REGRESSORS, ids=_name)
@pytest.mark.parametrize("wrong", [np.nan, np.inf, "a"])
def test_targets_of_columns_are_finite_numbers_too(learner, wrong):
    X = np.random.default_rng(0).normal(size=(30, 4))
    y = X[:, 0].astype(object)
    y[3] = wrong
    with pytest.raises(InputError, match=r"^y: got .*; accepted: finite numbers"):
        learner.fit(ArrayColumns(X), y)
    several = np.column_stack([X[:, 0], X[:, 1]])
    several[3, 1] = np.inf
    with pytest.raises(InputError, match=r"^y: got inf"):
        learner.fit(ArrayColumns(X), several)
    # Of several targets an entry may be missing.
    several[3, 1] = np.nan
    assert np.isfinite(learner.fit(ArrayColumns(X), several).intercept_).all()


@pytest.mark.parametrize("learner", REGRESSORS, ids=_name)
def test_a_target_that_is_known_where_nothing_counts_is_refused(learner):
    X = np.random.default_rng(0).normal(size=(80, 6))
    Y, weights = X[:, :2].copy(), np.ones(80)
    weights[:20] = 0
    Y[20:, 1] = np.nan
    with pytest.raises(InputError, match=r"^sample_weight: got 'column 1 known where"):
        learner.fit(X, Y, weights)
    Y[20, 1] = 0.5
    assert np.isfinite(learner.fit(X, Y, weights).intercept_).all()


def test_what_labels_exclude_is_refused(labels):
    X, Y = labels
    with pytest.raises(InputError, match=r"^class_weight: got 'balanced'"):
        GroupFeatureClassifier(class_weight="balanced").fit(X, Y)


def test_scikit_learn_scores_labels(labels):
    scores = cross_val_score(GroupFeatureClassifier(alpha=1.0, rounds=10), *labels, cv=3)
    assert scores.min() > 0.2
