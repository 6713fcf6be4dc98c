"""Structural boosting: optima of other solvers, induction, pruning and scikit-learn's checks."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from sklearn.datasets import load_diabetes, load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import check_estimator

from visionshare import (
    MixedNormClassifier,
    Pixels,
    StructuralBoostingClassifier,
    StructuralBoostingRegressor,
)
from visionshare.columns import ArrayColumns
from visionshare.errors import InputError
from visionshare.generators.monomials import ProductColumns
from visionshare.learners import regularization_path
from visionshare.testing import check_learner

EXACT = {"tol": 1e-6, "refit_tol": 1e-6, "max_iter": 20000, "calibrate": False}


def _classes(m=120, d=12, k=3, seed=0):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(m, d)), rng.integers(0, k, m)
    X[np.arange(m), y] += 1.5
    return X, y


def test_the_classifier_is_a_learner():
    check_learner(StructuralBoostingClassifier(alpha=20.0))


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param(
            {"solver": "adaboost", "penalty": "l1/linf", "alpha": 12.0, "refit_tol": 1e-7},
            marks=pytest.mark.exhaustive,
        ),
        pytest.param(
            {"solver": "adaboost", "penalty": "l1", "loss": "logistic"},
            marks=pytest.mark.exhaustive,
        ),
        {"penalty": "l2^2"},
    ],
)
def test_other_settings_are_scikit_learn_classifiers(settings):
    settings = {"alpha": 20.0, "calibrate": False, **settings}
    check_estimator(StructuralBoostingClassifier(**settings))


# Targets are large numbers: a small penalty would take thousands of iterations.
@pytest.mark.parametrize(
    "settings", [{"alpha": 20.0}, {"alpha": 20.0, "solver": "gradboost", "penalty": "l2^2"}]
)
def test_the_regressor_is_a_scikit_learn_estimator(settings):
    check_estimator(StructuralBoostingRegressor(**settings))


def test_sequential_boosting_is_a_scikit_learn_estimator():
    settings = {"corrective": False, "alpha": 5.0, "rounds": 6, "calibrate": False}
    check_estimator(StructuralBoostingClassifier(**settings))
    del settings["calibrate"]
    check_estimator(StructuralBoostingRegressor(**settings))


SOLVERS = [
    ("gradboost", "l1"),
    ("gradboost", "l1/l2"),
    ("gradboost", "l1/linf"),
    ("gradboost", "l2^2"),
    ("adaboost", "l1"),
    ("adaboost", "l1/linf"),
]


@pytest.mark.parametrize(("solver", "penalty"), SOLVERS)
@pytest.mark.parametrize("loss", ["multinomial", "logistic"])
def test_all_settings_end_at_the_optimum_of_another_solver(solver, penalty, loss):
    X, y = _classes(m=80, d=8)
    settings = {"loss": loss, "penalty": penalty, "alpha": 4.0, **EXACT}
    ours = StructuralBoostingClassifier(solver=solver, n_entering=3, **settings).fit(X, y)
    other = StructuralBoostingClassifier(solver="fista", criterion="violation", **settings)
    other.fit(X, y)
    assert ours.history_[-1].gap < 1e-5
    assert_allclose(ours.history_[-1].value, other.history_[-1].value, rtol=1e-8)
    assert sorted(ours.support_) == sorted(other.support_)


def _whole_kkt(model, X, y, dual):
    """Return the largest dual norm of a column's gradient, of all columns as scaled."""
    columns = ArrayColumns(X, dtype="float64")
    columns.fit_scaling(model.scaling)
    Z = model.decision_function(X)
    P = np.exp(Z - Z.max(axis=1, keepdims=True))
    P /= P.sum(axis=1, keepdims=True)
    G = columns.correlate(P - np.eye(Z.shape[1])[y])
    return np.linalg.norm(G, dual, axis=1)


@pytest.mark.parametrize(("penalty", "dual"), [("l1/l2", 2), ("l1/linf", 1), ("l1", np.inf)])
def test_no_column_of_the_pool_is_left_that_could_help(penalty, dual):
    X, y = _classes(d=30)
    model = StructuralBoostingClassifier(penalty=penalty, alpha=6.0, **EXACT).fit(X, y)
    norms = _whole_kkt(model, X, y, dual)
    assert 0 < len(model.support_) < 30
    assert norms.max() <= 6.0 * (1 + 1e-5)
    assert_allclose(norms[model.support_], 6.0, rtol=1e-5)


@pytest.mark.parametrize("solver", ["gradboost", "adaboost"])
def test_two_classes_with_one_norm_are_scikit_learns_logistic_regression(solver, l1_alone):
    X, y = _classes(k=2)
    ours = StructuralBoostingClassifier(
        penalty="l1", alpha=3.0, solver=solver, scaling="none", **EXACT
    ).fit(X, y)
    # ℓ1 with C = 1/λ, and an intercept that is free in both.
    theirs = LogisticRegression(C=1 / 3, solver="saga", tol=1e-10, max_iter=100000, **l1_alone)
    theirs.fit(X, y)
    assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-5)


def test_half_the_squares_are_scikit_learns_logistic_regression():
    X, y = _classes()
    ours = StructuralBoostingClassifier(penalty="l2^2", alpha=2.0, scaling="none", **EXACT).fit(
        X, y
    )
    theirs = LogisticRegression(C=0.5, tol=1e-10, max_iter=10000).fit(X, y)
    assert len(ours.support_) == X.shape[1]
    # Adding one number to all scores of an example changes neither.
    ours_scores, their_scores = ours.decision_function(X), theirs.decision_function(X)
    assert_allclose(ours_scores - ours_scores[:, :1], their_scores - their_scores[:, :1], atol=1e-5)


@pytest.mark.parametrize("penalty", ["l1", "l2^2"])
def test_insensitive_regression_is_what_a_smooth_solver_finds(penalty):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(80, 6))
    y = X @ np.array([2.0, -1, 0.5, 0, 0, 0]) + 0.3 * rng.normal(size=80) + 1
    solver = "adaboost" if penalty == "l1" else "gradboost"
    settings = {key: value for key, value in EXACT.items() if key != "calibrate"}
    model = StructuralBoostingRegressor(
        penalty=penalty, alpha=2.0, eps=0.2, solver=solver, scaling="none", **settings
    ).fit(X, y)

    def objective(v):
        # ℓ1 with positive and negative parts, so that it is smooth.
        w, b = (v[:6] - v[6:12], v[12]) if penalty == "l1" else (v[:6], v[6])
        z = y - X @ w - b
        fit = np.logaddexp(0, z - 0.2).sum() + np.logaddexp(0, -z - 0.2).sum()
        return fit + (2 * v[:12].sum() if penalty == "l1" else w @ w)

    n = 13 if penalty == "l1" else 7
    bounds = [(0, None)] * 12 + [(None, None)] if penalty == "l1" else None
    solution = minimize(
        objective, np.zeros(n), bounds=bounds, method="L-BFGS-B",
        options={"ftol": 1e-14, "gtol": 1e-9, "maxiter": 5000, "maxfun": 10**6},
    )  # fmt: skip
    assert_allclose(model.history_[-1].value, solution.fun, rtol=1e-7)


def test_what_ended_the_rounds_says_whether_the_solver_arrived():
    X, y = _classes(m=80, d=8)
    model = StructuralBoostingClassifier(alpha=2.0, calibrate=False).fit(X, y)
    assert model.stopped_by_ == "optimal"
    assert model.history_[-1].gap <= model.refit_tol
    # Beyond what floats can tell the solver gains no more.
    model.set_params(refit_tol=1e-17, max_iter=200).fit(X, y)
    assert model.stopped_by_ == "max_iter"
    assert model.history_[-1].gap > model.refit_tol


def test_the_solver_goes_on_where_nothing_violates():
    X, y = _classes(m=80, d=8)
    model = StructuralBoostingClassifier(alpha=2.0, calibrate=False).fit(X, y)
    value, support = model.history_[-1].value, set(model.support_)
    model.set_params(max_iter=2).fit(X, y)
    # Two iterations a round do not solve the restricted problem; rounds without a candidate do.
    assert any(len(record.entered) == 0 for record in model.history_[1:])
    assert model.stopped_by_ == "optimal"
    assert_allclose(model.history_[-1].value, value, rtol=1e-6)
    assert set(model.support_) == support


@pytest.mark.parametrize(
    ("model", "m", "d"),
    [
        pytest.param(
            StructuralBoostingClassifier(alpha=1e-7, refit_tol=1e-9, calibrate=False),
            60,
            12,
            marks=pytest.mark.exhaustive,
        ),
        (MixedNormClassifier(alpha=1e-6, max_iter=300, calibrate=False), 60, 12),
    ],
)
def test_separable_classes_with_next_to_no_penalty_end_with_a_warning(model, m, d):
    X = np.random.default_rng(0).normal(size=(m, d))
    y = (X[:, 0] > 0).astype(int) + (X[:, 1] > 0)
    with pytest.warns(ConvergenceWarning, match="raise alpha"):
        model.fit(X, y)
    assert model.stopped_by_ == "max_iter"


@pytest.mark.parametrize(("solver", "penalty"), SOLVERS)
def test_one_update_a_round_and_full_correction_meet(solver, penalty):
    X, y = _classes(m=80, d=8)
    settings = {"penalty": penalty, "alpha": 5.0, "solver": solver, "calibrate": False}
    settings |= {"tol": 1e-6, "refit_tol": 1e-5}
    whole = StructuralBoostingClassifier(**settings).fit(X, y)
    single = StructuralBoostingClassifier(corrective=False, rounds=5000, **settings).fit(X, y)
    assert len(single.history_) < 5000
    assert_allclose(single.history_[-1].value, whole.history_[-1].value, rtol=1e-7)
    assert sorted(single.support_) == sorted(whole.support_)


@pytest.mark.parametrize("corrective", [True, False])
@pytest.mark.parametrize(("solver", "penalty"), SOLVERS)
def test_the_objective_never_rises(solver, penalty, corrective):
    X, y = _classes(m=80, d=10)
    model = StructuralBoostingClassifier(
        penalty=penalty, alpha=4.0, solver=solver, corrective=corrective, rounds=20,
        n_entering=2, calibrate=False,
    ).fit(X, y)  # fmt: skip
    values = np.array([step.value for step in model.history_])
    assert (np.diff(values) <= 1e-6 * values[0]).all()
    assert values[-1] < 0.95 * values[0]


def test_an_update_lowers_the_objective_by_what_the_bound_promised():
    X, y = _classes(d=20)
    for solver, penalty in SOLVERS:
        first = StructuralBoostingClassifier(
            penalty=penalty, alpha=2.0, solver=solver, corrective=False, rounds=30,
            calibrate=False,
        ).fit(X, y)  # fmt: skip
        falls = -np.diff([step.value for step in first.history_])
        assert falls.max() == falls[0]
        assert (falls > 0).all()


def test_features_that_lose_their_weights_leave():
    X, y = load_digits(return_X_y=True)
    model = StructuralBoostingClassifier(
        penalty="l1", alpha=4.0, n_entering=15, calibrate=False, refit_tol=1e-3
    ).fit(X[:80], y[:80])
    entered = {int(c) for step in model.history_ for c in step.entered}
    assert entered > set(model.support_.tolist())
    assert np.abs(model.coef_).sum(axis=0).all()


@pytest.mark.parametrize("penalty", ["l1", "l1/l2", "l1/linf"])
@pytest.mark.parametrize("corrective", [True, False])
def test_from_lambda_max_on_all_weights_are_zero(penalty, corrective):
    X, y = _classes()
    model = StructuralBoostingClassifier(
        penalty=penalty, corrective=corrective, rounds=20, calibrate=False
    )
    largest = model.alpha_max(X, y)
    dual = {"l1": np.inf, "l1/l2": 2, "l1/linf": 1}[penalty]
    empty = model.set_params(alpha=1.002 * largest).fit(X, y)
    assert len(empty.support_) == 0
    assert_allclose(_norms_of_means(X, y, dual), largest, rtol=1e-3)
    assert len(model.set_params(alpha=0.98 * largest).fit(X, y).support_) >= 1


def _norms_of_means(X, y, dual):
    """Return λ_max by hand: the intercepts alone give each class its share."""
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    Y = np.eye(y.max() + 1)[y]
    return np.linalg.norm(Z.T @ (Y.mean(axis=0) - Y), dual, axis=1).max()


def test_half_the_squares_have_no_lambda_max():
    X, y = _classes()
    with pytest.raises(InputError, match=r"^penalty: got"):
        StructuralBoostingClassifier(penalty="l2^2").alpha_max(X, y)


def test_the_path_has_warm_starts():
    X, y = _classes(m=80)
    learner = StructuralBoostingClassifier(calibrate=False, refit_tol=1e-6, tol=1e-6)
    models = list(regularization_path(learner, X, y, n=4, least=0.1))
    alone = StructuralBoostingClassifier(
        alpha=models[-1].alpha, calibrate=False, refit_tol=1e-6, tol=1e-6
    ).fit(X, y)
    assert len(models[0].support_) == 0
    assert len(models[-1].support_) > len(models[1].support_) > 0
    assert_allclose(models[-1].history_[-1].value, alone.history_[-1].value, rtol=1e-8)


def test_products_are_induced():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (300, 5))
    y = 2 * X[:, 0] + X[:, 1] + 3 * X[:, 0] * X[:, 1]
    columns = ProductColumns(ArrayColumns(X), Pixels().fit(X), entries=100)
    model = StructuralBoostingRegressor(alpha=2.0, search="products", n_entering=3, rounds=20).fit(
        columns, y
    )
    monomials = {tuple(m) for m in columns.monomials(model.support_)}
    assert {(0,), (1,), (0, 1)} <= monomials
    assert model.score(columns, y) > 0.9


def test_weights_of_examples_count_as_repetitions():
    X, y = _classes(m=40, d=6)
    omega = np.random.default_rng(2).integers(0, 4, 40)
    settings = {"alpha": 6.0, "scaling": "none", **EXACT}
    for solver, penalty in SOLVERS:
        weighted = StructuralBoostingClassifier(solver=solver, penalty=penalty, **settings)
        weighted.fit(X, y, omega)
        repeated = StructuralBoostingClassifier(solver=solver, penalty=penalty, **settings)
        repeated.fit(np.repeat(X, omega, axis=0), np.repeat(y, omega))
        assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), atol=1e-5)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("loss", "hinge"), ("penalty", "l3"), ("alpha", None), ("alpha", 0),
        ("solver", "x"), ("corrective", "no"), ("calibrate", 1.0), ("criterion", "gradient"),
        ("n_entering", 0), ("rounds", 0),
    ],
)  # fmt: skip
def test_wrong_settings_are_refused_before_work(name, value):
    with pytest.raises(InputError, match=rf"^{name}: got"):
        StructuralBoostingClassifier(**{name: value}).check_parameters()


def test_what_a_bound_cannot_carry_is_refused():
    for penalty in ("l1/l2", "l2^2"):
        with pytest.raises(InputError, match=r"^penalty: got"):
            StructuralBoostingClassifier(penalty=penalty, solver="adaboost").check_parameters()
    with pytest.raises(InputError, match=r"^solver: got"):
        StructuralBoostingClassifier(corrective=False, solver="newton").check_parameters()
    with pytest.raises(InputError, match=r"^loss: got"):
        StructuralBoostingRegressor("squared").fit(*load_diabetes(return_X_y=True))


@pytest.mark.parametrize(
    ("solver", "criterion"),
    [("adaboost", "bound"), ("newton", "violation"), ("admm", "violation")],
)
@pytest.mark.parametrize("penalty", ["l1", "l1/linf"])
def test_the_exponential_loss_ends_at_one_optimum(solver, criterion, penalty):
    X, y = _classes()
    settings = {
        "loss": "exponential",
        "penalty": penalty,
        "alpha": 20.0,
        **EXACT,
        "refit_tol": 1e-6,
    }
    ours = StructuralBoostingClassifier(solver=solver, criterion=criterion, **settings).fit(X, y)
    other = StructuralBoostingClassifier(solver="fista", criterion="violation", **settings)
    other.fit(X, y)
    assert_allclose(ours.history_[-1].value, other.history_[-1].value, rtol=1e-6)
    assert 0 < len(ours.support_) < 12
    # No more than λ_max leaves a weight.
    most = other.alpha_max(X, y)
    assert len(ours.set_params(alpha=1.001 * most).fit(X, y).support_) == 0
    assert len(ours.set_params(alpha=0.98 * most).fit(X, y).support_) > 0


def test_the_exponential_loss_has_no_quadratic_bound():
    for settings in ({}, {"solver": "newton"}):
        with pytest.raises(InputError, match=r"^loss: got 'Exponential'"):
            StructuralBoostingClassifier(loss="exponential", **settings).check_parameters()
