"""Anchors that move: gradients against differences, and a classifier that gets better."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_digits

from visionshare import KernelAnchors, ShareBoost
from visionshare.errors import InputError
from visionshare.learners.fine_tuning import FineTuning, fine_tune

KINDS = ["tapered", "gaussian"]


def _chosen(kind, X):
    family = KernelAnchors(kind, 6, 3, 5, random_state=1).fit(X)
    # Two radii of one anchor, one without a limit, and pairs of which only some numbers are in use.
    rng = np.random.default_rng(0)
    return family.take(np.sort(rng.choice(family.n_features_, family.n_features_ // 2, False)))


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_are_those_of_differences(kind):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(70, 6))
    family = _chosen(kind, X)
    if kind == "tapered":
        # No example so near to a border that a step crosses it: there is a kink.
        distances = np.linalg.norm(
            family.vectors(X)[:, None] - family.anchors_[family.pairs_], axis=2
        )
        X = X[(np.abs(distances - family.radii_) > 1e-2).all(axis=1)]
        assert len(X) > 30
    features = family.tunable()
    values, seen = features.forward(X)
    G = rng.normal(size=values.shape).astype(np.float32)
    gradients = features.backward(X, values, seen, G)
    assert [g.shape for g in gradients] == [p.shape for p in features.parameters]
    for parameters, gradient in zip(features.parameters, gradients, strict=True):
        for at in list(np.ndindex(parameters.shape))[::3]:
            before, sums = parameters[at], []
            for step in (1e-3, -1e-3):
                parameters[at] = before + np.float32(step)
                features.moved()
                sums.append(np.sum(features.forward(X)[0].astype(np.float64) * G))
            parameters[at] = before
            features.moved()
            expected = (sums[0] - sums[1]) / 2e-3
            assert_allclose(gradient[at], expected, rtol=0.03, atol=0.01)


@pytest.mark.parametrize("kind", KINDS)
def test_a_pair_has_an_anchor_of_its_own_and_values_stay(kind):
    X = np.random.default_rng(3).normal(size=(40, 6))
    family = _chosen(kind, X)
    features = family.tunable()
    assert_allclose(features.forward(X)[0], family.transform(X), rtol=1e-6, atol=1e-7)
    features.moved()
    own = features.family()
    assert len(own.anchors_) == len(own.radii_) == len(family.radii_)
    assert_allclose(own.transform(X), family.transform(X), rtol=1e-4, atol=1e-5)
    assert_array_equal(own.groups is None, family.groups is None)


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_are_the_same_on_any_number_of_threads(kind):
    X = np.random.default_rng(4).normal(size=(200, 6))
    features = _chosen(kind, X).tunable()
    values, seen = features.forward(X, n_jobs=2)
    G = np.ones_like(values)
    for one, two in zip(
        features.backward(X, values, seen, G), features.backward(X, values, seen, G, 2), strict=True
    ):
        assert_array_equal(one, two)


def test_hard_borders_do_not_move():
    family = KernelAnchors(n_anchors=3).fit(np.eye(5))
    with pytest.raises(InputError, match=r"^kind: got 'linear'"):
        family.tunable()
    with pytest.raises(InputError, match=r"^kind: got 'linear'"):
        KernelAnchors().check_tunable()


def test_moving_anchors_makes_a_better_classifier():
    digits = load_digits()
    X, y = digits.images.astype(np.uint8) * 15, digits.target
    pool = KernelAnchors("tapered", 30, 4, 10, scaling="none").fit(X[:900])
    greedy = ShareBoost(rounds=4).fit(pool.transform(X[:900]), y[:900]).to_classifier(pool)
    settings = FineTuning(epochs=8, batch=32, rate=0.02, head="linear")
    moved = fine_tune(greedy, X[:900], y[:900], settings)
    assert np.mean(moved.predict(X[900:]) != y[900:]) < np.mean(greedy.predict(X[900:]) != y[900:])
    assert not np.allclose(moved.family.anchors_, greedy.family.with_own_anchors().anchors_)
