"""Weights of classes: what is accepted, and what an example counts."""

import numpy as np
import pytest
from sklearn.utils.class_weight import compute_class_weight

from visionshare.errors import InputError
from visionshare.learners.class_weights import by_number, check_class_weight, weights_of_classes


@pytest.mark.parametrize("wrong", ["equal", 2.0, ["a"], {"a": 0.0}, {"a": -1}, {"a": np.inf}])
def test_what_is_no_weight_of_classes_is_refused(wrong):
    with pytest.raises(InputError, match="class_weight"):
        check_class_weight(wrong)


@pytest.mark.parametrize("wrong", [{"a": "2"}, {"a": True}, {"c": 1.0}])
def test_wrong_weights_and_unknown_classes_are_refused(wrong):
    with pytest.raises(InputError, match="class_weight"):
        check_class_weight(wrong, ["a", "b"])
    with pytest.raises(InputError, match="class_weight"):
        by_number(wrong, ["a", "b"])


def test_balanced_is_that_of_scikit_learn():
    y = np.random.default_rng(0).integers(0, 5, 100) ** 2 // 5
    classes = np.unique(y)
    index = np.searchsorted(classes, y)
    expected = compute_class_weight("balanced", classes=classes, y=y)
    np.testing.assert_allclose(weights_of_classes("balanced", index, classes.tolist()), expected)


def test_a_class_that_is_not_named_counts_one():
    y = np.array([0, 1, 2])
    assert weights_of_classes({"b": 3}, y, ["a", "b", "c"]).tolist() == [1.0, 3.0, 1.0]
    assert weights_of_classes(None, y, ["a", "b", "c"]).tolist() == [1.0, 1.0, 1.0]
    assert by_number({"b": 3}, ["a", "b", "c"]) == {1: 3}
    assert by_number(None, ["a"]) is None
