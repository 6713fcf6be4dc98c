"""Checkpoints: rounds that are bound to their run, and damage that is found."""

import shutil
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone

from visionshare import GroupFeatureClassifier, ShareBoost, StructuralBoostingClassifier
from visionshare.errors import InputError
from visionshare.learners.checkpoint import History


@dataclass(frozen=True)
class Record:
    number: int
    loss: float
    weights: np.ndarray


def records():
    return [Record(i, float("nan") if i == 2 else 0.1 * i, np.arange(i) / 3) for i in (1, 2, 3)]


def of_run(folder, name="a run"):
    return History(Record, 5, folder, lambda: name)


@pytest.fixture
def folder(tmp_path):
    of_run(tmp_path / "rounds").collect(iter(records()))
    return tmp_path / "rounds"


def test_rounds_come_back_with_their_bits(folder):
    loaded = of_run(folder).records
    assert len(loaded) == 3
    for ours, theirs in zip(loaded, records(), strict=True):
        assert (type(ours.number), ours.number) == (int, theirs.number)
        assert_array_equal(ours.loss, theirs.loss)
        assert_array_equal(ours.weights, theirs.weights)
        assert ours.weights.dtype == np.float64


def test_a_damaged_round_and_those_after_it_are_learned_again(folder):
    file = folder / "round-00002.safetensors"
    content = bytearray(file.read_bytes())
    content[-3] ^= 1
    file.write_bytes(content)
    assert [record.number for record in of_run(folder).records] == [1]


def test_another_round_of_the_run_is_refused(folder):
    shutil.copy(folder / "round-00003.safetensors", folder / "round-00002.safetensors")
    with pytest.raises(InputError, match=r"round-00002.*accepted: round 2 of this run"):
        of_run(folder)


def test_a_folder_of_another_run_or_format_is_refused(folder):
    with pytest.raises(InputError, match="a folder of the same run and version"):
        of_run(folder, "another run")
    (folder / "run.json").write_text('{"format": 2, "fingerprint": "a run"}')
    with pytest.raises(InputError, match="a folder of the same run and version"):
        of_run(folder)


def test_rounds_of_other_settings_are_refused(tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 6)).astype(np.float32), np.arange(40) % 3
    ShareBoost(rounds=3, checkpoint=tmp_path / "one").fit(X, y)
    ShareBoost(rounds=2, alpha=0.5, checkpoint=tmp_path / "other").fit(X, y)
    shutil.copy(tmp_path / "one" / "round-00003.safetensors", tmp_path / "other")
    with pytest.raises(InputError, match="round 3 of this run"):
        ShareBoost(rounds=3, alpha=0.5, checkpoint=tmp_path / "other").fit(X, y)


@pytest.mark.parametrize(
    "learner",
    [
        GroupFeatureClassifier(alpha=0.5),
        pytest.param(
            StructuralBoostingClassifier(alpha=0.5, n_entering=3), marks=pytest.mark.exhaustive
        ),
    ],
    ids=lambda learner: type(learner).__name__,
)
def test_fewer_features_are_those_of_a_fresh_fit(learner, tmp_path):
    rng = np.random.default_rng(5)
    X, y = rng.normal(size=(80, 15)), rng.integers(0, 3, 80)
    X[np.arange(80), y] += 1
    fresh = clone(learner).set_params(max_features=3).fit(X, y)
    many = clone(learner).set_params(checkpoint=tmp_path / "rounds").fit(X, y)
    assert len(many.support_) > len(fresh.support_)
    fewer = clone(many).set_params(max_features=3).fit(X, y)
    assert_array_equal(fewer.support_, fresh.support_)
    assert_array_equal(fewer.coef_, fresh.coef_)
    assert fewer.stopped_by_ == "max_features"
    warm = clone(learner).set_params(warm_start=True).fit(X, y)
    warm.set_params(max_features=3).fit(X, y)
    assert_array_equal(warm.support_, fresh.support_)
