"""Numbers at the edge: the answers of usual ones, or an error that says too large or too small."""

import re
import warnings
from functools import cache

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone, is_classifier

from visionshare.columns import ArrayColumns
from visionshare.errors import InputError
from visionshare.generators.pixels import Pixels
from visionshare.learners import (
    ForwardGreedyRegressor,
    GroupFeatureRegressor,
    ShareBoost,
    StructuralBoostingRegressor,
)
from visionshare.learners.registry import CLASSIFIERS, classifier_class

SMALL = {
    "dense": {},
    "forward_greedy": {"rounds": 4},
    "greedytl": {"rounds": 3},
    "grfl": {"alpha": 2.0, "rounds": 3},
    "jointboost": {"rounds": 4},
    "mixed_norm": {"alpha": 2.0, "q": 2.0},
    "one_against_rest": {"rounds": 2},
    "shareboost": {"rounds": 3},
    "structural_boosting": {"alpha": 4.0, "rounds": 3},
}
LEARNERS = {name: classifier_class(name)(**SMALL[name]) for name in CLASSIFIERS} | {
    "forward_greedy_regressor": ForwardGreedyRegressor(bound=4.0, rounds=60),
    "grfl_regressor": GroupFeatureRegressor(alpha=1.0, rounds=3),
    "structural_boosting_regressor": StructuralBoostingRegressor(alpha=1.0, rounds=3),
}
# Powers of two change no bit of a usual number: 10^-322 to 10^307, some at the edge of float32.
EXPONENTS = [-1070, -1000, -664, -133, -99, 99, 126, 400, 664, 1020]


def _data(dtype=np.float64):
    rng = np.random.default_rng(0)
    y = np.arange(60) % 3
    X = rng.normal(size=(60, 6))
    X[np.arange(60), y] += 3
    return X.astype(dtype), y, 2 * X[:, 0]


def _targets(name):
    _, y, numbers = _data()
    return y if is_classifier(LEARNERS[name]) else numbers


@cache
def _expected(name, dtype):
    X = _data(dtype)[0]
    model = clone(LEARNERS[name]).fit(X, _targets(name))
    score = model.score(X, _targets(name))
    assert score > 0.5, "the learner learns nothing of usual numbers"
    return model.predict(X)


def _same_or_refused(name, dtype, factors):
    """Return whether a learner answers for scaled columns as for usual ones; else it refuses."""
    X = _data(dtype)[0]
    with np.errstate(over="ignore", under="ignore"):
        scaled = (X * np.asarray(factors, dtype)).astype(dtype)
    if not np.isfinite(scaled).all():
        pytest.skip("no numbers of this dtype")
    try:
        with warnings.catch_warnings():
            # Overflow is looked for before, and not heard of after.
            warnings.simplefilter("error", RuntimeWarning)
            predicted = clone(LEARNERS[name]).fit(scaled, _targets(name)).predict(scaled)
    except InputError as error:
        if error.argument != "X" or not re.search("too (large|small)", str(error)):
            raise
        return False
    np.testing.assert_allclose(predicted, _expected(name, dtype), rtol=1e-3, atol=1e-3)
    return True


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", LEARNERS)
def test_columns_of_any_size_give_the_same_answers_or_are_refused(name, dtype):
    narrow = name == "jointboost" or dtype == np.float32
    exponents = [e for e in EXPONENTS if dtype == np.float64 or abs(e) < 127]
    answered = [_same_or_refused(name, dtype, 2.0**e) for e in exponents]
    assert sum(answered) >= (1 if narrow else 6)
    # Columns of all sizes, and one alone that is too large or too small.
    widest = 90 if narrow else 660
    assert _same_or_refused(name, dtype, 2.0 ** np.array([-widest, widest, 9, 0, -9, 2]))
    for factor in (1e-320, 1e305) if dtype == np.float64 else (1e-42, 1e37):
        assert not _same_or_refused(name, dtype, np.array([1, factor, 1, 1, 1, 1]))


@pytest.mark.parametrize("factor", [1e-200, 1e200])
@pytest.mark.parametrize("name", LEARNERS)
def test_weights_and_targets_of_extreme_size_are_refused(name, factor):
    X, y, numbers = _data()
    learner = clone(LEARNERS[name])
    with pytest.raises(InputError, match=r"^sample_weight: got 'values up to .*too (large|small)"):
        learner.fit(X, _targets(name), np.full(60, factor))
    if not is_classifier(learner):
        for targets in (numbers * factor, np.column_stack([numbers, numbers * factor])):
            with pytest.raises(InputError, match=r"^y: got 'values up to .*too (large|small)"):
                learner.fit(X, targets)
            with pytest.raises(InputError, match=r"^y: got"):
                learner.fit(ArrayColumns(X), targets)
        return
    if "class_weight" in learner.get_params():
        learner.set_params(class_weight=dict.fromkeys(range(3), factor))
        with pytest.raises(InputError, match=r"^class_weight: got 'values up to"):
            learner.fit(X, y)


@pytest.mark.parametrize("factor", [1e-200, 1e200])
@pytest.mark.parametrize(
    ("name", "parameter"),
    [("shareboost", "tol"), ("grfl", "alpha"), ("greedytl", "alpha"), ("mixed_norm", "alpha")],
)
def test_parameters_of_extreme_size_are_refused(name, parameter, factor):
    learner = classifier_class(name)(**{**SMALL[name], parameter: factor})
    with pytest.raises(InputError, match=rf"^{parameter}: got 'values up to .*too (large|small)"):
        learner.check_parameters()


@pytest.mark.parametrize("alpha", [1e-30, 1e-12, 1e30])
@pytest.mark.parametrize("name", ["grfl", "greedytl"])
def test_weak_and_strong_penalties_are_answered_or_refused(name, alpha):
    X, y, _ = _data()
    learner = classifier_class(name)(**{**SMALL[name], "alpha": alpha, "rounds": 2})
    if name == "greedytl" and alpha < 1e-12:
        with pytest.raises(InputError, match=r"^alpha: got 'values up to 1e-30'.*too small"):
            learner.fit(X, y)
        return
    # What is punished so much is no feature.
    assert learner.fit(X, y).score(X, y) > 0.7 or len(learner.support_) == 0


@pytest.mark.parametrize("penalty", ["l1", "l1/linf"])
def test_targets_beyond_the_steps_of_adaboost_are_refused(penalty):
    X, _, numbers = _data()
    learner = StructuralBoostingRegressor(alpha=1.0, rounds=3, penalty=penalty)
    targets = np.column_stack([numbers, 2 * numbers])
    expected = clone(learner).fit(X, targets).predict(X)
    shifted = clone(learner).fit(X, targets + 1e5).predict(X)
    np.testing.assert_allclose(shifted - 1e5, expected, atol=0.2)
    large = clone(learner).fit(X, 20 * targets)
    assert large.score(X, 20 * targets) > 0.9
    for factor in (1e3, 1e4):
        with pytest.raises(InputError, match=r"^y: got .* 'adaboost'.*too large"):
            learner.fit(X, factor * targets)


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_scores_are_finite_or_refused(name):
    X, y, _ = _data()
    model = clone(LEARNERS[name]).fit(X * 1e-20, y)
    huge = np.full((2, 6), 1e305)
    with pytest.raises(InputError, match=r"^(X|images): got .* too large"):
        model.predict_proba(huge)


def test_sparse_columns_of_extreme_size_are_answered_too():
    X, y, _ = _data()
    learner = clone(LEARNERS["grfl"])
    expected = learner.fit(csr_array(X), y).predict(csr_array(X))
    for factor in (2.0**-600, 2.0**600):
        scaled = csr_array(X * factor)
        np.testing.assert_array_equal(clone(learner).fit(scaled, y).predict(scaled), expected)


@pytest.mark.parametrize("factor", [1e-200, 1e200])
def test_a_classifier_of_float32_refuses_weights_that_it_cannot_hold(factor):
    X, y, _ = _data()
    model = ShareBoost(3).fit(X * factor, y)
    with pytest.raises(InputError, match=r"^coef_: got 'values up to .*too (large|small)"):
        model.to_classifier(Pixels().fit(X))


@pytest.mark.parametrize("factor", [1e-200, 1e200])
def test_images_of_extreme_size_are_refused(factor):
    images = np.random.default_rng(0).random((8, 4, 4))
    with pytest.raises(InputError, match=r"^images: got 'values up to .*too (large|small)"):
        Pixels().fit(images * factor)
