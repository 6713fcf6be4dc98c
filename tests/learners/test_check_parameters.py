"""What ``fit`` would refuse is refused without data, and says which parameter it is."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from visionshare import (
    ForwardGreedyRegressor,
    GroupFeatureClassifier,
    GroupFeatureRegressor,
    MixedNormClassifier,
    OneAgainstRest,
    ShareBoost,
    StructuralBoostingClassifier,
)
from visionshare.errors import InputError
from visionshare.learners.registry import CLASSIFIERS, classifier_class
from visionshare.losses import SquaredHinge
from visionshare.penalties import make_penalty
from visionshare.solvers import AdaBoost, GradBoost

EVERY = [classifier_class(name) for name in CLASSIFIERS]
WEIGHED = [kind for kind in EVERY if "class_weight" in kind().get_params()]


def _refuses(learner, name):
    with pytest.raises(InputError, match=rf"^{name}: got"):
        learner.check_parameters()
    # Before the data are looked at.
    with pytest.raises(InputError, match=rf"^{name}: got"):
        learner.fit(None, None)


@pytest.mark.parametrize("kind", [*EVERY, ForwardGreedyRegressor, GroupFeatureRegressor])
def test_threads_and_seeds_are_checked(kind):
    for jobs in (0, "all", 1.5):
        _refuses(kind(n_jobs=jobs), "n_jobs")
    if "random_state" in kind().get_params():
        for seed in (-1, "x", 0.5):
            _refuses(kind(random_state=seed), "random_state")
        kind(random_state=np.int64(3), n_jobs=-1).check_parameters()
    OneAgainstRest(random_state=None).check_parameters()


@pytest.mark.parametrize("kind", WEIGHED)
@pytest.mark.parametrize("wrong", ["foo", 2.0, {0: -0.2, 1: 1.0}, {0: 0.0}, {0: float("nan")}])
def test_weights_of_classes_are_checked(kind, wrong):
    _refuses(kind(class_weight=wrong), "class_weight")


@pytest.mark.parametrize("kind", WEIGHED)
def test_weights_of_other_classes_alone_are_refused(kind):
    X, y = np.random.default_rng(0).normal(size=(20, 3)), np.arange(20) % 2
    with pytest.raises(InputError, match=r"^class_weight: got 7; .* 0, 1$"):
        kind(class_weight={7: 1.0}).fit(X, y)


def test_a_fold_may_lack_a_class_that_has_a_weight():
    X, y = np.random.default_rng(0).normal(size=(20, 3)), np.arange(20) % 2
    model = ShareBoost(2, class_weight={0: 1.0, 1: 2.0, 2: 1.0}).fit(X, y)
    assert_array_equal(model.coef_, ShareBoost(2, class_weight={1: 2.0}).fit(X, y).coef_)


@pytest.mark.parametrize(
    ("learner", "name"),
    [
        (GroupFeatureClassifier(solver="gradboost", shared_alpha=1.0), "shared_alpha"),
        (GroupFeatureClassifier(solver="gradboost", alpha=None, shared_alpha=1.0), "shared_alpha"),
        (GroupFeatureClassifier("logistic", q=1, solver=AdaBoost, shared_alpha=1), "shared_alpha"),
        (GroupFeatureClassifier(solver="adaboost", q=1), "loss"),
        (GroupFeatureClassifier(SquaredHinge(), solver="adaboost", q=1), "loss"),
        (GroupFeatureClassifier("logistic", solver="adaboost"), "q"),
        (GroupFeatureClassifier(solver="adaboost"), "q"),
        (GroupFeatureClassifier("exponential", solver="gradboost"), "loss"),
        (GroupFeatureClassifier("exponential", solver=GradBoost), "loss"),
        (GroupFeatureRegressor(solver="adaboost", q=1), "loss"),
        (MixedNormClassifier(2.0, solver="adaboost"), "q"),
        (StructuralBoostingClassifier("squared", penalty="l1", solver="adaboost"), "loss"),
    ],
)
def test_what_a_solver_cannot_carry_is_refused(learner, name):
    _refuses(learner, name)


@pytest.mark.parametrize(
    "learner",
    [
        GroupFeatureClassifier("logistic", q=1, solver="adaboost"),
        GroupFeatureClassifier("multinomial", q=np.inf, solver="adaboost"),
        GroupFeatureClassifier("exponential", solver="newton", shared_alpha=1.0),
        MixedNormClassifier(solver="adaboost"),
    ],
)
def test_what_a_solver_carries_is_accepted_and_learned(learner):
    learner.check_parameters()
    X = np.random.default_rng(0).normal(size=(60, 4))
    assert learner.set_params(max_iter=20).fit(X, X[:, 1] > 0).score(X, X[:, 1] > 0) > 0.5


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("alpha", "x"), ("alpha", None), ("alpha", -1.0), ("alpha", np.inf), ("beta", "x"),
        ("beta", None), ("beta", 0), ("search_options", 5), ("search_options", {1: 2}),
        ("criterion_options", 3), ("criterion_options", ["floor"]),
    ],
)  # fmt: skip
def test_wrong_types_are_typed_errors(name, value):
    _refuses(ShareBoost(penalty="l1", **{name: value}), name)


def test_penalties_take_numbers_of_numpy():
    assert make_penalty("ridge", np.float32(0.5)) == make_penalty("ridge", 0.5)


def test_a_norm_without_zeros_is_named_by_its_parameter():
    X = np.random.default_rng(0).normal(size=(20, 3))
    with pytest.raises(InputError, match=r"^penalty: got"):
        StructuralBoostingClassifier(penalty="l2^2").alpha_max(X, X[:, 0] > 0)
