"""The regularization path against single fits and scikit-learn's."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import brentq
from scipy.special import expit
from sklearn.datasets import load_diabetes, load_digits
from sklearn.linear_model import lasso_path

from visionshare import (
    GroupFeatureClassifier,
    GroupFeatureRegressor,
    PatchTemplates,
    Pixels,
    StructuralBoostingRegressor,
    UnionOfFamilies,
)
from visionshare.columns import ArrayColumns
from visionshare.errors import InputError
from visionshare.learners import regularization_path


def test_it_is_the_lasso_path():
    X, y = load_diabetes(return_X_y=True)
    X = X - X.mean(axis=0)
    X /= np.linalg.norm(X, axis=0)
    learner = GroupFeatureRegressor(q=1, tol=1e-6)
    models = list(regularization_path(learner, X, y, n=8))
    # scikit-learn's lasso halves the squares and divides them by the examples.
    alphas = [m.alpha / (2 * len(y)) for m in models]
    _, coefs, _ = lasso_path(X, y - y.mean(), alphas=alphas, tol=1e-10, max_iter=100000)
    for model, expected in zip(models, coefs.T, strict=True):
        ours = np.zeros(10)
        ours[model.support_] = model.coef_
        assert_allclose(ours, expected, atol=1e-3)
    assert len(models[0].support_) == 0
    assert learner.alpha == 1.0


@pytest.mark.parametrize("q", [2, pytest.param(np.inf, marks=pytest.mark.exhaustive)])
def test_every_point_is_what_a_single_fit_gives(q):
    X, y = load_digits(return_X_y=True)
    X, y = X[:120] / 16, y[:120]
    settings = {"loss": "multinomial", "q": q, "scaling": "none", "refit_tol": 1e-6, "tol": 1e-4}
    learner = GroupFeatureClassifier(**settings)
    widths = []
    for model in regularization_path(learner, X, y, alphas=[6.0, 15.0]):
        alone = GroupFeatureClassifier(alpha=model.alpha, **settings).fit(X, y)
        assert_allclose(model.history_[-1].value, alone.history_[-1].value, rtol=1e-4)
        widths.append(len(model.support_))
    assert widths == sorted(widths)
    assert widths[0] < widths[-1]


@pytest.mark.parametrize("size", [1, 10, 1000])
@pytest.mark.parametrize(
    "learner",
    [
        StructuralBoostingRegressor(),
        GroupFeatureRegressor(loss="insensitive", scaling="unit_variance"),
    ],
)
def test_lambda_max_of_targets_far_from_zero(learner, size):
    X, y = load_diabetes(return_X_y=True)
    X, y = X[:200], size * y[:200]

    def slope(b):
        return (expit(y - b - 0.1) - expit(b - y - 0.1)).sum()

    rest = y - brentq(slope, y.min(), y.max(), xtol=1e-12)
    residual = expit(rest - 0.1) - expit(-rest - 0.1)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    assert_allclose(learner.alpha_max(X, y), np.abs(Z.T @ residual).max(), rtol=1e-6)
    first = next(iter(regularization_path(learner, X, y, n=2)))
    assert len(first.support_) == 0
    loss = np.logaddexp(0, rest - 0.1).sum() + np.logaddexp(0, -rest - 0.1).sum()
    assert_allclose(first.history_[-1].value, loss, rtol=1e-9)


@pytest.mark.parametrize("search", ["exhaustive", "random"])
def test_lambda_max_does_not_depend_on_costs(search):
    X = np.random.default_rng(0).random((80, 8, 8)).astype(np.float32)
    patches = PatchTemplates(
        patch_size=3, n_templates=6, grid=2, widths=(2.0,), padding=1, n_patches=200
    )
    family = UnionOfFamilies([Pixels(), patches]).fit(X)
    values = patches.fit(X).transform(X)[:, 3]
    columns, y = ArrayColumns.from_family(family, X), values > np.median(values)
    options = {"n": 60} if search == "random" else {}
    learner = GroupFeatureClassifier(scaling="unit_variance", search=search, search_options=options)
    largest = learner.alpha_max(columns, y)
    by_cost = learner.set_params(search_options={"per": "macs", **options})
    assert by_cost.alpha_max(columns, y) == largest
    by_cost.set_params(alpha=1.001 * largest)
    assert by_cost.search_options["per"] == "macs"
    if search == "exhaustive":
        assert len(by_cost.fit(columns, y).support_) == 0


@pytest.mark.parametrize(
    "arguments",
    [
        {"n": 0}, {"n": 1.5}, {"least": 1.0}, {"alphas": []}, {"alphas": [1.0, -1.0]},
        {"alphas": 3.0}, {"alphas": ["a"]}, {"alphas": [None]}, {"alphas": np.ones((2, 2))},
    ],
)  # fmt: skip
def test_wrong_arguments_are_refused(arguments):
    X, y = load_diabetes(return_X_y=True)
    name = next(iter(arguments))
    with pytest.raises(InputError, match=rf"^{name}: got"):
        list(regularization_path(GroupFeatureRegressor(), X, y, **arguments))


@pytest.mark.parametrize("size", [1e-9, 1e-4, 1e6])
def test_lambda_max_of_targets_of_any_size(size):
    X, y = load_diabetes(return_X_y=True)
    y = (y - y.mean()) / y.std()
    largest = GroupFeatureRegressor().alpha_max(X, y)
    assert GroupFeatureRegressor().alpha_max(X, size * y) == pytest.approx(size * largest)


def test_targets_that_are_all_equal_have_no_path():
    X, _ = load_diabetes(return_X_y=True)
    assert GroupFeatureRegressor().alpha_max(X, np.full(len(X), 1e-9)) == 0
    with pytest.raises(InputError, match="no target depends on"):
        list(regularization_path(GroupFeatureRegressor(), X, np.full(len(X), 3.0), n=3))
