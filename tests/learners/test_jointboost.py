"""JointBoost: rounds by their definition, the loss, sharing, scikit-learn's checks, the file."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_digits
from sklearn.utils.estimator_checks import check_estimator

from visionshare import JointBoost, Stumps, load
from visionshare.columns import ArrayColumns
from visionshare.errors import InputError
from visionshare.generators.stumps import StumpColumns


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:600], y[:600], X[600:], y[600:]


def test_it_is_a_scikit_learn_classifier():
    check_estimator(JointBoost(rounds=10))


def test_few_thresholds_learn(digits):
    X, y, more, truth = digits
    model = JointBoost(rounds=80, n_thresholds=8).fit(X, y)
    assert model.score(more, truth) > 0.75
    again = JointBoost(rounds=80, n_jobs=2, n_thresholds=8).fit(X, y)
    assert_array_equal(again.coef_, model.coef_)


def _played(model, X, y, omega=None):
    """Play the rounds by the definition: yield each with the weights before it, z and h."""
    omega = np.ones(len(y)) if omega is None else omega
    classes = model.classes_[1:] if len(model.classes_) == 2 else model.classes_
    z = np.where(y[:, None] == classes, 1.0, -1.0)
    H = np.zeros_like(z)
    for r in model.rounds_:
        w = omega[:, None] * np.exp(-z * H)
        above = model.stumps_.transform(X, np.array([r.feature]))[:, 0] == 0
        h = np.where(r.shared, np.where(above[:, None], r.a + r.b, r.b), r.constants)
        yield r, w, z, above, h
        H += h
    assert_allclose(
        model.decision_function(X), H[:, 0] if H.shape[1] == 1 else H, rtol=1e-9, atol=1e-9
    )


@pytest.mark.parametrize("k", [2, 6])
def test_numbers_are_weighted_class_means(k, digits):
    X, y, _, _ = digits
    X, y = X[y < k], y[y < k]
    omega = np.random.default_rng(0).random(len(y))
    model = JointBoost(rounds=15).fit(X, y, omega)
    for r, w, z, above, h in _played(model, X, y, omega):
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
    X, y, _, _ = digits
    model = JointBoost(rounds=30).fit(X, y)
    before = 1.0
    for r, w, _, _, h in _played(model, X, y):
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
    model = JointBoost(rounds=1).fit(X, y)
    first = model.rounds_[0]
    assert model.stumps_.inputs_[first.feature] == 2
    assert set(np.flatnonzero(first.shared)) in ({0, 1, 2}, {3, 4, 5})


def test_examples_may_be_columns_of_stumps(digits):
    X, y, more, _ = digits
    columns = StumpColumns.from_images(X, n_thresholds=6)
    of_columns = JointBoost(rounds=25).fit(columns, y)
    of_images = JointBoost(rounds=25, n_thresholds=6).fit(X, y)
    assert_array_equal(of_columns.coef_, of_images.coef_)
    assert_array_equal(
        of_columns.predict(StumpColumns(columns.family, more)), of_images.predict(more)
    )
    with pytest.raises(InputError, match=r"^X: got"):
        JointBoost().fit(ArrayColumns(X), y)
    with pytest.raises(InputError, match=r"^y: got"):
        JointBoost().fit(columns, y[:9])


def test_the_path_and_the_compact_classifier(tmp_path, digits):
    X, y, more, truth = digits
    model = JointBoost(rounds=150).fit(X, y)
    widths = [step.n_features for step in model.path_]
    assert widths == list(range(1, len(model.support_) + 1))
    assert len(model.support_) < len(model.rounds_)
    assert [j for step in model.path_ for j in step.feature] == model.support_.tolist()
    assert_allclose(model.path_[-1].weights, model.coef_, rtol=1e-6, atol=1e-6)
    step = model.path_[20]
    part = JointBoost(rounds=step.round).fit(X, y)
    assert_allclose(step.weights, part.coef_, rtol=1e-6, atol=1e-6)
    assert_allclose(step.train_error, np.mean(part.predict(X) != y), atol=1e-3)
    model.to_classifier().save(tmp_path / "c.safetensors")
    compact = load(tmp_path / "c.safetensors")
    assert_array_equal(compact.predict(more), model.predict(more))
    assert_allclose(compact.predict_proba(more), model.predict_proba(more), atol=1e-4)
    assert np.mean(compact.predict(more) == truth) > 0.85


def test_it_stops_where_no_stump_gains():
    X, y = np.array([[1.0], [1.0], [2.0], [2.0]]), np.array([0, 1, 0, 1])
    model = JointBoost().fit(X, y)
    assert len(model.rounds_) == 0
    assert model.predict(X).shape == (4,)
    with pytest.raises(InputError, match=r"^support_: got"):
        model.to_classifier()
    with pytest.raises(InputError, match=r"^images: got"):
        JointBoost().fit(np.ones((4, 2)), y)


@pytest.mark.parametrize(
    ("name", "value"),
    [("rounds", 0), ("rounds", 1.5), ("n_thresholds", 0), ("n_jobs", 0)],
)
def test_wrong_settings_are_refused_before_work(name, value):
    with pytest.raises(InputError, match=rf"^{name}: got"):
        JointBoost(**{name: value}).check_parameters()


def test_stumps_of_others_may_be_restricted(digits):
    X, y, _, _ = digits
    model = JointBoost(rounds=5).fit(X, y)
    assert isinstance(model.stumps_, Stumps)
    assert model.stumps_.take(model.support_).n_features_ == len(model.support_)
