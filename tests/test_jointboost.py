"""JointBoost: rounds by their definition, the loss, sharing, the path."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import load_digits

from scripts.reproduce.jointboost import JointBoost
from visionshare.generators.stumps import StumpColumns


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return StumpColumns.from_images(X[:600], n_thresholds=8), y[:600]


def _played(model, columns, y, omega=None):
    """Play the rounds by the definition: yield each with the weights before it, z and h."""
    omega = np.ones(len(y)) if omega is None else omega
    z = np.where(y[:, None] == np.arange(y.max() + 1), 1.0, -1.0)
    H = np.zeros_like(z)
    for r in model.rounds_:
        w = omega[:, None] * np.exp(-z * H)
        above = columns.take(np.array([r.feature]), scaled=False)[:, 0] == 0
        h = np.where(r.shared, np.where(above[:, None], r.a + r.b, r.b), r.constants)
        yield r, w, z, above, h
        H += h
    last = model.path_[-1]
    features = columns.take(model.support_, scaled=False)
    assert_allclose(features @ last.weights.T + last.intercept, H, rtol=1e-6, atol=1e-6)


def test_numbers_are_weighted_class_means(digits):
    columns, y = digits
    omega = np.random.default_rng(0).random(len(y))
    model = JointBoost(15).fit(columns, y, omega)
    for r, w, z, above, h in _played(model, columns, y, omega):
        for side, value in ((above, r.a + r.b), (~above, r.b)):
            block = np.ix_(side, r.shared)
            assert_allclose(value, np.average(z[block], weights=w[block]), rtol=1e-8, atol=1e-12)
        means = np.sum(w * z, axis=0) / w.sum(axis=0)
        assert_allclose(r.constants[~r.shared], means[~r.shared], rtol=1e-8, atol=1e-12)
        error = np.sum(w * (z - h) ** 2)
        assert_allclose(r.error, error / w.sum(), rtol=1e-8)
        # A constant for every class would leave that much more.
        assert_allclose(r.gain, (np.sum(w * (z - means) ** 2) - error) / w.sum(), rtol=1e-6)


def test_the_loss_falls_by_what_each_round_fits(digits):
    columns, y = digits
    model = JointBoost(30).fit(columns, y)
    before = 1.0
    for r, w, _, _, h in _played(model, columns, y):
        assert_allclose(w.sum() / w.size, before, rtol=1e-9)
        # With a weighted mean f, Σ w exp(−z f) = Σ w (cosh f − f sinh f): never more than Σ w.
        assert_allclose(r.loss, np.sum(w * (np.cosh(h) - h * np.sinh(h))) / w.size, rtol=1e-9)
        assert r.loss <= before
        before = r.loss


def test_classes_that_move_together_share_a_stump():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 6, 1200)
    X = rng.normal(size=(1200, 8))
    # Input 2 tells three classes from the other three; each class has an input of its own too.
    X[:, 2] += 6 * (y < 3)
    columns = StumpColumns.from_images(X)
    first = JointBoost(1).fit(columns, y).rounds_[0]
    assert columns.family.inputs_[first.feature] == 2
    assert set(np.flatnonzero(first.shared)) in ({0, 1, 2}, {3, 4, 5})


def test_the_path_is_of_each_number_of_stumps(digits):
    columns, y = digits
    model = JointBoost(60).fit(columns, y)
    assert [step.n_features for step in model.path_] == list(range(1, len(model.support_) + 1))
    assert len(model.support_) < len(model.rounds_)
    scores = columns.take(model.support_, scaled=False) @ model.path_[-1].weights.T
    assert np.mean(np.argmax(scores + model.path_[-1].intercept, axis=1) == y) > 0.8


def test_it_stops_where_no_stump_gains():
    columns = StumpColumns.from_images(np.array([[1.0], [1.0], [1.0], [2.0], [2.0], [2.0]]))
    assert JointBoost(9).fit(columns, np.array([0, 1, 2, 0, 1, 2])).rounds_ == ()
