"""What cannot be written, or may not be replaced, is said before work starts."""

import json
import os
import signal
import tempfile
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import visionshare
from visionshare import CompactClassifier, Pixels
from visionshare.cli import measuring
from visionshare.cli.main import main
from visionshare.errors import ClusterError, StorageError
from visionshare.files.durable import replace_file, storage_errors


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Return a folder to work in, with a classifier and pictures."""
    monkeypatch.chdir(tmp_path)
    family = Pixels().fit(np.zeros((1, 4, 4)))
    weights = np.stack([np.ones(16), -np.ones(16)])
    CompactClassifier(family, weights, np.zeros(2), np.array(["a", "b"])).save("c.safetensors")
    for name, value in (("a", 200), ("b", 20)):
        os.makedirs(f"photos/{name}")
        for i in range(4):
            Image.new("L", (6, 6), value + i).save(f"photos/{name}/{i}.png")
    return tmp_path


def _refused(call, capsys):
    assert main(call.split()) == 2
    said = capsys.readouterr()
    assert said.err.count("\n") == 1
    assert not said.out
    return said.err


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_predictions_replace_predictions_alone(here, capsys, form):
    call = f"predict c.safetensors photos --out p.{form}"
    Path(f"p.{form}").touch()
    for _ in range(2):
        assert main(call.split()) == 0
    assert len(Path(f"p.{form}").read_text().splitlines()) == 8 + (form == "csv")
    theirs = "image,label\nphotos/a/1.png,a\n"
    Path(f"p.{form}").write_text(theirs)
    capsys.readouterr()
    assert "which this command did not write" in _refused(call, capsys)
    assert Path(f"p.{form}").read_text() == theirs


@pytest.mark.parametrize("place", ["photos.png", "missing/of/none.png"])
def test_places_that_take_no_file_are_named_first(here, capsys, place):
    Path("photos.png").mkdir()
    Path("missing").touch()
    for call in (
        f"data check photos --sheet {place}",
        f"explain c.safetensors photos/a/1.png --out {place}",
        f"segment c.safetensors photos/a/1.png --out {place}",
        f"prepare c.safetensors photos --out new --raw {place}",
    ):
        said = _refused(call, capsys)
        assert place in said
        assert said.startswith("error: --")
    assert "--out: got 'photos'" in _refused("transfer photos c.safetensors --out photos", capsys)


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs /proc")
def test_a_place_without_files_is_not_taken_for_a_busy_one(here, capsys):
    said = _refused("predict c.safetensors photos --out /proc/x.csv", capsys)
    assert said.startswith("error: --out: got '/proc/x.csv'; accepted: a file to write to (")
    assert "/proc/x.png" in _refused("data check photos --sheet /proc/x.png", capsys)
    refused = pytest.raises(StorageError, match=r"^/proc/x\.png: cannot be written")
    with refused, replace_file("/proc/x.png") as file:
        file.touch()


def test_a_folder_in_the_place_of_a_file_is_a_typed_error(tmp_path):
    with pytest.raises(StorageError, match="cannot be written"), replace_file(tmp_path) as file:
        file.touch()
    # What a block says of another file is its own.
    with pytest.raises(FileNotFoundError), storage_errors(tmp_path / "a"):
        (tmp_path / "b").read_bytes()


@pytest.mark.parametrize("split", ["validation", "tset"])
def test_other_splits_are_refused(here, capsys, split):
    for call in ("evaluate c.safetensors photos", "transfer photos c.safetensors --out d.st"):
        said = _refused(f"{call} --split {split}", capsys)
        assert said == f"error: split: got '{split}'; accepted: 'train' or 'test'\n"


def test_a_cluster_is_there_before_the_search(here, capsys, monkeypatch):
    def no_search(*_):
        raise AssertionError

    monkeypatch.setattr("visionshare.cli.training.chosen_recipe", no_search)
    assert "--workers: got 0" in _refused("train photos --workers 0", capsys)
    both = "train photos --workers 1 --scheduler tcp://127.0.0.1:1"
    assert "one of --workers and --scheduler" in _refused(both, capsys)

    def no_cluster(*_):
        raise ClusterError("tcp://127.0.0.1:1: no scheduler answers")

    monkeypatch.setattr("visionshare.distributed.cluster_client", no_cluster)
    assert main(["train", "photos", "--scheduler", "tcp://127.0.0.1:1"]) == 2
    assert "no scheduler answers" in capsys.readouterr().err


def test_a_termination_tidies_up(here, capsys, monkeypatch):
    made = []

    def ended(_):
        with tempfile.TemporaryDirectory() as folder:
            made.append(folder)
            signal.raise_signal(signal.SIGTERM)

    before = signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr(visionshare, "load", ended)
    assert main(["inspect", "c.safetensors"]) == 143
    assert capsys.readouterr().err == "stopped\n"
    assert len(made) == 1
    assert not os.path.exists(made[0])
    assert signal.getsignal(signal.SIGTERM) == before


def test_the_first_picture_may_be_broken(here, capsys):
    Path("photos/a/0.png").write_text("no picture")
    call = ["extract", "pixels", "photos", "--out", "st"]
    assert main(call) == 2
    assert "photos/a/0.png" in capsys.readouterr().err
    assert main([*call, "--skip-broken"]) == 0
    assert "images       7" in capsys.readouterr().out


def test_a_repair_leaves_nothing_where_no_store_is(here, capsys):
    _refused("store repair photos", capsys)
    assert sorted(os.listdir("photos")) == ["a", "b"]


def test_large_images_are_timed_in_a_batch_that_fits(here, capsys, monkeypatch):
    sizes, scores = [], CompactClassifier.decision_function

    def counted(self, images, *more):
        sizes.append(len(images) if images.ndim > 2 else 1)
        return scores(self, images, *more)

    monkeypatch.setattr(CompactClassifier, "decision_function", counted)
    monkeypatch.setattr(measuring, "_MOST_BYTES", 40)
    assert main(["bench", "c.safetensors", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["images_per_second_in_batches"] > 0
    assert max(sizes) == 2
