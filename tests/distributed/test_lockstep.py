"""Fine-tuning and other functions that workers run in step."""

import os
import pickle
import signal
import socket
import threading
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pytest
from sklearn.datasets import load_digits
from threadpoolctl import threadpool_info, threadpool_limits

from visionshare import FineTuning, PatchTemplates, ShareBoost, fine_tune
from visionshare.distributed.lockstep import in_lockstep, in_one_process
from visionshare.distributed.placement import Bounds
from visionshare.distributed.process_groups import ConnectedProcessGroup, GroupMember, listener
from visionshare.errors import ClusterError, InputError
from visionshare.recipes import load_recipe, train

pytest.importorskip("distributed", reason="needs the extra [dask]")

# Dask leaves some of its own sockets to the garbage collector.
pytestmark = pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning"
)

SETTINGS = FineTuning(epochs=3, batch=60, rate=0.01, validation_fraction=0.1)


@pytest.fixture(scope="module")
def digits():
    images, y = (load_digits().images * 15).astype(np.uint8)[:600], load_digits().target[:600]
    pool = PatchTemplates(3, 20, grid=3, widths=(2.0,), n_patches=500).fit(images)
    greedy = ShareBoost(rounds=5).fit(pool.transform(images), y).to_classifier(pool)
    bounds = (0, 150, 350, 600)
    rows = [slice(a, b) for a, b in pairwise(bounds)]
    return greedy, [images[part] for part in rows], [y[part] for part in rows]


@pytest.fixture(scope="module")
def local(digits):
    return fine_tune(*digits, SETTINGS)


def _same(a, b):
    for one, other in ((a.family.to_state()[1], b.family.to_state()[1]),):
        assert all(np.array_equal(one[key], other[key]) for key in one)
    assert np.array_equal(a.weights, b.weights)
    assert np.array_equal(a.intercept, b.intercept)
    assert (a.temperature, a.path[0].loss) == (b.temperature, b.path[0].loss)
    assert a.path[0].validation_error == b.path[0].validation_error


@pytest.mark.parametrize(
    "changes",
    [{}, {"head": "low-rank", "n_units": 4, "averaging": 0.9, "validation_fraction": 0.0}],
)
def test_workers_fine_tune_the_bits_of_one_process(client, digits, local, changes, tmp_path):
    settings = FineTuning(**{**vars(SETTINGS), **changes})
    expected = fine_tune(*digits, settings) if changes else local
    _same(fine_tune(*digits, settings, client=client, checkpoint=tmp_path), expected)
    # All epochs are there: what is left is to put the classifier together.
    _same(fine_tune(*digits, settings, client=client, checkpoint=tmp_path), expected)
    for path in tmp_path.glob("round-0000[23]*"):
        path.unlink()
    _same(fine_tune(*digits, settings, checkpoint=tmp_path), expected)


def test_parts_learn_as_well_as_all_images(digits, local):
    greedy, images, y = digits
    whole = fine_tune(greedy, np.concatenate(images), np.concatenate(y), SETTINGS)
    errors = [
        np.mean(c.predict(np.concatenate(images)) != np.concatenate(y))
        for c in (whole, local, greedy)
    ]
    assert max(errors[:2]) < 0.8 * errors[2]
    assert abs(errors[0] - errors[1]) < 0.05


@dataclass
class Killing:
    """Images of a part; a worker that is asked for those of the second epoch dies, once."""

    values: np.ndarray
    mark: str

    def __call__(self, epoch):
        if epoch == 1 and not os.path.exists(self.mark):
            with open(self.mark, "x"):
                os.kill(os.getpid(), signal.SIGKILL)
        return self.values


def test_a_killed_worker_costs_no_bit(client, digits, local, tmp_path):
    greedy, images, y = digits
    client.wait_for_workers(2, timeout=60)
    parts = [*images[:2], Killing(images[2], str(tmp_path / "killed"))]
    _same(fine_tune(greedy, parts, y, SETTINGS, client=client), local)
    assert (tmp_path / "killed").exists()


def test_a_recipe_is_fine_tuned_on_workers(client, tmp_path):
    settings = ["deformations.copies=0", "fine_tuning.epochs=2", "fine_tuning.batch=100"]
    settings += ["fine_tuning.deformed=true", "learner.rounds=3", "data.limit=200"]
    recipe = load_recipe("digits", [*settings, "store.partitions=4"])
    client.wait_for_workers(2, timeout=60)
    one, other = (train(recipe, tmp_path / f"{c is None}", client=c) for c in (None, client))
    _same(one.classifier, other.classifier)
    assert "fine-tuning" in one.metrics["seconds"]


def _counting(group, parts, most, n_jobs):
    begun = yield "begun"
    for i in range(len(begun or []), most):
        yield int(group.total({number: np.array([i * part]) for number, part in parts.items()})[0])


def _failing(group, parts, kind, n_jobs):
    yield "begun"
    if 1 in parts:
        raise kind("of a worker")
    group.total({number: np.zeros(1) for number in parts})


def test_a_function_goes_on_from_its_records(client):
    client.wait_for_workers(2, timeout=60)
    for records in (
        in_one_process(_counting, [1, 2, 4], (5,)),
        in_lockstep(client, _counting, [1, 2, 4], (5,)),
    ):
        assert next(records) == "begun"
        assert [records.send([0, 7]), *records] == [14, 21, 28]


def _blas_threads(group, parts, n_jobs):
    for _ in range(3):
        yield max(lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas")


def test_one_process_has_the_blas_of_a_worker_in_each_step():
    # Heads are drawn before the first epoch, and the classifier is made after the last one.
    with threadpool_limits(2, user_api="blas"):
        assert list(in_one_process(_blas_threads, [0], (), 2)) == [1, 1, 1]
        assert max(_blas_threads(None, {}, 1)) == 2


def test_an_error_of_one_worker_ends_all(client):
    client.wait_for_workers(2, timeout=60)
    records = in_lockstep(client, _failing, [1, 2], (ValueError,))
    next(records)
    with pytest.raises(ValueError, match="of a worker"):
        records.send([])
    records = in_lockstep(client, _failing, [1, 2], (ConnectionError,), Bounds(losses=2))
    next(records)
    with pytest.raises(ClusterError, match="in a row"):
        records.send([])


def test_a_process_without_the_key_is_no_member():
    with listener("127.0.0.1") as listening:
        leader = listening.getsockname()[:2]
        members = [GroupMember(((0, 2), (1,)), i, leader, b"key") for i in range(2)]
        stranger = threading.Thread(target=_knock, args=(leader,))
        stranger.start()
        found = {}

        def join():
            stranger.join()
            group = ConnectedProcessGroup(members[1])
            found["sum"] = group.total({1: np.full((2, 2), 2.0)})
            found["all"] = group.gathered({1: np.array([1])})
            group.close()

        other = threading.Thread(target=join)
        other.start()
        group = ConnectedProcessGroup(members[0], listening)
        own = group.total({0: np.ones((2, 2)), 2: np.full((2, 2), 4.0)})
        everything = group.gathered({0: np.array([0]), 2: np.array([2, 2])})
        other.join()
    assert np.array_equal(own, np.full((2, 2), 7.0))
    assert np.array_equal(found["sum"], own)
    assert [part.tolist() for part in everything] == [[0], [1], [2, 2]]
    assert [part.tolist() for part in found["all"]] == [[0], [1], [2, 2]]
    with pytest.raises((ConnectionError, EOFError)):
        group.total({0: np.ones(1), 2: np.ones(1)})
    group.close()


def test_a_process_that_has_left_is_a_lost_connection():
    """Also for what is sent: the group begins again then, so it must know of it."""
    with listener("127.0.0.1") as listening:
        members = [GroupMember(((0,), (1,)), i, listening.getsockname()[:2], b"k") for i in (0, 1)]
        groups = []
        other = threading.Thread(target=lambda: groups.append(ConnectedProcessGroup(members[1])))
        other.start()
        ConnectedProcessGroup(members[0], listening).close()
        other.join()
    with pytest.raises(ConnectionError):
        groups[0].gathered({1: np.zeros(10**7)})
    groups[0].close()
    with pytest.raises(ConnectionError, match="cannot be reached"):
        ConnectedProcessGroup(members[1])


def _knock(leader):
    with socket.create_connection(leader) as one:
        # As long as a member's greeting, with another key.
        one.sendall((7).to_bytes(4, "big") + b"yek" + bytes(4))


def test_labels_come_in_as_many_lists_as_parts(digits):
    greedy, images, y = digits
    with pytest.raises(InputError, match="labels"):
        fine_tune(greedy, images, y[:2])
    assert pickle.loads(pickle.dumps(SETTINGS)) == SETTINGS
