"""Any number of picture files: in order, in batches, whatever is broken among them."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from PIL import Image

from visionshare import CompactClassifier, Pixels
from visionshare.batch import BatchLimits, classify_files
from visionshare.errors import DataError, InputError


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


SMALL = BatchLimits(first=3, batch=8, sequential=10)


@pytest.mark.parametrize("jobs", [1, 2])
def test_order_and_broken_ones(model, pictures, jobs):
    paths, images = pictures
    parts = list(classify_files(model, iter(paths), jobs, SMALL))
    assert [len(part.paths) for part in parts][:2] == [3, 8]
    assert max(len(part.paths) for part in parts) == 8
    assert [path for part in parts for path in part.paths] == paths
    probabilities = np.concatenate([part.probabilities for part in parts])
    problems = [problem for part in parts for problem in part.problems]
    broken = [i for i, problem in enumerate(problems) if problem is not None]
    assert broken == [20, 59]
    assert all(paths[i] in problems[i] for i in broken)
    assert np.isnan(probabilities[broken]).all()
    readable = np.setdiff1d(np.arange(60), broken)
    assert_array_equal(probabilities[readable], model.predict_proba(images[readable]))


def test_threads_for_a_few(model, pictures):
    paths, images = pictures
    parts = classify_files(model, paths[:19], 2)
    probabilities = np.concatenate([part.probabilities for part in parts])
    assert_array_equal(probabilities, model.predict_proba(images[:19]))
    assert list(classify_files(model, [], 2)) == []


@pytest.mark.parametrize("limits", [{"first": 0}, {"batch": 1.5}, {"batch_bytes": True}])
def test_limits_are_integers_from_1(limits):
    with pytest.raises(InputError, match=f"^{next(iter(limits))}: got"):
        BatchLimits(**limits)


def test_paths_are_taken_as_they_are_needed(model, pictures):
    taken = []

    def endless():
        while True:
            taken.append(len(taken))
            yield pictures[0][0]

    batches = classify_files(model, endless(), limits=SMALL)
    for _ in range(5):
        next(batches)
    # Three at once, ten ahead, one to see whether there are more, and batches of eight.
    assert len(taken) <= 3 + 10 + 1 + 5 * 8
    batches.close()


def test_large_files_make_small_batches(model, pictures):
    limits = BatchLimits(batch_bytes=1)
    sizes = [len(part.paths) for part in classify_files(model, pictures[0][:20], limits=limits)]
    assert sizes == [16, 1, 1, 1, 1]


def test_processes_end_when_nobody_wants_more(model, pictures):
    import multiprocessing

    batches = classify_files(model, pictures[0] * 20, 2, SMALL)
    for _ in range(4):
        next(batches)
    assert len(multiprocessing.active_children()) == 2
    batches.close()
    assert multiprocessing.active_children() == []


def test_processes_of_another_run_go_on(model, pictures):
    one = classify_files(model, pictures[0] * 6, 2, SMALL)
    other = classify_files(model, pictures[0] * 6, 2, SMALL)
    started = [next(batches) for _ in range(4) for batches in (one, other)]
    one.close()
    assert sum(len(part.paths) for part in other) == 6 * 60 - sum(
        len(part.paths) for part in started[1::2]
    )


def test_a_dead_process_is_a_typed_error(model, pictures):
    import multiprocessing

    batches = classify_files(model, pictures[0] * 20, 2, SMALL)
    for _ in range(4):
        next(batches)
    multiprocessing.active_children()[0].kill()
    with pytest.raises(DataError, match="a process that read pictures died"):
        list(batches)


def test_vectors_are_refused():
    family = Pixels().fit(np.zeros((1, 3))).take([0, 2])
    model = CompactClassifier(family, np.eye(2), np.zeros(2), np.array(["a", "b"]))
    with pytest.raises(DataError, match="vectors"):
        next(classify_files(model, ["a.png"]))
