"""Forward greedy selection in a ball: the bound, the gap, the guarantee, scikit-learn's checks."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import linprog
from sklearn.utils.estimator_checks import check_estimator

from visionshare import ForwardGreedyClassifier, ForwardGreedyRegressor
from visionshare.columns import ArrayColumns
from visionshare.errors import InputError
from visionshare.testing import check_learner


def _data(seed=0, m=150, d=30):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (m, d))
    return X, X[:, :4] @ [1.5, -1.0, 0.8, 0.5] + 0.1 * rng.normal(size=m)


def test_they_are_learners():
    check_learner(ForwardGreedyClassifier(rounds=6))
    check_estimator(ForwardGreedyRegressor(rounds=30))


def _scaled_norm(model, X):
    return np.abs(np.atleast_2d(model.coef_) * np.abs(X[:, model.support_]).max(axis=0)).sum(axis=1)


@pytest.mark.parametrize("bound", [0.5, 3.0, 20.0])
def test_weights_stay_in_the_ball_and_the_gap_falls(bound):
    X, f = _data()
    for model, y in (
        (ForwardGreedyClassifier(bound, tol=0), f > 0),
        (ForwardGreedyClassifier(bound, tol=0), np.digitize(f, [-1, 1])),
        (ForwardGreedyRegressor(bound, tol=0), f),
    ):
        model.set_params(rounds=80).fit(X, y)
        assert (_scaled_norm(model, X) <= bound * (1 + 1e-9)).all()
        for rounds in model.rounds_:
            losses = [r.loss for r in rounds]
            assert (np.diff(losses) <= 1e-12).all()
            assert all(0 < r.step <= 1 for r in rounds)


def _least_hinge(X, y, bound):
    """Return the least mean hinge loss in the ball, by linear programming."""
    m, d = X.shape
    A = np.hstack([-(y[:, None] * X), y[:, None] * X, -y[:, None], y[:, None], -np.eye(m)])
    ball = np.concatenate([np.ones(2 * d), np.zeros(2 + m)])
    cost = np.concatenate([np.zeros(2 * d + 2), np.full(m, 1 / m)])
    solution = linprog(cost, np.vstack([A, ball]), np.append(-np.ones(m), bound), method="highs")
    return solution.fun


def test_the_loss_comes_within_eps_of_the_least_in_the_ball():
    X, f = _data()
    X = X / np.abs(X).max(axis=0)
    y = np.where(f > 0.2, 1.0, -1.0)
    eps, bound = 0.1, 4.0
    model = ForwardGreedyClassifier(bound, eps=eps, rounds=3000, tol=1e-2).fit(X, y)
    hinge = np.mean(np.maximum(0, 1 - y * model.decision_function(X)))
    least = _least_hinge(X, y, bound)
    assert least - 1e-9 <= hinge <= least + eps
    # The gap bounds what is left of the smoothed loss, which is within ε/4 of the loss.
    last = model.rounds_[0][-1]
    assert last.loss <= least + last.gap + 1e-9
    assert last.loss >= least - eps / 4 - 1e-9


def test_of_several_classes_the_path_is_the_end_with_their_mean_loss():
    X, f = _data()
    model = ForwardGreedyClassifier(3.0, rounds=20).fit(X, np.digitize(f, [-1, 1]))
    (step,) = model.path_
    assert step.round == model.n_iter_ == max(len(rounds) for rounds in model.rounds_)
    assert_allclose(step.loss, np.mean([rounds[-1].loss for rounds in model.rounds_]))
    assert_allclose(step.weights, model.coef_, rtol=1e-6)


def test_a_budget_of_features_is_kept():
    X, f = _data()
    model = ForwardGreedyClassifier(5.0, max_features=3).fit(X, f > 0)
    assert len(model.support_) == 3
    assert [step.n_features for step in model.path_] == [1, 2, 3]


@pytest.mark.parametrize(
    ("name", "value"),
    [("bound", 0), ("eps", -1), ("rounds", 0), ("max_features", 0), ("tol", np.nan),
     ("loss", "squared"), ("search", "x"), ("search_options", {"m": 3})],
)  # fmt: skip
def test_wrong_settings_are_refused_before_work(name, value):
    with pytest.raises(InputError, match=rf"^{name}: got"):
        ForwardGreedyClassifier(**{name: value}).check_parameters()


def test_groups_are_refused():
    X, f = _data()
    with pytest.raises(InputError, match=r"^X: got"):
        ForwardGreedyClassifier().fit(ArrayColumns(X, groups=np.arange(30) // 2), f > 0)


def test_regression_finds_what_matters():
    X, f = _data()
    model = ForwardGreedyRegressor(4.0, eps=0.05, rounds=2000, max_features=4).fit(X, f)
    assert sorted(model.support_) == [0, 1, 2, 3]
    assert_allclose(model.predict(X), f, atol=0.8)
