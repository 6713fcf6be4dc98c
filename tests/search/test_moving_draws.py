"""Draws that take steps uphill before they enter: gradients, learners, resumed runs."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import logsumexp

from visionshare import (
    ForwardGreedyClassifier,
    GaborBank,
    GreedyTL,
    GroupFeatureClassifier,
    OneAgainstRest,
    Pixels,
    RandomFourier,
    ShareBoost,
    StructuralBoostingClassifier,
)
from visionshare.errors import InputError
from visionshare.generators.climbing import Ascent
from visionshare.generators.draws import Draws
from visionshare.generators.fourier.climbing import _Pair, climb_frequency
from visionshare.store import DrawnColumns

MOVING = {"search": "sampled", "search_options": {"steps": 4}}


def _vectors(m=400, p=5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, p))
    return X, np.cos(1.3 * X[:, 0] - 0.4 * X[:, 1]) > 0.2


def _drawn(X, n=6, rounds=60, seed=0):
    return DrawnColumns(Draws(RandomFourier().fit(X), n=n, rounds=rounds, random_state=seed), X)


def test_the_gradient_of_a_frequency_is_that_of_differences():
    X, _ = _vectors(m=5000)
    R, v, step = np.random.default_rng(1).normal(size=(5000, 2)), np.full(5, 0.3), 1e-5
    gradient = _Pair(v, X.__getitem__, R).gradient(X.__getitem__, R)
    for j, unit in enumerate(np.eye(5) * step):
        up, down = (_Pair(v + s * unit, X.__getitem__, R).value for s in (1, -1))
        assert_allclose(gradient[j], (up - down) / (2 * step), rtol=1e-6)


def test_steps_go_uphill_until_the_top():
    X, y = _vectors()
    R = (y - y.mean())[:, None]
    values = [
        _Pair(climb_frequency(np.full(5, 0.2), X.__getitem__, R, steps), X.__getitem__, R).value
        for steps in (0, 1, 3, 10, 60)
    ]
    assert (np.diff(values) > 0).sum() >= 3
    assert (np.diff(values) >= 0).all()
    # The frequency of what is to be learned.
    top = climb_frequency(np.full(5, 0.2), X.__getitem__, R, 200)
    assert_allclose(top / top[0], [1, -0.4 / 1.3, 0, 0, 0], atol=0.1)


def test_filters_climb_within_their_ranges():
    rng = np.random.default_rng(0)
    images = rng.normal(size=(60, 14, 14))
    family = GaborBank(phases=True).fit(images)
    columns = DrawnColumns(Draws(family, n=5, rounds=4), images)
    columns.fit_scaling("unit_norm")
    residual = rng.normal(size=(60, 3))
    norms = [np.linalg.norm(columns.correlate(residual, np.array([j]))) for j in range(5)]
    for draw in range(5):
        columns.climb(draw, residual, 6)
    moved = columns.moved(np.arange(5))
    higher = [np.linalg.norm(columns.correlate(residual, np.array([j]))) for j in range(5)]
    assert (np.array(higher) >= np.array(norms) * (1 - 1e-6)).all()
    assert np.mean(np.array(higher) > 1.05 * np.array(norms)) > 0.5
    assert ((moved[:, 1] >= 0.05 - 1e-6) & (moved[:, 1] <= 0.45 + 1e-6)).all()
    assert ((moved[:, 2:4] >= 1 - 1e-6) & (moved[:, 2:4] <= 6 + 1e-6)).all()


def _loss(model, columns, y):
    return np.mean(np.logaddexp(0, -(2.0 * y - 1) * model.decision_function(columns)))


LEARNERS = [
    GroupFeatureClassifier(alpha=0.5, rounds=6, loss="logistic"),
    pytest.param(
        StructuralBoostingClassifier(alpha=2.0, rounds=6, n_entering=2, calibrate=False),
        marks=pytest.mark.exhaustive,
    ),
    ShareBoost(5),
]


@pytest.mark.parametrize("learner", LEARNERS, ids=lambda learner: type(learner).__name__)
def test_learners_need_fewer_draws(learner, tmp_path):
    X, y = _vectors()
    columns = _drawn(X)
    learner.set_params(search="sampled", search_options=None)
    still = _loss(learner.fit(columns, y), columns, y)
    learner.set_params(**MOVING).fit(columns, y)
    assert _loss(learner, columns, y) < 0.8 * still
    # Predictions are those of the classifier, of the columns and of other columns of these draws.
    draws = Draws(RandomFourier().fit(X), n=6, rounds=60)
    scores = learner.decision_function(columns)
    compact = learner.to_classifier(draws)
    assert_allclose(learner.decision_function(DrawnColumns(draws, X)), scores, atol=1e-4)
    wide = compact.decision_function(X)
    assert_allclose(wide[:, 1] - wide[:, 0] if wide.ndim == 2 else wide, scores, atol=1e-3)
    assert draws.moved == {}
    # Another fit on the same columns begins where the draws were drawn.
    support, coef = learner.support_, learner.coef_
    again = learner.fit(columns, y)
    assert_array_equal(again.support_, support)
    assert_array_equal(again.coef_, coef)
    two = learner.set_params(n_jobs=2).fit(_drawn(X), y)
    assert_array_equal(two.coef_, coef)


@pytest.mark.parametrize("learner", LEARNERS, ids=lambda learner: type(learner).__name__)
def test_a_stopped_run_has_its_moved_draws(learner, tmp_path):
    X, y = _vectors()
    rounds = learner.get_params()["rounds"]
    learner.set_params(**MOVING, n_jobs=1)
    whole = learner.fit(_drawn(X), y)
    support, scores = whole.support_, whole.decision_function(_drawn(X))
    learner.set_params(checkpoint=tmp_path / "rounds", rounds=2).fit(_drawn(X), y)
    resumed = learner.set_params(rounds=rounds).fit(_drawn(X), y)
    learner.set_params(checkpoint=None)
    assert_array_equal(resumed.support_, support)
    assert_allclose(resumed.decision_function(_drawn(X)), scores, atol=1e-5)


def test_a_warm_start_has_the_moved_draws():
    X, y = _vectors()
    columns = _drawn(X)
    model = GroupFeatureClassifier(alpha=4.0, rounds=4, warm_start=True, **MOVING).fit(columns, y)
    first = set(model.support_)
    model.set_params(alpha=2.0).fit(columns, y)
    assert first & set(model.support_)
    W = model.to_classifier(Draws(RandomFourier().fit(X), n=6, rounds=60))
    assert_array_equal(W.predict(X), model.predict(columns))


def test_others_refuse_moving_draws():
    X, y = _vectors()
    for learner in (ForwardGreedyClassifier(**MOVING), GreedyTL(**MOVING)):
        with pytest.raises(InputError, match=r"^(steps|search): got"):
            learner.check_parameters()
    with pytest.raises(InputError, match=r"^steps: got 4"):
        OneAgainstRest(learner=ShareBoost(3, **MOVING)).check_parameters()
    with pytest.raises(InputError, match=r"^steps: got -1"):
        ShareBoost(search="sampled", search_options={"steps": -1}).check_parameters()
    family = Pixels().fit(X)
    with pytest.raises(InputError, match=r"^steps: got 2"):
        family.climb(np.zeros(1), Ascent(X, y[:, None], len, 2))


@pytest.mark.parametrize("corrective", [True, False])
def test_a_warm_start_moves_no_draw_that_has_weights(corrective):
    """Its searches begin with the draws of the first round again."""
    rng = np.random.default_rng(8)
    images, y = rng.random((60, 8, 8)).astype(np.float32), rng.integers(0, 3, 60)
    images[np.arange(60), y, y] += 1
    draws = Draws(GaborBank().fit(images), n=8, rounds=20)
    columns = DrawnColumns(draws, images)
    learner = StructuralBoostingClassifier(
        alpha=2.0,
        rounds=4 if corrective else 12,
        n_entering=3,
        corrective=corrective,
        warm_start=True,
        calibrate=False,
        **MOVING,
    )
    for alpha in (2.0, 1.0):
        model = learner.set_params(alpha=alpha).fit(columns, y)
        last = model.history_[-1]
        # The objective of the last round is that of the features that the model holds.
        moved = DrawnColumns(draws.moved_to(model.moved_), images)
        moved.fit_scaling(model.scaling)
        S = moved.columns_of(model.support_).T @ last.coef.T + last.intercept
        loss = np.sum(logsumexp(S, axis=1) - S[np.arange(60), y])
        penalty = alpha * np.linalg.norm(last.coef, axis=0).sum()
        assert last.value == pytest.approx(loss + penalty, rel=1e-4)
