"""Mixed-norm regression: optimality by its definition, other solvers, scikit-learn's checks."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

from visionshare import GroupFeatureClassifier, MixedNormClassifier
from visionshare.columns import ArrayColumns
from visionshare.errors import InputError
from visionshare.learners import regularization_path
from visionshare.testing import check_learner

EXACT = {"scaling": "none", "refit_tol": 1e-6, "tol": 1e-4}


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:250] / 16, y[:250]


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"q": 2, "calibrate": False},
    ],
    ids=["default", "2 uncalibrated"],
)
def test_it_is_a_learner(settings):
    check_learner(MixedNormClassifier(alpha=4.0, **settings))


def test_intercepts_that_nothing_holds_have_mean_zero(digits):
    X, y = digits
    for q in (2, np.inf):
        model = MixedNormClassifier(q, alpha=4.0, scaling="none").fit(X, y)
        assert_allclose(model.intercept_.mean(), 0, atol=1e-12)


def _residual(model, X, y):
    """Return the multinomial loss's derivative in the scores, by its definition."""
    Z = X[:, model.support_] @ model.coef_.T + model.intercept_
    P = np.exp(Z - Z.max(axis=1, keepdims=True))
    P /= P.sum(axis=1, keepdims=True)
    return P - (y[:, None] == model.classes_)


def test_weights_and_gradients_are_dual(digits):
    X, y = digits
    model = MixedNormClassifier(alpha=4.0, **EXACT).fit(X, y)
    R = _residual(model, X, y)
    G = X.T @ R
    assert_allclose(R.sum(axis=0), 0, atol=1e-3)
    sizes = np.abs(G).sum(axis=1)
    assert 5 < len(model.support_) < 50
    assert sizes.max() <= 4.0 * (1 + 1e-3)
    assert_allclose(sizes[model.support_], 4.0, rtol=1e-3)
    # −g is a subgradient of λ‖w‖_∞: ⟨−g, w⟩ = λ ‖w‖_∞.
    peaks = np.abs(model.coef_).max(axis=0)
    assert_allclose(-np.sum(G[model.support_].T * model.coef_, axis=0), 4.0 * peaks, atol=2e-3)


def test_the_group_lasso_has_parallel_gradients(digits):
    X, y = digits
    model = MixedNormClassifier(2, alpha=2.0, **EXACT).fit(X, y)
    G = X.T @ _residual(model, X, y)
    assert np.linalg.norm(G, axis=1).max() <= 2.0 * (1 + 1e-3)
    unit = model.coef_ / np.linalg.norm(model.coef_, axis=0)
    assert_allclose(G[model.support_].T, -2.0 * unit, atol=2e-3)


@pytest.mark.parametrize("q", [2, np.inf])
def test_it_is_the_optimum_of_column_generation(q, digits):
    X = digits[0][:120]
    y = digits[1][:120]
    slow = GroupFeatureClassifier("multinomial", q=q, alpha=6.0, **EXACT).fit(X, y)
    for settings in ({}, {"solver": "fista"}):
        model = MixedNormClassifier(q, alpha=6.0, **EXACT, **settings).fit(X, y)
        assert_allclose(model.history_[-1].value, slow.history_[-1].value, rtol=1e-5)
        assert sorted(model.support_) == sorted(slow.support_)
        assert model.n_iter_ < slow.n_iter_ / 4
        assert_allclose(model.decision_function(X), slow.decision_function(X), atol=2e-2)


def test_of_one_score_it_is_the_lasso(digits, l1_alone):
    X, y = digits
    y = y > 4
    # scikit-learn's C is 1/λ; one score a column leaves nothing to mix.
    theirs = LogisticRegression(C=0.5, solver="saga", tol=1e-7, max_iter=50000, **l1_alone)
    theirs.fit(X, y)
    for q in (2, np.inf):
        ours = MixedNormClassifier(q, alpha=2.0, **EXACT).fit(X, y)
        assert sorted(ours.support_) == np.flatnonzero(theirs.coef_[0]).tolist()
        assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-2)


def test_the_path_begins_where_weights_begin(digits):
    X, y = digits
    learner = MixedNormClassifier(calibrate=False, **EXACT)
    largest = learner.alpha_max(X, y)
    G = X.T @ (np.bincount(y) / len(y) - (y[:, None] == np.arange(10)))
    assert_allclose(largest, np.abs(G).sum(axis=1).max(), rtol=1e-4)
    widths = []
    for model in regularization_path(learner, X, y, n=5, least=0.1):
        alone = MixedNormClassifier(alpha=model.alpha, **EXACT).fit(X, y)
        assert_allclose(model.history_[-1].value, alone.history_[-1].value, rtol=1e-4)
        assert model.temperature_ == 1.0
        widths.append(len(model.support_))
    assert widths[0] == 0
    assert widths == sorted(widths)
    assert widths[-1] > 10


def test_a_solver_coarser_than_the_search_ends(digits):
    X, y = digits
    # A violation of 1e-4 λ over ten classes is less a class than the solver can see at first.
    model = MixedNormClassifier(alpha=4.0, scaling="none", refit_tol=1e-2, tol=1e-4).fit(X, y)
    G = X.T @ _residual(model, X, y)
    assert model.n_iter_ < 40
    # Its tolerance holds for each class.
    assert np.abs(G).sum(axis=1).max() <= 4.0 * (1 + 10 * 1e-2)


def test_columns_that_say_nothing_stay_out(digits):
    X, y = digits
    model = MixedNormClassifier(alpha=3.0).fit(ArrayColumns(X), y)
    assert (X[:, 0] == 0).all()
    assert 0 not in model.support_


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("q", 0.5), ("alpha", None), ("alpha", 0.0),
        ("n_entering", 0), ("solver", "admm"), ("scaling", "x"), ("tol", -1.0), ("max_iter", 0),
    ],
)  # fmt: skip
def test_wrong_settings_are_refused_before_work(name, value):
    with pytest.raises(InputError, match=rf"^{name}: got"):
        MixedNormClassifier(**{name: value}).check_parameters()


@pytest.mark.parametrize("q", [2, np.inf])
def test_weights_of_any_size_take_as_many_iterations(q):
    """Those that sum to one, too."""
    rng = np.random.default_rng(7)
    X = rng.normal(size=(70, 10))
    y = X[:, 0] + X[:, 1] > 0
    learner, rounds = MixedNormClassifier(q, calibrate=False, max_iter=500), []
    expected = MixedNormClassifier(q).alpha_max(X, y)
    for weight in (1e-5, 1.0, 1e4):
        omega = np.full(70, weight)
        largest = learner.alpha_max(X, y, omega)
        assert_allclose(largest, expected * np.sqrt(weight), rtol=1e-6)
        model = learner.set_params(alpha=0.3 * largest).fit(X, y, omega)
        assert model.stopped_by_ == "optimal"
        rounds.append(len(model.history_))
    assert max(rounds) == min(rounds)
