"""Checkpoints: rounds that are bound to their run, and damage that is found."""

import shutil
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from visionshare import ShareBoost
from visionshare.errors import InputError
from visionshare.learners.checkpoint import Checkpoint


@dataclass(frozen=True)
class Record:
    number: int
    loss: float
    weights: np.ndarray


def records():
    return [Record(i, float("nan") if i == 2 else 0.1 * i, np.arange(i) / 3) for i in (1, 2, 3)]


@pytest.fixture
def folder(tmp_path):
    checkpoint = Checkpoint(tmp_path / "rounds", "a run", Record)
    for record in records():
        checkpoint.save(record, record.number)
    return tmp_path / "rounds"


def test_rounds_come_back_with_their_bits(folder):
    loaded = Checkpoint(folder, "a run", Record).load()
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
    assert [record.number for record in Checkpoint(folder, "a run", Record).load()] == [1]


def test_another_round_of_the_run_is_refused(folder):
    shutil.copy(folder / "round-00003.safetensors", folder / "round-00002.safetensors")
    with pytest.raises(InputError, match=r"round-00002.*accepted: round 2 of this run"):
        Checkpoint(folder, "a run", Record).load()


def test_a_folder_of_another_run_or_format_is_refused(folder):
    with pytest.raises(InputError, match="a folder of the same run and version"):
        Checkpoint(folder, "another run", Record)
    (folder / "run.json").write_text('{"format": 2, "fingerprint": "a run"}')
    with pytest.raises(InputError, match="a folder of the same run and version"):
        Checkpoint(folder, "a run", Record)


def test_rounds_of_other_settings_are_refused(tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 6)).astype(np.float32), np.arange(40) % 3
    ShareBoost(rounds=3, checkpoint=tmp_path / "one").fit(X, y)
    ShareBoost(rounds=2, alpha=0.5, checkpoint=tmp_path / "other").fit(X, y)
    shutil.copy(tmp_path / "one" / "round-00003.safetensors", tmp_path / "other")
    with pytest.raises(InputError, match="round 3 of this run"):
        ShareBoost(rounds=3, alpha=0.5, checkpoint=tmp_path / "other").fit(X, y)
