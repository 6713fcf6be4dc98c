"""Inputs that no learner can use: each ends in our typed error, in ``fit`` and in use."""

import warnings

import numpy as np
import pytest
from sklearn.base import is_classifier

from visionshare import ImageClassifier
from visionshare.errors import InputError, InputTypeError
from visionshare.learners import ForwardGreedyRegressor, GroupFeatureRegressor, ShareBoost
from visionshare.learners.registry import CLASSIFIERS, classifier_class

SMALL = {
    "dense": {},
    "forward_greedy": {"rounds": 2},
    "greedytl": {"rounds": 2},
    "grfl": {"alpha": 2.0, "rounds": 2},
    "mixed_norm": {"alpha": 2.0, "q": 2.0},
    "structural_boosting": {"alpha": 4.0, "rounds": 2},
}
LEARNERS = {
    name: classifier_class(name)(**SMALL.get(name, {"rounds": 2})) for name in CLASSIFIERS
} | {
    "forward_greedy_regressor": ForwardGreedyRegressor(bound=4.0, rounds=2),
    "grfl_regressor": GroupFeatureRegressor(alpha=1.0, rounds=2),
    "image_classifier": ImageClassifier(time=0.1, n_jobs=1),
}
M = 30
Y = np.arange(M) % 3
X = np.random.default_rng(0).normal(size=(M, 6))
X[np.arange(M), Y] += 3


def _with(values, wrong):
    changed = np.array(values, np.float64)
    changed.flat[1] = wrong
    return changed


TABLES = {
    "NaN": _with(X, np.nan),
    "infinity": _with(X, np.inf),
    "no columns": X[:, :0],
    "no rows": X[:0],
    "a vector": X[:, 0],
    "a number": 3.0,
    "nothing": None,
    "words": np.full(X.shape, "a", object),
    "objects": np.full(X.shape, {}, object),
    "complex": X + 1j,
    "rows of two lengths": [[1, 2], [3]],
}
TARGETS = {
    "NaN": _with(Y, np.nan),
    "infinity": _with(Y, -np.inf),
    "nothing": None,
    "no entries": [],
    "too few": Y[:5],
    "a number": 3,
    "objects": [{}] * M,
    "Nones": [None] * M,
    "words and numbers": ["a", 1] * (M // 2),
    "complex": Y + 1j,
}
WEIGHTS = {
    "NaN": _with(np.ones(M), np.nan),
    "infinity": _with(np.ones(M), np.inf),
    "negative": -np.ones(M),
    "too few": np.ones(4),
    "a column": np.ones((M, 1)),
    "words": ["a"] * M,
    "a word": "balanced",
    "a number": np.nan,
    "a mapping": {1: 2},
}


@pytest.fixture(autouse=True)
def _no_warnings_of_few_trials():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        yield


@pytest.mark.parametrize("name", LEARNERS)
def test_fit_refuses_what_it_cannot_use(name):
    learner = LEARNERS[name]
    takes_weights = name != "image_classifier"
    calls = [lambda v=v: learner.fit(v, Y) for v in TABLES.values()]
    calls += [lambda v=v: learner.fit(X, v) for v in TARGETS.values()]
    calls += [
        lambda v=v: learner.fit(X, Y, sample_weight=v) for v in WEIGHTS.values()
    ] * takes_weights
    for call in calls:
        with pytest.raises(InputError):
            call()


@pytest.mark.parametrize("name", LEARNERS)
def test_a_fitted_learner_refuses_what_it_cannot_use(name):
    fitted = LEARNERS[name].fit(X, Y)
    for table in [*TABLES.values(), X[:, :3]]:
        with pytest.raises(InputError):
            fitted.predict(table)
    for targets in TARGETS.values():
        with pytest.raises(InputError):
            fitted.score(X, targets)
    share = (fitted.predict(X) == Y).mean()
    assert not is_classifier(fitted) or fitted.score(X, Y) == pytest.approx(share)


def test_messages_name_the_argument_and_what_was_given():
    learner = ShareBoost(rounds=2)
    with pytest.raises(InputError, match=r"X: got nan; accepted: a table \(m, d\) of finite numb"):
        learner.fit(TABLES["NaN"], Y)
    with pytest.raises(InputError, match=r"X: got \(30, 0\)"):
        learner.fit(TABLES["no columns"], Y)
    with pytest.raises(InputError, match=r"y: got nan; accepted: texts, whole numbers, booleans"):
        learner.fit(X, TARGETS["NaN"])
    with pytest.raises(InputError, match=r"y: got '5 targets'; accepted: one target for each of"):
        learner.fit(X, TARGETS["too few"])
    with pytest.raises(InputError, match=r"sample_weight: got nan; accepted: one finite weight"):
        learner.fit(X, Y, sample_weight=WEIGHTS["NaN"])
    # What is of a wrong type is a TypeError for scikit-learn, too.
    with pytest.raises(InputTypeError, match="not 'dict'"):
        learner.fit(TABLES["objects"], Y)
