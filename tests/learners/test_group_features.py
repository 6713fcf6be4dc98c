"""GrFL: optimality, the loop, tasks, scikit-learn's checks and the compact classifier."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_diabetes, load_digits
from sklearn.linear_model import Lasso, LogisticRegression
from sklearn.utils.estimator_checks import check_estimator

from visionshare import (
    GaborBank,
    GroupFeatureClassifier,
    GroupFeatureRegressor,
    Pixels,
    RandomFourier,
    load,
)
from visionshare.columns import ArrayColumns
from visionshare.errors import InputError
from visionshare.generators.draws import Draws
from visionshare.store import DrawnColumns
from visionshare.testing import check_learner


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:300], y[:300], X[300:], y[300:]


def test_the_classifier_is_a_learner():
    check_learner(GroupFeatureClassifier(alpha=3.0))


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param({"loss": "logistic", "alpha": 0.5}, marks=pytest.mark.exhaustive),
        pytest.param({"solver": "admm"}, marks=pytest.mark.exhaustive),
        pytest.param(
            {"loss": "multinomial", "alpha": 3.0, "q": float("inf"), "refit_tol": 1e-7},
            marks=pytest.mark.exhaustive,
        ),
        pytest.param(
            {"loss": "logistic", "alpha": 0.5, "q": 1, "solver": "adaboost"},
            marks=pytest.mark.exhaustive,
        ),
    ],
)
def test_other_settings_are_scikit_learn_classifiers(settings):
    check_estimator(GroupFeatureClassifier(**settings))


def test_the_regressor_is_a_scikit_learn_estimator():
    check_estimator(GroupFeatureRegressor())


def test_it_ends_at_the_optimum_of_the_whole_pool(digits):
    X, y, _, _ = digits
    model = GroupFeatureClassifier(alpha=3.0, tol=1e-4, refit_tol=1e-6).fit(X, y)
    columns = ArrayColumns(X)
    columns.fit_scaling("unit_norm")
    Z = X[:, model.support_] @ model.coef_.T
    signs = np.where(y[:, None] == model.classes_, 1.0, -1.0)
    R = -2 * signs * np.maximum(1 - signs * (Z + model.intercept_), 0)
    h = np.linalg.norm(columns.correlate(R), axis=1)
    assert len(model.support_) < 64
    assert h.max() <= 3.0 * (1 + 1e-3)
    assert_allclose(h[model.support_], 3.0, rtol=1e-3)
    assert_allclose(R.sum(axis=0), 0, atol=1e-2)


def test_the_objective_falls_from_round_to_round(digits):
    X, y, _, _ = digits
    model = GroupFeatureClassifier(alpha=2.0, rounds=25, refit_tol=1e-6).fit(X, y)
    values = [step.value for step in model.history_]
    assert (np.diff(values) <= 1e-6 * values[0]).all()
    assert all(step.gap <= 1e-4 for step in model.history_)


def test_one_target_with_one_norm_is_the_lasso():
    X, y = load_diabetes(return_X_y=True)
    X = X / np.linalg.norm(X, axis=0)
    for alpha in (2000.0, 400.0, 50.0):
        # scikit-learn's lasso halves the squares and divides them by the examples.
        theirs = Lasso(alpha=alpha / (2 * len(y)), tol=1e-10, max_iter=100000).fit(X, y)
        ours = GroupFeatureRegressor(q=1, alpha=alpha, tol=1e-6).fit(X, y)
        assert sorted(ours.support_) == np.flatnonzero(theirs.coef_).tolist()
        assert_allclose(ours.predict(X), theirs.predict(X), rtol=1e-6)


def test_classes_that_are_coupled_are_multinomial_regression(digits, l1_alone):
    X, y, _, _ = digits
    X = X[:100] / 16
    y = y[:100]
    # scikit-learn's ℓ1 penalty with C = 1/λ, and an intercept that is free in both.
    theirs = LogisticRegression(C=0.25, solver="saga", tol=1e-6, max_iter=20000, **l1_alone).fit(
        X, y
    )
    ours = GroupFeatureClassifier(
        "multinomial", q=1, alpha=4.0, scaling="none", tol=1e-4, refit_tol=1e-6
    ).fit(X, y)
    assert_allclose(ours.decision_function(X)[:, 1:] - ours.decision_function(X)[:, :1],
                    theirs.decision_function(X)[:, 1:] - theirs.decision_function(X)[:, :1],
                    atol=2e-2)  # fmt: skip


def test_small_errors_count_little():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 10))
    y = 2 * X[:, 3] + rng.standard_t(1.2, size=200)
    robust = GroupFeatureRegressor("insensitive", alpha=0.5, eps=0.5).fit(X, y)
    assert 3 in robust.support_
    assert abs(robust.coef_[robust.support_ == 3][0] - 2) < 0.5


def test_a_large_alpha_leaves_the_intercepts_alone(digits):
    X, y, _, _ = digits
    model = GroupFeatureClassifier(alpha=1e6).fit(X, y)
    assert len(model.support_) == 0
    assert model.predict(X).shape == y.shape
    with pytest.raises(InputError, match=r"^alpha: got"):
        model.to_classifier(Pixels().fit(X))


def test_features_that_lose_their_weights_leave(digits):
    X, y, _, _ = digits
    model = GroupFeatureClassifier(q=1, alpha=0.3, refit_tol=1e-6).fit(X, y)
    assert model.n_iter_ > len(model.support_)
    gone = {int(c) for step in model.history_ for c in step.candidates} - set(model.support_)
    assert gone
    assert np.abs(model.coef_).sum(axis=0).all()
    # The path leads over rounds whose features all stayed.
    assert [step.n_features for step in model.path_][-1] == len(model.support_)
    assert not gone & {j for step in model.path_ for j in step.feature}


def test_several_enter_at_once_and_reach_the_same_optimum(digits):
    X, y, _, _ = digits
    one = GroupFeatureClassifier(alpha=3.0, tol=1e-5, refit_tol=1e-7).fit(X, y)
    many = GroupFeatureClassifier(alpha=3.0, tol=1e-5, refit_tol=1e-7, n_entering=8).fit(X, y)
    assert many.n_iter_ <= one.n_iter_ / 4
    assert_allclose(many.history_[-1].value, one.history_[-1].value, rtol=1e-6)
    assert sorted(many.support_) == sorted(one.support_)


@pytest.mark.parametrize("q", [1, 2, np.inf])
def test_from_lambda_max_on_all_weights_are_zero(q, digits):
    X, y, _, _ = digits
    largest = GroupFeatureClassifier(q=q).alpha_max(X, y)
    assert len(GroupFeatureClassifier(q=q, alpha=1.001 * largest).fit(X, y).support_) == 0
    assert len(GroupFeatureClassifier(q=q, alpha=0.98 * largest).fit(X, y).support_) >= 1


def test_a_warm_start_resumes_from_another_alpha(digits):
    X, y, _, _ = digits
    warm = GroupFeatureClassifier(warm_start=True, refit_tol=1e-7, tol=1e-5)
    for alpha in (20.0, 8.0, 3.0):
        warm.set_params(alpha=alpha).fit(X, y)
    cold = GroupFeatureClassifier(alpha=3.0, refit_tol=1e-7, tol=1e-5).fit(X, y)
    assert_allclose(warm.history_[-1].value, cold.history_[-1].value, rtol=1e-6)
    assert warm.n_iter_ < cold.n_iter_ / 1.5
    assert sorted(warm.support_) == sorted(cold.support_)
    other = warm.fit(X[:, :40], y)
    assert other.history_[0].candidates.size == 0


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"alpha": 0.05}, {"alpha": None, "shared_alpha": 1.0}),
        ({"alpha": None, "shared_alpha": 0.05}, {"alpha": 1.0, "shared_alpha": None}),
        ({"alpha": 0.5, "shared_alpha": 0.05}, {"alpha": 0.5, "shared_alpha": None}),
    ],
)
def test_a_warm_start_leaves_weights_of_the_other_kind_behind(before, after):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 30))
    y = (X[:, 0] + X[:, 1] + rng.normal(size=300) > 0).astype(int)
    warm = GroupFeatureClassifier(warm_start=True, **before).fit(X, y).set_params(**after)
    last = warm.fit(X, y).history_[-1]
    kept, left_out = last.coef, last.shared
    if after["alpha"] is None:
        kept, left_out = left_out, kept
    assert not left_out.any()
    cold = GroupFeatureClassifier(**after).fit(X, y).history_[-1]
    assert_allclose(last.value, cold.value, rtol=1e-5)
    assert kept.any() == (cold.coef.any() or cold.shared.any())


def test_groups_enter_and_leave_together(digits):
    X, y, more, truth = digits
    family = RandomFourier(n_pairs=100, bandwidths=(8.0,)).fit(X)
    columns = ArrayColumns.from_family(family, X)
    model = GroupFeatureClassifier(alpha=1.0, max_features=60).fit(columns, y)
    assert len(model.support_) == 60
    pairs = model.support_.reshape(-1, 2)
    assert_array_equal(pairs[:, 0] + 1, pairs[:, 1])
    compact = model.to_classifier(family)
    assert np.mean(compact.predict(more) == truth) > 0.75


def test_fresh_draws_until_none_violates(tmp_path, digits):
    X, y, more, truth = digits
    images = X.reshape(-1, 8, 8) / 16
    draws = Draws(GaborBank(pooling="max").fit(images), n=30, rounds=60)
    model = GroupFeatureClassifier(alpha=1.0, search="sampled", rounds=40).fit(
        DrawnColumns(draws, images), y
    )
    assert len(model.support_) > 10
    compact = model.to_classifier(draws)
    compact.save(tmp_path / "c.safetensors")
    again = load(tmp_path / "c.safetensors")
    test = more.reshape(-1, 8, 8) / 16
    assert_array_equal(again.predict(test), compact.predict(test))
    assert np.mean(again.predict(test) == truth) > 0.6
    with pytest.raises(InputError, match=r"^rounds: got"):
        GroupFeatureClassifier(search="sampled", rounds=100).fit(DrawnColumns(draws, images), y)


def _tasks(seed=0, m=400):
    """Return three tasks that share feature 0 and have one of their own each."""
    rng = np.random.default_rng(seed)
    X, task = rng.normal(size=(m, 12)), rng.integers(0, 3, m)
    f = 2 * X[:, 0] + 1.5 * X[np.arange(m), 1 + task] + task
    return X, f, np.array(["a", "b", "c"])[task]


def test_several_targets_at_once():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 20))
    Y = X[:, [3, 7]] @ np.array([[1.0, 2.0], [0.5, -1.0]]) + 0.1 * rng.normal(size=(150, 2))
    model = GroupFeatureRegressor(alpha=1.0).fit(X, Y)
    assert sorted(model.support_) == [3, 7]
    assert model.coef_.shape == (2, 2)
    assert model.score(X, Y) > 0.97


def test_a_stopped_run_resumes(tmp_path, digits):
    X, y, _, _ = digits
    settings = {"alpha": 2.0, "checkpoint": tmp_path / "rounds"}
    GroupFeatureClassifier(rounds=6, **settings).fit(X, y)
    resumed = GroupFeatureClassifier(rounds=15, **settings).fit(X, y)
    whole = GroupFeatureClassifier(rounds=15, alpha=2.0).fit(X, y)
    assert_array_equal(resumed.support_, whole.support_)
    assert_allclose(resumed.coef_, whole.coef_, rtol=1e-6, atol=1e-9)
    with pytest.raises(InputError, match=r"^checkpoint: got"):
        GroupFeatureClassifier(rounds=6, **{**settings, "alpha": 3.0}).fit(X, y)


def test_a_run_from_other_shared_weights_is_another(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 10))
    settings = {"alpha": None, "shared_alpha": 1.0, "warm_start": True}
    model = GroupFeatureClassifier(**settings).fit(X, X[:, 3] + X[:, 4] > 0)
    last, y = model.history_[-1], X[:, 3] > 0
    model.set_params(rounds=1, shared_alpha=2.0, checkpoint=tmp_path / "rounds").fit(X, y)
    model.history_ = (replace(last, shared=2 * last.shared),)
    with pytest.raises(InputError, match=r"^checkpoint: got"):
        model.fit(X, y)


def test_a_stopped_run_knows_how_often_all_that_entered_left(tmp_path, digits):
    X, y, _, _ = digits
    # At a tolerance of 0.9 the solver leaves all weights at zero, and at 0.09 many.
    settings = {"alpha": 20.0, "refit_tol": 0.9, "tol": 1e-6, "n_entering": 8}
    whole = GroupFeatureClassifier(**settings).fit(X, y)
    left = [len(r.entered) and not set(r.entered) & set(r.candidates) for r in whole.history_]
    assert sum(left) > 1
    for n in (2, 3, len(whole.history_)):
        kept = {**settings, "checkpoint": tmp_path / str(n)}
        GroupFeatureClassifier(rounds=n - 1, **kept).fit(X, y)
        resumed = GroupFeatureClassifier(**kept).fit(X, y)
        assert [r.number for r in resumed.history_] == [r.number for r in whole.history_]
        assert_array_equal(resumed.support_, whole.support_)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("loss", "hinge"), ("q", 0.5), ("alpha", -1.0), ("alpha", 0), ("rounds", 0),
        ("max_features", 0), ("search", "best"), ("search_options", {"x": 1}), ("solver", "x"),
        ("n_entering", 0),
        ("patience", 0), ("tol", -1), ("refit_tol", float("nan")), ("max_iter", 1.5),
        ("scaling", "x"), ("shared_alpha", float("inf")),
    ],
)  # fmt: skip
def test_wrong_settings_are_refused_before_work(name, value):
    with pytest.raises(InputError, match=rf"^{name}: got"):
        GroupFeatureClassifier(**{name: value}).check_parameters()


def test_some_weights_must_be_left():
    with pytest.raises(InputError, match=r"^alpha: got"):
        GroupFeatureClassifier(alpha=None).fit(np.eye(4), [0, 0, 1, 1])


def _two_tasks(seed=0, m=160, d=15):
    rng = np.random.default_rng(seed)
    X, tasks = rng.normal(size=(m, d)), np.arange(m) % 2
    X[tasks == 1] *= 5
    y = np.where(tasks == 0, X[:, 2] - X[:, 4], X[:, 2] + X[:, 9]) > 0
    return X, y, tasks


FINE = {"tol": 1e-8, "refit_tol": 1e-9, "max_iter": 20000, "n_entering": 15}
