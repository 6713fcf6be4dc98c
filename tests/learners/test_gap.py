"""Rounds that end by the duality gap: how near to the optimum, and which searches are in vain."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.datasets import load_diabetes, load_digits

from visionshare import GaborBank, GroupFeatureClassifier, GroupFeatureRegressor
from visionshare.distributed import PartitionedColumns
from visionshare.errors import InputError
from visionshare.generators.draws import Draws
from visionshare.store import DrawnColumns

FINE = {"tol": 1e-6, "refit_tol": 1e-7, "n_entering": 8, "max_iter": 20_000}
SETTINGS = [
    {},
    {"loss": "logistic", "q": np.inf, "alpha": 0.5},
    {"loss": "multinomial", "q": 1},
    {"loss": "exponential", "solver": "fista"},
    {"shared_alpha": 0.7},
]


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:120], y[:120]


def _numbers(model):
    return [step.number for step in model.history_]


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_the_objective_is_as_near_to_the_optimum_as_it_says(settings, digits):
    settings = {"alpha": 1.0, **settings}
    X, y = digits[0][:, ::2], digits[1]
    least = GroupFeatureClassifier(**settings, **FINE).fit(X, y).history_[-1].value
    rounds = [GroupFeatureClassifier(**settings).fit(X, y).n_iter_]
    for gap_tol in (0.01, 0.1, 0.4):
        model = GroupFeatureClassifier(gap_tol=gap_tol, **settings).fit(X, y)
        value = model.history_[-1].value
        assert model.stopped_by_ == "gap"
        assert value - least <= gap_tol * value
        rounds.append(model.n_iter_)
    # A wider gap ends sooner, the widest by far.
    assert sorted(rounds, reverse=True) == rounds
    assert rounds[-1] < 0.8 * rounds[0]


def test_without_a_violator_the_objective_is_within_tol(digits):
    rough = GroupFeatureClassifier(alpha=1.0, tol=0.3).fit(*digits)
    least = GroupFeatureClassifier(alpha=1.0, **FINE).fit(*digits).history_[-1].value
    value = rough.history_[-1].value
    assert rough.stopped_by_ == "optimal"
    assert 1e-6 * value < value - least <= 0.3 * value


def test_rounds_are_those_without_it_until_they_end(digits):
    X, y = load_diabetes(return_X_y=True)
    whole = GroupFeatureRegressor(alpha=100.0).fit(X, y)
    near = GroupFeatureRegressor(alpha=100.0, gap_tol=0.05).fit(X, y)
    assert 0 < near.n_iter_ < whole.n_iter_
    for a, b in zip(near.history_[:-1], whole.history_, strict=False):
        assert_array_equal(a.coef, b.coef)
    largest = GroupFeatureRegressor().alpha_max(X, y)
    assert GroupFeatureRegressor(gap_tol=0.9).alpha_max(X, y) == largest


def _drawn(digits):
    images = (digits[0].reshape(-1, 8, 8) / 16).astype(np.float32)
    return DrawnColumns(Draws(GaborBank(pooling="max").fit(images), n=10, rounds=200), images)


def test_draws_are_patient(digits):
    _, y = digits
    settings = {"alpha": 1.0, "search": "sampled", "gap_tol": 0.4}
    hasty = GroupFeatureClassifier(**settings, rounds=150).fit(_drawn(digits), y)
    patient = GroupFeatureClassifier(**settings, patience=4, rounds=40).fit(_drawn(digits), y)
    assert hasty.stopped_by_ == patient.stopped_by_ == "gap"
    assert hasty.n_iter_ < patient.n_iter_
    # Searches in vain between rounds: the draws of the next were better.
    searches = np.diff([step.searches for step in patient.history_[1:]])
    assert searches.max() > 1


def test_a_stopped_run_ends_where_another_does(tmp_path, digits):
    _, y = digits
    settings = {"alpha": 1.0, "search": "sampled", "gap_tol": 0.4, "patience": 4}
    whole = GroupFeatureClassifier(**settings, rounds=40).fit(_drawn(digits), y)
    kept = {**settings, "checkpoint": tmp_path / "rounds"}
    # Right before a round that came after a search in vain, and at the end.
    searches = np.diff([step.searches for step in whole.history_])
    for n in (int(np.argmax(searches)), whole.n_iter_):
        GroupFeatureClassifier(**kept, rounds=n).fit(_drawn(digits), y)
    resumed = GroupFeatureClassifier(**kept, rounds=40).fit(_drawn(digits), y)
    assert _numbers(resumed) == _numbers(whole)
    assert [step.searches for step in resumed.history_] == [s.searches for s in whole.history_]
    assert_array_equal(resumed.support_, whole.support_)
    assert resumed.stopped_by_ == "gap"
    # Its rounds are of another run; a gap of 0 leaves the identity of older runs.
    with pytest.raises(InputError, match=r"^checkpoint: got"):
        GroupFeatureClassifier(**{**kept, "gap_tol": 0.0}, rounds=40).fit(_drawn(digits), y)


def test_partitions_have_the_same_gap(digits):
    X, y = digits
    X = X.astype(np.float32)
    settings = {"alpha": 1.0, "gap_tol": 0.2}
    whole = GroupFeatureClassifier(**settings).fit(X, y)
    columns = PartitionedColumns.from_array(X, partitions=3)
    apart = GroupFeatureClassifier(**settings).fit(columns, y)
    assert apart.stopped_by_ == "gap"
    assert_array_equal(apart.support_, whole.support_)


@pytest.mark.parametrize(
    ("settings", "accepted"),
    [
        ({"gap_tol": -0.1}, "a fraction in"),
        ({"gap_tol": 1.0}, "a fraction in"),
        ({"gap_tol": "much"}, "a fraction in"),
        ({"gap_tol": float("nan")}, "a fraction in"),
        ({"gap_tol": 0.01, "tol": 0.1}, r"at least tol \(0.1\)"),
        ({"gap_tol": 0.1, "search_options": {"per": "bytes"}}, "0, for a search by cost"),
    ],
)
def test_wrong_gaps_are_refused(settings, accepted):
    with pytest.raises(InputError, match=rf"^gap_tol: got .*{accepted}"):
        GroupFeatureClassifier(**settings).check_parameters()
