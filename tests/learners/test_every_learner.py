"""What all classifiers have in common: columns, compact classifiers, objects, checkpoints."""

import json
from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from visionshare import GroupFeatureClassifier, ShareBoost
from visionshare.columns import ArrayColumns
from visionshare.errors import InputError
from visionshare.generators.pixels import Pixels
from visionshare.generators.stumps import StumpColumns
from visionshare.learners.registry import CLASSIFIERS, classifier_class
from visionshare.losses import Logistic
from visionshare.penalties import GroupNorm, Ridge
from visionshare.search import (
    Exhaustive,
    Gradient,
    LargestDecrease,
    Orthogonal,
    PerCostSearch,
    RandomSubset,
    Screened,
)
from visionshare.solvers import Fista, Newton

SMALL = {
    "dense": {},
    "forward_greedy": {"rounds": 10},
    "greedytl": {"rounds": 4},
    "grfl": {"alpha": 2.0, "rounds": 6},
    "jointboost": {"rounds": 10},
    "mixed_norm": {"alpha": 2.0, "q": 2.0},
    "one_against_rest": {"rounds": 2},
    "shareboost": {"rounds": 4},
    "structural_boosting": {"alpha": 8.0, "rounds": 4},
}
# Names with options, and the objects that are equal to them.
EQUALS = [
    ("shareboost", {"criterion": "gradient"}, {"criterion": Gradient()}),
    (
        "shareboost",
        {"criterion": "orthogonal", "criterion_options": {"floor": 0.3}},
        {"criterion": Orthogonal(floor=0.3)},
    ),
    (
        "shareboost",
        {"search": "screened", "search_options": {"keep": 6}},
        {"search": Screened(keep=6)},
    ),
    ("shareboost", {"search": "random"}, {"search": RandomSubset()}),
    ("shareboost", {"alpha": 1e-3}, {"penalty": Ridge(1e-3)}),
    ("grfl", {"loss": "logistic", "alpha": 3.0}, {"loss": Logistic(), "alpha": 3.0}),
    ("grfl", {"solver": "newton"}, {"solver": Newton}),
    ("structural_boosting", {"penalty": "l1/l2"}, {"penalty": GroupNorm(2)}),
    ("structural_boosting", {"criterion": "bound"}, {"criterion": LargestDecrease()}),
    ("greedytl", {"search": "exhaustive"}, {"search": Exhaustive()}),
    ("forward_greedy", {"loss": "logistic"}, {"loss": Logistic()}),
]


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 150)
    X = rng.normal(size=(150, 20)).astype(np.float32)
    X[np.arange(150), y] += 2
    return X, np.array(["c", "a", "b"])[y]


@pytest.mark.parametrize("two", [False, True])
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_columns_train_what_becomes_a_compact_classifier(name, two, data):
    X, y = data
    y = y == "c" if two else y
    stumps = name == "jointboost"
    columns = StumpColumns.from_images(X) if stumps else ArrayColumns(X)
    model = classifier_class(name)(**SMALL[name]).fit(columns, y, np.ones(len(y)))
    family = columns.family if stumps else Pixels().fit(X)
    names = None if two else ["A", "B", "C"]
    compact = model.to_classifier(family, names, {"made": "here"})
    expected = model.predict(columns)
    assert_array_equal(compact.predict(X), expected if two else np.char.upper(expected))
    assert compact.metadata == {"made": "here"}
    assert len(compact.path) == len(model.path_) > 0
    assert model.decision_function(columns).shape == ((150,) if two else (150, 3))
    assert [j for step in model.path_ for j in step.feature] == model.support_.tolist()


@pytest.mark.parametrize(("name", "named", "objects"), EQUALS)
def test_objects_are_what_their_names_are(name, named, objects, data):
    learner = classifier_class(name)(**{**SMALL[name], **objects})
    again = clone(learner)
    for key, value in objects.items():
        assert again.get_params()[key] == value
    expected = classifier_class(name)(**{**SMALL[name], **named}).fit(*data)
    for model in (learner.fit(*data), again.fit(*data), learner.fit(*data)):
        assert_array_equal(model.coef_, expected.coef_)
        assert_array_equal(model.support_, expected.support_)
    assert all(" at 0x" not in repr(value) or value is Newton for value in objects.values())


@pytest.mark.parametrize(("name", "named", "objects"), EQUALS)
def test_a_checkpoint_knows_equal_settings(name, named, objects, data, tmp_path):
    if "checkpoint" not in classifier_class(name)().get_params():
        pytest.skip("without checkpoints")
    kept = {**SMALL[name], "checkpoint": tmp_path / "rounds"}
    classifier_class(name)(**{**kept, **named}).fit(*data)
    classifier_class(name)(**{**kept, **objects}).fit(*data)
    with pytest.raises(InputError, match=r"^checkpoint: got"):
        classifier_class(name)(**{**kept, **named, "scaling": "none"}).fit(*data)


def test_a_folder_of_an_earlier_format_is_refused(data, tmp_path):
    settings = {"rounds": 3, "checkpoint": tmp_path / "rounds"}
    ShareBoost(**settings).fit(*data)
    file = tmp_path / "rounds" / "run.json"
    identity = json.loads(file.read_text())
    for written in (json.dumps({**identity, "format": 1}), "[]", "not JSON"):
        file.write_text(written)
        with pytest.raises(InputError, match=r"^checkpoint: got"):
            ShareBoost(**settings).fit(*data)


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"criterion": Screened()}, "criterion"),
        ({"criterion": Gradient}, "criterion"),
        ({"criterion": Gradient(), "criterion_options": {"floor": 0.1}}, "criterion_options"),
        ({"criterion": "gradient", "criterion_options": {"floor": 0.1}}, "criterion_options"),
        ({"search": Gradient()}, "search"),
        ({"search": Screened(), "search_options": {"keep": 4}}, "search_options"),
        ({"penalty": 3}, "penalty"),
        ({"penalty": GroupNorm(2)}, "penalty"),
    ],
)
def test_other_objects_are_refused(wrong, named):
    with pytest.raises(InputError, match=rf"^{named}: got"):
        ShareBoost(**wrong).check_parameters()


def test_a_search_by_cost_may_hold_an_object(data):
    X, y = data
    columns = ArrayColumns.from_family(Pixels().fit(X), X)
    options = {"keep": 6, "per": "macs"}
    named = ShareBoost(3, search="screened", search_options=options).fit(columns, y)
    objects = ShareBoost(3, search=PerCostSearch(Screened(keep=6))).fit(columns, y)
    assert_array_equal(objects.coef_, named.coef_)


@pytest.mark.parametrize("name", sorted(set(CLASSIFIERS) - {"one_against_rest", "jointboost"}))
def test_one_against_rest_takes_any_classifier(name, data):
    X, y = data
    settings = {**SMALL[name], **({"rounds": 3} if "rounds" in SMALL[name] else {})}
    model = classifier_class("one_against_rest")(3, classifier_class(name)(**settings)).fit(X, y)
    scores = model.decision_function(X)
    for q, c in enumerate(model.classes_):
        alone = classifier_class(name)(**settings).fit(X, y == c)
        np.testing.assert_allclose(scores[:, q], alone.decision_function(X), rtol=1e-6, atol=1e-6)
    assert model.score(X, y) > 0.6


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_two_classes_must_have_weight(name, data):
    X, y = data
    learner = classifier_class(name)(**SMALL[name])
    for labels in (y, y == "b"):
        with pytest.raises(InputError, match=r"^sample_weight: got 'weights of one class alone'"):
            learner.fit(X, labels, (labels == labels[0]).astype(float))


def test_one_against_rest_needs_weight_in_every_class(data):
    X, y = data
    with pytest.raises(InputError, match=r"^sample_weight: got \"no weight of the class 'b'\""):
        classifier_class("one_against_rest")(2).fit(X, y, (y != "b").astype(float))


def test_a_solver_may_be_a_class_with_settings():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(90, 8)), np.arange(90) % 3
    X[np.arange(90), y] += 2
    settings = {"alpha": 8.0, "rounds": 4, "n_entering": 3}
    made = GroupFeatureClassifier(solver=partial(Fista, as_published=True), **settings).fit(X, y)
    named = GroupFeatureClassifier(solver="fista", **settings).fit(X, y)
    assert_allclose(made.coef_, named.coef_, atol=1e-3)
