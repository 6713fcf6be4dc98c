"""Sparsification: the guarantee, the counter-examples, and what becomes of a classifier."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_digits

from visionshare import CompactClassifier, Pixels, ShareBoost
from visionshare.classifier import ExitRule
from visionshare.datasets import Preprocessing
from visionshare.errors import InputError
from visionshare.learners.sparsification import features_needed, sparsify


def test_draws_give_the_weights_on_average():
    w = np.array([3.0, -1.0, 0.0, 0.5])
    mean = np.mean([sparsify(w, 3, seed) for seed in range(4000)], axis=0)
    assert_allclose(mean, w, atol=0.1)
    W = np.array([[3.0, -1.0, 0.0], [1.0, 2.0, 0.0]])
    mean = np.mean([sparsify(W, 2, seed) for seed in range(4000)], axis=0)
    assert_allclose(mean, W, atol=0.1)


def test_the_norm_stays_and_features_are_few():
    w = np.random.default_rng(0).normal(size=500)
    for n in (1, 20, 400):
        sparse = sparsify(w, n, 3)
        assert np.count_nonzero(sparse) <= n
        assert_allclose(np.abs(sparse).sum(), np.abs(w).sum())
        assert (np.sign(sparse[sparse != 0]) == np.sign(w[sparse != 0])).all()
    assert_array_equal(sparsify(w, 20, 3), sparsify(w, 20, 3))
    assert (sparsify(w, 20, 3) != sparsify(w, 20, 4)).any()


@pytest.mark.parametrize("k", [1, 4])
def test_as_many_draws_as_the_guarantee_asks_for_are_enough(k):
    rng = np.random.default_rng(0)
    W = rng.normal(size=(k, 300))
    W *= 2 / np.abs(W).max(axis=0).sum()
    X = rng.uniform(-1, 1, (500, 300))
    eps, delta = 0.25, 0.05
    n = features_needed(2.0, 1.0, eps, delta, k)
    worse = 0
    for seed in range(60):
        off = np.abs(X @ (sparsify(W, n, seed) - W).T).max(axis=1).mean()
        worse += off > eps
    assert worse <= 3


def test_the_guarantee_grows_as_printed():
    base = features_needed(1.0, 1.0, 0.01)
    assert_allclose(features_needed(3.0, 1.0, 0.01), 9 * base, rtol=1e-3)
    assert_allclose(features_needed(1.0, 3.0, 0.01), 9 * base, rtol=1e-3)
    assert_allclose(features_needed(1.0, 1.0, 0.03), base / 9, rtol=1e-3)
    assert features_needed(1.0, 1.0, 0.01, 0.001) > base
    assert features_needed(1.0, 1.0, 0.01, n_scores=10) > base
    assert features_needed(0.0, 1.0, 0.1) == 0


def test_the_largest_weights_fail_where_draws_succeed():
    # The label is in z_1 (weakly) and z_s (weakly); z_1 is copied into few features with large
    # weights, the others into many with small ones: the large weights know of z_1 alone.
    rng = np.random.default_rng(0)
    m, groups, copies = 6000, 20, 200
    y = rng.choice([-1.0, 1.0], m)
    z = np.where(rng.random((m, groups)) < 0.5 + 0.5 * 0.45, y[:, None], -y[:, None])
    columns, weights = [], []
    for g in range(groups):
        n = 4 if g == 0 else copies
        noisy = np.where(rng.random((m, n)) < 7 / 8, z[:, [g]], -z[:, [g]])
        columns.append(noisy)
        weights.append(np.full(n, (2.0 if g == 0 else 1.0) / n))
    X, w = np.hstack(columns), np.concatenate(weights)
    n = 150
    largest = np.where(np.abs(w) >= np.sort(np.abs(w))[-4], w, 0)
    errors = {
        "all": np.mean(np.sign(X @ w) != y),
        "largest": np.mean(np.sign(X @ largest) != y),
        "drawn": np.mean([np.mean(np.sign(X @ sparsify(w, n, s)) != y) for s in range(5)]),
    }
    assert errors["drawn"] < errors["all"] + 0.05
    assert errors["largest"] > errors["drawn"] + 0.1


def test_a_classifier_loses_features():
    rng = np.random.default_rng(0)
    family = Pixels().fit(np.zeros((1, 40)))
    W = rng.normal(size=(3, 40)).astype(np.float32)
    model = CompactClassifier(family, W, np.arange(3, dtype=np.float32), np.array(["a", "b", "c"]))
    sparse = sparsify(model, 10)
    assert sparse.n_features <= 10
    X = rng.normal(size=(5, 40))
    drawn = sparsify(W.astype(np.float64), 10)
    expected = X @ drawn.T + np.arange(3)
    assert_allclose(sparse.decision_function(X), expected, rtol=1e-4, atol=1e-4)


def test_a_classifier_keeps_all_that_is_not_of_its_features():
    images = load_digits().images.astype(np.uint8) * 15
    family = Pixels().fit(images)
    learner = ShareBoost(rounds=8).fit(family.transform(images[:300]), load_digits().target[:300])
    steps = Preprocessing("automatic", contrast=True, crop=True, fit="box", margin=1)
    model = replace(
        learner.to_classifier(family, metadata={"note": "kept"}),
        temperature=2.5,
        exit_rule=ExitRule((2, 4), (1.0, 1.0)),
        preprocessing=steps,
    )
    sparse = sparsify(model, 5)
    assert sparse.preprocessing == steps
    assert sparse.metadata == {"note": "kept"}
    assert sparse.temperature == 2.5
    assert_array_equal(sparse.classes_, model.classes_)
    assert_array_equal(sparse.intercept, model.intercept)
    # Rounds of the path, and so the rule that names them, were of other features.
    assert (sparse.path, sparse.exit_rule) == ((), None)


def test_sizes_of_features_count():
    w = np.array([1.0, 1.0])
    assert_allclose(sparsify(w, 50, scales=np.array([1.0, 0.0])), [1.0, 0.0])


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ((np.zeros(3), 2), "weights"), ((np.array([np.nan]), 2), "weights"),
        ((np.array(["a"]), 2), "weights"), ((np.ones((2, 2, 2)), 2), "weights"),
        ((np.ones(3), 0), "n"), ((np.ones(3), 1.5), "n"), ((np.ones(3), True), "n"),
        ((np.ones(3), 2**63), "n"),
        ((np.ones(3), 2, 0, np.ones(2)), "scales"), ((np.ones(3), 2, 0, -np.ones(3)), "scales"),
    ],
)  # fmt: skip
def test_wrong_arguments_are_refused(arguments, name):
    with pytest.raises(InputError, match=rf"^{name}: got"):
        sparsify(*arguments)


@pytest.mark.parametrize(
    ("name", "value"),
    [("norm", -1.0), ("lipschitz", np.inf), ("eps", 0.0), ("delta", 1.0), ("n_scores", 0)],
)
def test_wrong_guarantees_are_refused(name, value):
    arguments = {"norm": 1.0, "lipschitz": 1.0, "eps": 0.1, name: value}
    with pytest.raises(InputError, match=rf"^{name}: got"):
        features_needed(**arguments)
