"""Labels and probabilities from scores."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import special

from visionshare.scores import flat_scores, predict_labels, softmax, two_sided

SCORES = np.random.default_rng(0).normal(size=(50, 4)).astype(np.float32) * 30


@pytest.mark.parametrize("temperature", [0.3, 1.0, 7.0])
def test_softmax_is_that_of_scipy(temperature):
    expected = special.softmax(SCORES.astype(np.float64) / temperature, axis=1)
    assert_allclose(softmax(SCORES, temperature), expected, rtol=1e-14)


def test_one_score_is_the_difference_of_two():
    scores = SCORES[:, :1]
    assert_allclose(softmax(scores)[:, 1], special.expit(scores[:, 0].astype(float)), rtol=1e-6)
    assert_array_equal(np.diff(two_sided(scores), axis=1), scores)
    assert_array_equal(flat_scores(scores), scores[:, 0])
    assert flat_scores(SCORES) is SCORES


def test_labels_are_those_of_the_largest_score():
    classes = np.array(["a", "b", "c", "d"])
    assert_array_equal(predict_labels(classes, SCORES), classes[SCORES.argmax(axis=1)])
    expected = np.where(SCORES[:, 0] > 0, "b", "a")
    assert_array_equal(predict_labels(classes[:2], SCORES[:, :1]), expected)
