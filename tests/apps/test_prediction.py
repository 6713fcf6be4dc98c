"""Any number of picture files: in order, by chunks, whatever is broken among them."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from PIL import Image

from visionshare import CompactClassifier, Pixels
from visionshare.apps import classify_files, prediction
from visionshare.errors import DataError


@pytest.fixture(scope="module")
def model():
    rng = np.random.default_rng(0)
    family = Pixels().fit(np.zeros((1, 4, 4), np.uint8)).take(np.arange(16))
    weights = rng.normal(size=(3, 16)).astype(np.float32)
    return CompactClassifier(family, weights, np.zeros(3), np.array(["a", "b", "c"]))


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    folder, rng = tmp_path_factory.mktemp("pictures"), np.random.default_rng(1)
    images = rng.integers(0, 256, (60, 4, 4), np.uint8)
    for i, image in enumerate(images):
        Image.fromarray(image).save(folder / f"{i:02d}.png")
    (folder / "20.png").write_bytes(b"broken")
    (folder / "59.png").unlink()
    return [str(folder / f"{i:02d}.png") for i in range(60)], images


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(prediction, "_FIRST", 3)
    monkeypatch.setattr(prediction, "_CHUNK", 8)
    monkeypatch.setattr(prediction, "_FEW", 10)


@pytest.mark.parametrize("jobs", [1, 3])
def test_order_and_broken_ones(model, pictures, small, jobs):
    paths, images = pictures
    parts = list(classify_files(model, iter(paths), jobs))
    assert [len(part.paths) for part in parts][:2] == [3, 8]
    assert max(len(part.paths) for part in parts) == 8
    assert [path for part in parts for path in part.paths] == paths
    shares = np.concatenate([part.probabilities for part in parts])
    problems = [problem for part in parts for problem in part.problems]
    broken = [i for i, problem in enumerate(problems) if problem is not None]
    assert broken == [20, 59]
    assert all(paths[i] in problems[i] for i in broken)
    assert np.isnan(shares[broken]).all()
    sound = np.setdiff1d(np.arange(60), broken)
    assert_array_equal(shares[sound], model.predict_proba(images[sound]))


def test_threads_for_a_few(model, pictures):
    paths, images = pictures
    found = np.concatenate([p.probabilities for p in classify_files(model, paths[:19], 2)])
    assert_array_equal(found, model.predict_proba(images[:19]))
    assert list(classify_files(model, [], 2)) == []


def test_paths_are_taken_as_they_are_needed(model, pictures, small):
    taken = []

    def endless():
        while True:
            taken.append(len(taken))
            yield pictures[0][0]

    found = classify_files(model, endless())
    for _ in range(5):
        next(found)
    # Three at once, ten ahead, one to see whether there are more, and chunks of eight.
    assert len(taken) <= 3 + 10 + 1 + 5 * 8
    found.close()


def test_large_files_make_small_chunks(model, pictures, monkeypatch):
    monkeypatch.setattr(prediction, "_CHUNK_BYTES", 1)
    sizes = [len(part.paths) for part in classify_files(model, pictures[0][:20])]
    assert sizes == [16, 1, 1, 1, 1]


def test_processes_end_when_nobody_wants_more(model, pictures, small):
    import multiprocessing

    found = classify_files(model, pictures[0] * 20, 2)
    for _ in range(4):
        next(found)
    assert len(multiprocessing.active_children()) == 2
    found.close()
    assert multiprocessing.active_children() == []


def test_a_dead_process_is_a_typed_error(model, pictures, small):
    import multiprocessing

    found = classify_files(model, pictures[0] * 20, 2)
    for _ in range(4):
        next(found)
    multiprocessing.active_children()[0].kill()
    with pytest.raises(DataError, match="a process that read pictures died"):
        list(found)


def test_vectors_are_refused():
    family = Pixels().fit(np.zeros((1, 3))).take([0, 2])
    model = CompactClassifier(family, np.eye(2), np.zeros(2), np.array(["a", "b"]))
    with pytest.raises(DataError, match="vectors"):
        next(classify_files(model, ["a.png"]))
