"""Frequencies that move: gradients against differences, and a classifier that gets better."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import LogisticRegression

from visionshare import CompactClassifier, RandomFourier, load
from visionshare.learners.fine_tuning import FineTuning, fine_tune

# Whole pairs, halves of pairs, one feature twice.
CHOSEN = {"all": np.arange(12), "some": np.array([7, 2, 3, 2, 10])}


def _family(X, chosen="all", scaling="unit_variance"):
    family = RandomFourier(6, bandwidths=(0.7, 5.0), scaling=scaling, random_state=1).fit(X)
    return family if chosen == "all" else family.take(CHOSEN[chosen])


def _inputs(n=600, p=5, seed=0):
    return np.random.default_rng(seed).normal(size=(n, p)) * np.array([1.0, 2, 3, 1, 1])[:p]


def _direct(family, X, frequencies):
    """Return the features from their definition, in float64."""
    x = (X - family.input_offset_.astype(float)) * family.input_scale_.astype(float)
    phases = (x @ frequencies.T)[:, family.ids_ // 2]
    return np.where(family.ids_ % 2, np.sin(phases), np.cos(phases))


@pytest.mark.parametrize("chosen", CHOSEN)
def test_gradients_are_those_of_differences(chosen):
    X = _inputs()
    features = _family(X, chosen).tunable()
    values, seen = features.forward(X)
    G = np.random.default_rng(2).normal(size=values.shape).astype(np.float32)
    (gradients,) = features.backward(X, values, seen, G)
    family = features.family()
    assert gradients.shape == family.frequencies_.shape
    assert_allclose(features.parameters[0].std(axis=1), np.ones(len(gradients)), atol=0.8)
    for at in np.ndindex(gradients.shape):
        sums = []
        for step in (1e-5, -1e-5):
            moved = family.frequencies_.astype(np.float64)
            moved[at] += step / family.bandwidths_[at[0]]
            sums.append(np.sum(_direct(family, X, moved) * G))
        assert_allclose(gradients[at], (sums[0] - sums[1]) / 2e-5, rtol=1e-3, atol=2e-3)


@pytest.mark.parametrize("chosen", CHOSEN)
def test_values_are_those_of_the_family(chosen):
    X = _inputs()
    family = _family(X, chosen)
    features = family.tunable()
    assert_allclose(features.forward(X)[0], family.transform(X), atol=1e-5)
    features.parameters[0] += np.float32(0.1)
    features.moved()
    moved = features.family()
    assert_allclose(features.forward(X)[0], moved.transform(X), atol=1e-5)
    assert not np.allclose(moved.transform(X), family.transform(X), atol=0.01)
    # Of the same bandwidths; what was given stays as it was.
    assert_array_equal(moved.bandwidths_, family.bandwidths_)
    assert_array_equal(moved.groups, family.groups)
    assert_array_equal(family.frequencies_, _family(X, chosen).frequencies_)


def test_bytes_are_numbers_from_0_to_1():
    images = np.random.default_rng(0).integers(0, 256, (40, 4, 5)).astype(np.uint8)
    features = _family(images, scaling="none").tunable()
    floats = _family(images / 255, scaling="none").tunable()
    assert_allclose(features.forward(images)[0], floats.forward(images / 255)[0], atol=1e-6)


def test_gradients_are_the_same_on_any_number_of_threads():
    X = _inputs(1500)
    features = _family(X).tunable()
    (values, seen), (other, _) = features.forward(X), features.forward(X, n_jobs=2)
    assert_array_equal(values, other)
    G = np.random.default_rng(0).normal(size=values.shape)
    one, two = (features.backward(X, values, seen, G, jobs) for jobs in (1, 2))
    assert_array_equal(one[0], two[0])


def test_moving_frequencies_makes_a_better_classifier(tmp_path):
    X = _inputs(900)
    y = (np.cos(1.3 * X[:, 0] - 0.4 * X[:, 1]) > 0.2).astype(int)
    start = CompactClassifier(_family(X[:600]), np.zeros((2, 12)), np.zeros(2), np.arange(2))
    settings = FineTuning(
        epochs=40, batch=50, rate=0.03, head="linear", validation_fraction=0.0, random_state=3
    )
    moved = fine_tune(start, X[:600], y[:600], settings)
    accuracy = np.mean(moved.predict(X[600:]) == y[600:])
    values = start.family.transform(X)
    still = LogisticRegression(max_iter=1000).fit(values[:600], y[:600])
    assert accuracy > still.score(values[600:], y[600:]) + 0.1
    two = fine_tune(start, X[:600], y[:600], settings, n_jobs=2)
    assert_array_equal(two.weights, moved.weights)
    assert_array_equal(two.family.frequencies_, moved.family.frequencies_)
    moved.save(tmp_path / "moved.safetensors")
    again = load(tmp_path / "moved.safetensors")
    assert_array_equal(again.decision_function(X), moved.decision_function(X))
