"""Leave-one-class-out: what is left out, what is drawn, and that related sources get weights."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from visionshare import GreedyTL
from visionshare.datasets.sampling import sample_one_class
from visionshare.errors import InputError
from visionshare.learners.leave_one_class_out import leave_one_class_out

NAMES = ["a", "b", "c", "d"]


def _data(m=160, seed=0):
    """Class a is more of c, and b of d: a's source responds to c even more, and so on."""
    rng = np.random.default_rng(seed)
    y = np.array(NAMES)[np.arange(m) % 4]
    indicators = (y[:, None] == np.array(NAMES)).astype(float)
    scores = indicators + 2 * indicators[:, [2, 3, 0, 1]] + 0.2 * rng.normal(size=(m, 4))
    return rng.normal(size=(m, 6)), scores, y


def test_a_class_learns_from_its_relative_and_never_from_itself():
    X, scores, y = _data()
    result = leave_one_class_out(X, scores, y, NAMES, draws=5)
    assert result.targets == result.sources == tuple(NAMES)
    assert np.isnan(np.diag(result.weights)).all()
    for target, relative in enumerate((2, 3, 0, 1)):
        assert np.nanargmax(result.weights[target]) == relative
        assert result.weights[target, relative] > 0
    assert result.accuracy.shape == (4, 5)
    assert result.accuracy.mean() > 0.8


def test_weights_and_accuracy_are_those_of_the_learner():
    X, scores, y = _data()
    learner = GreedyTL(rounds=3, alpha=2.0)
    result = leave_one_class_out(
        X, scores, y, NAMES, learner=learner, positives=4, negatives=6, draws=2, random_state=7
    )
    kept, means = [0, 1, 3], np.zeros(4)
    for draw in range(2):
        rows = sample_one_class(y, "c", 4, 6, np.random.default_rng([7, 2, draw]))
        Z = np.hstack([X, scores[:, kept]])
        model = GreedyTL(rounds=3, alpha=2.0).fit(Z[rows], y[rows] == "c")
        for j, w in zip(model.support_, model.scaled_coef_[0], strict=True):
            if j >= 6:
                means[kept[j - 6]] += w / 2
        rest = np.setdiff1d(np.arange(len(y)), rows)
        right = model.predict(Z[rest]) == (y[rest] == "c")
        sides = [right[(y[rest] == "c") == side].mean() for side in (True, False)]
        assert_allclose(result.accuracy[2, draw], np.mean(sides))
    assert_allclose(result.weights[2, kept], means[kept])
    assert np.isnan(result.weights[2, 2])


def test_several_scores_of_one_class_are_all_left_out():
    X, scores, y = _data()
    twice = np.hstack([scores, scores[:, :1]])
    result = leave_one_class_out(
        X, twice, y, [*NAMES, "a"], source_names=["1: a", "b", "c", "d", "2: a"], draws=2
    )
    assert result.sources[-1] == "2: a"
    assert np.isnan(result.weights[0, [0, 4]]).all()
    assert np.isfinite(result.weights[1, [0, 4]]).all()


@pytest.mark.parametrize("kind", [int, float, np.float32, np.uint8, str, object])
@pytest.mark.parametrize("source_classes", [[0, 1, 2, 3], [0.0, 1.0, 2.0, 3.0], list("0123")])
def test_a_class_is_itself_in_every_type(kind, source_classes):
    X, scores, y = _data()
    numbers = np.searchsorted(NAMES, y)
    expected = leave_one_class_out(X, scores, y, NAMES, draws=2)
    result = leave_one_class_out(X, scores, numbers.astype(kind), source_classes, draws=2)
    assert np.isnan(np.diag(result.weights)).all()
    assert_array_equal(result.weights, expected.weights)
    names = np.array(source_classes)
    result = leave_one_class_out(X, scores, numbers.astype(kind), names, draws=2)
    assert_array_equal(result.weights, expected.weights)


def test_texts_that_read_as_one_number_are_different_classes():
    X, scores, y = _data()
    names = ["01", "1", "1.0", "one"]
    result = leave_one_class_out(X, scores, np.array(names)[np.searchsorted(NAMES, y)], names)
    assert np.isnan(np.diag(result.weights)).all()
    assert np.isnan(result.weights).sum() == 4


def test_no_example_left_is_no_accuracy():
    X, scores, y = _data(20)
    result = leave_one_class_out(X, scores, y, NAMES, positives=5, negatives=5, draws=1)
    assert np.isnan(result.accuracy).all()


@pytest.mark.parametrize(
    ("change", "name"),
    [({"positives": 41}, "positives"), ({"negatives": 0}, "negatives"), ({"draws": 1.5}, "draws"),
     ({"source_names": ["a"]}, "source_classes"), ({"learner": GreedyTL(0)}, "rounds"),
     ({"draws": True}, "draws")],
)  # fmt: skip
def test_wrong_arguments_are_refused(change, name):
    X, scores, y = _data()
    with pytest.raises(InputError, match=rf"^{name}: got"):
        leave_one_class_out(X, scores, y, NAMES, **change)


def test_arrays_that_do_not_fit_are_refused():
    X, scores, y = _data()
    with pytest.raises(InputError, match=r"^scores: got"):
        leave_one_class_out(X[:-1], scores, y, NAMES)
    with pytest.raises(InputError, match="'a'"):
        leave_one_class_out(np.empty((len(y), 0)), scores[:, :1], y, ["a"])
