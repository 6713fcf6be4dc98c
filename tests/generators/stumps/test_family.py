"""Stumps: every rule, the definition, thresholds that part what they should, and bad input."""

import json

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import visionshare
from visionshare import ShareBoost, Stumps
from visionshare.columns import ArrayColumns
from visionshare.errors import InputError
from visionshare.generators import family_class
from visionshare.testing import check_family

rng = np.random.default_rng(0)
_ONE = np.float32(1)
INPUTS = {
    "numbers": rng.normal(size=(40, 7)),
    "ties": rng.integers(-2, 3, (40, 5)).astype(np.float32),
    "gray": rng.integers(0, 256, (30, 3, 4), np.uint8),
    "color": rng.integers(0, 4, (30, 3, 4, 2), np.uint8),
    "constant": np.column_stack([np.full(30, 3.0), rng.random(30), np.zeros(30)]),
    "neighbors": np.nextafter(_ONE, rng.choice([0, 1, 2], (40, 3)).astype(np.float32)),
    "large": rng.choice(np.array([-3e38, -1.0, 3e38, 3.2e38], np.float32), (40, 3)),
    "tiny": rng.choice(np.array([0, 1e-45, 3e-45], np.float32), (40, 3)),
}


def _values(images):
    """Return what the features see: float32 numbers, or uint8 / 255 in float64."""
    rows = images.reshape(len(images), -1)
    return rows / 255 if images.dtype == np.uint8 else rows.astype(np.float32).astype(np.float64)


@pytest.mark.parametrize("inputs", INPUTS)
@pytest.mark.parametrize("n_thresholds", [None, 1, 4])
def test_every_rule_of_a_family(inputs, n_thresholds):
    check_family(Stumps(n_thresholds), INPUTS[inputs])


@pytest.mark.parametrize("inputs", INPUTS)
def test_features_are_all_partitions_of_the_training_values(inputs):
    X = _values(INPUTS[inputs])
    expected, owners = [], []
    for i, column in enumerate(X.T):
        # Every distinct value but the last is the highest on the lower side of one stump.
        for value in sorted(set(column.tolist()))[:-1]:
            expected.append(column <= value)
            owners.append(i)
    family = Stumps().fit(INPUTS[inputs])
    assert family.inputs_.tolist() == owners
    assert_array_equal(family.transform(INPUTS[inputs]), np.array(expected, np.float32).T)


@pytest.mark.parametrize("inputs", ["numbers", "gray"])
def test_thresholds_are_midway(inputs):
    family = Stumps().fit(INPUTS[inputs])
    X = _values(INPUTS[inputs])
    for i in range(X.shape[1]):
        distinct = np.unique(X[:, i])
        midway = ((distinct[:-1] + distinct[1:]) / 2).astype(np.float32)
        assert_array_equal(family.thresholds_[family.inputs_ == i], midway)


def test_few_thresholds_stand_at_quantiles():
    X = rng.permutation(np.arange(100.0))[:, None]
    assert Stumps(3).fit(X).thresholds_.tolist() == [24.5, 49.5, 74.5]
    assert Stumps(200).fit(X).n_features_ == 99
    crowded = np.repeat([0.0, 1.0, 2.0, 3.0], [2, 90, 4, 4])[:, None]
    few = Stumps(2).fit(crowded)
    # A third and two thirds of the examples: both ends of the crowd are nearest.
    assert few.thresholds_.tolist() == [0.5, 1.5]
    assert set(Stumps(1).fit(crowded).thresholds_) < set(Stumps().fit(crowded).thresholds_)


def test_a_restricted_family_says_what_it_is():
    images = INPUTS["gray"]
    family = Stumps().fit(images)
    chosen = family.take(np.array([30, 2, 30]))
    assert chosen.n_features_ == 3
    assert family.macs() == chosen.macs() == 0
    shown = chosen.describe(0)
    assert shown["kind"] == "stump"
    values = _values(images).reshape(images.shape)[(slice(None), *shown["position"])]
    assert_array_equal(values <= shown["threshold"], chosen.transform(images)[:, 0])
    assert family_class("stumps") is Stumps is visionshare.Stumps


def test_a_step_needs_one_stump(tmp_path):
    X = np.random.default_rng(1).normal(size=(400, 6)).astype(np.float32)
    y = (X[:, 4] > 0.3).astype(int)
    family = Stumps(50).fit(X[:300])
    model = ShareBoost(rounds=1).fit(ArrayColumns.from_family(family, X[:300]), y[:300])
    assert family.inputs_[model.support_].tolist() == [4]
    model.to_classifier(family).save(tmp_path / "c.safetensors")
    again = visionshare.load(tmp_path / "c.safetensors")
    assert np.mean(again.predict(X[300:]) == y[300:]) > 0.95


@pytest.mark.parametrize("n_thresholds", [0, -1, 1.5, True, "all"])
def test_bad_parameters_are_named(n_thresholds):
    with pytest.raises(InputError, match=r"^n_thresholds: got"):
        Stumps(n_thresholds).fit(INPUTS["numbers"])


def test_inputs_without_a_stump_and_other_dtypes_are_refused():
    for constant in (np.full((5, 3), 2.0), INPUTS["numbers"][:1]):
        with pytest.raises(InputError, match="two different values"):
            Stumps().fit(constant)
    with pytest.raises(InputError, match="dtype"):
        Stumps().fit(INPUTS["numbers"]).transform_columns(INPUTS["numbers"], dtype="float64")


@pytest.mark.parametrize("name", ["inputs", "thresholds"])
def test_foreign_arrays_are_refused(name):
    state, arrays = Stumps().fit(INPUTS["numbers"]).to_state()
    array = arrays[name]
    bad = np.where(array > 0, 100, -1) if name == "inputs" else np.full_like(array, np.nan)
    for wrong in (bad, array[:-1], array.astype(np.float64), array[None]):
        with pytest.raises(InputError):
            Stumps.from_state(state, {**arrays, name: wrong})
    with pytest.raises(InputError, match=name):
        Stumps.from_state(state, {k: v for k, v in arrays.items() if k != name})


def test_foreign_parameters_are_refused():
    state, arrays = Stumps(5).fit(INPUTS["numbers"]).to_state()
    for wrong in ({}, {"n_thresholds": 0}, {"n_thresholds": 5, "more": 1}, None):
        with pytest.raises(InputError, match=r"parameters|n_thresholds"):
            Stumps.from_state({**json.loads(json.dumps(state)), "parameters": wrong}, arrays)
