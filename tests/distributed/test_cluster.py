import os
import pickle
import signal
import subprocess
import sys
import time
from dataclasses import dataclass

import numpy as np
import pytest
from sklearn.datasets import load_digits

from visionshare import PatchTemplates, ShareBoost
from visionshare.cli.main import main
from visionshare.distributed import DistributedColumns, PartitionedColumns, cluster_client
from visionshare.distributed.worker_parts import awaited, tells_of_loss
from visionshare.errors import ClusterError, InputError, RecipeError
from visionshare.recipes import load_recipe, train
from visionshare.search import Exhaustive

pytest.importorskip("distributed", reason="needs the extra [dask]")
da = pytest.importorskip("dask.array", reason="needs the extra [dask]")

# Dask leaves some of its own sockets to the garbage collector.
pytestmark = pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning"
)


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:500].astype(np.float32), y[:500]


@pytest.fixture(scope="module")
def local(digits):
    X, y = digits
    columns = PartitionedColumns.from_array(X, partitions=5)
    return ShareBoost(4, criterion="orthogonal").fit(columns, y)


def _same(a, b):
    assert a.support_.tolist() == b.support_.tolist()
    assert np.array_equal(a.coef_, b.coef_)
    assert a.temperature_ == b.temperature_


def test_a_cluster_learns_the_bits_of_one_process(client, digits, local):
    X, y = digits
    with DistributedColumns.from_array(X, client, partitions=5) as columns:
        assert sorted(columns.workers.values()) == [2, 3]
        names = client.run(lambda dask_worker: list(dask_worker.plugins))
        assert all("visionshare-kernels" in plugins for plugins in names.values())
        model = ShareBoost(4, criterion="orthogonal").fit(columns, y)
        _same(model, local)
        assert np.array_equal(model.predict(columns), model.predict(X))
        _same(pickle.loads(pickle.dumps(model)), local)
        with pytest.raises(InputError, match="columns of a cluster"):
            pickle.dumps(columns)


def test_dask_arrays_and_delayed_blocks_are_partitions(client, digits, local):
    X, y = digits
    chunks = da.from_array(X, chunks=(100, 30))
    with DistributedColumns.from_array(chunks, client) as columns:
        _same(ShareBoost(4, criterion="orthogonal").fit(columns, y), local)
    blocks = [block.item() for block in da.from_array(X, chunks=(100, 64)).to_delayed()]
    with DistributedColumns.from_array(blocks, client) as columns:
        assert columns.shape == X.shape
        assert np.array_equal(columns.take(), X)


def test_images_are_evaluated_on_the_workers(client):
    images = np.random.default_rng(0).integers(0, 255, (40, 8, 8), np.uint8)
    family = PatchTemplates(3, 5, 2, (2.0,), n_patches=100).fit(images)
    with DistributedColumns.from_family(family, images, client, partitions=4) as columns:
        assert np.array_equal(columns.take(), family.transform(images))


@dataclass
class Killing(Exhaustive):
    """Kills a process before the search of the third round."""

    victim: int = 0

    def best(self, pool, state, criterion, excluded, n=1):
        if state.round == 3:
            os.kill(self.victim, signal.SIGKILL)
        return super().best(pool, state, criterion, excluded, n)


def test_a_killed_worker_costs_no_bit(client, digits, local):
    X, y = digits
    client.wait_for_workers(2, timeout=60)
    with DistributedColumns.from_array(X, client, partitions=5) as columns:
        search = Killing(client.run(os.getpid)[max(columns.workers)])
        _same(ShareBoost(4, criterion="orthogonal", search=search).fit(columns, y), local)
    assert search.victim not in client.run(os.getpid).values()


def test_a_worker_killed_between_two_orders(client, digits):
    X, _ = digits
    client.wait_for_workers(2, timeout=60)
    with DistributedColumns.from_array(X, client, partitions=5) as columns:
        R = np.ones((len(X), 1), np.float32)
        before = columns.correlate(R)
        victim = client.run(os.getpid)[min(columns.workers)]
        os.kill(victim, signal.SIGKILL)
        assert np.array_equal(columns.correlate(R), before)
        assert sum(columns.workers.values()) == 5


def test_what_is_no_client_is_refused(digits):
    with pytest.raises(InputError, match="client"):
        DistributedColumns.from_array(digits[0], object())


def test_columns_of_a_dask_array_are_its_chunks(client, digits, local):
    X, y = digits
    chunks = da.from_array(X, chunks=(100, 64))
    with DistributedColumns.from_array(chunks, client) as columns:
        _same(ShareBoost(4, criterion="orthogonal").fit(columns, y), local)


def test_a_recipe_on_a_cluster_learns_what_its_partitions_do(client, tmp_path):
    recipe = load_recipe(
        "digits", ["learner.rounds=3", "data.limit=300", "store.partitions=3", "seed=1"]
    )
    one = train(recipe, tmp_path / "one").classifier
    other = train(recipe, tmp_path / "other", client=client).classifier
    assert np.array_equal(one.weights, other.weights)
    assert np.array_equal(one.intercept, other.intercept)
    assert one.temperature == other.temperature


def test_a_learner_that_takes_no_partitions_is_refused_before_work(client, tmp_path):
    with pytest.raises(RecipeError, match="takes no columns in partitions"):
        train(load_recipe("digits-jointboost"), tmp_path / "run", client=client)
    screened = load_recipe("digits", ["learner.search=screened", "store.partitions=2"])
    with pytest.raises(RecipeError, match="screened"):
        train(screened, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_which_errors_tell_of_a_loss():
    # What Dask raises where a worker is killed while its actor starts.
    assert tells_of_loss(RuntimeError("Worker holding Actor was lost"))
    assert tells_of_loss(OSError("Unable to contact Actor's worker"))
    assert not tells_of_loss(RuntimeError("of a request"))
    assert not tells_of_loss(FileNotFoundError("of a request"))


class Cancelled:
    """A future whose wait ends as Dask's does where it is cancelled by its own timeout."""

    def result(self, timeout):
        if timeout < 1:
            raise UnboundLocalError("cannot access local variable 'result'")
        raise UnboundLocalError("cannot access local variable 'of_an_order'")


def test_a_wait_that_dask_cancels_is_a_timeout():
    with pytest.raises(TimeoutError):
        awaited(Cancelled(), 0.5)
    with pytest.raises(UnboundLocalError, match="of_an_order"):
        awaited(Cancelled(), 1)


def test_no_scheduler_is_a_typed_error():
    with (
        pytest.raises(ClusterError, match="no scheduler answers"),
        cluster_client(scheduler="tcp://127.0.0.1:9", timeout=0.5),
    ):
        pass
    with pytest.raises(InputError, match="one of"), cluster_client(2, "tcp://127.0.0.1:9"):
        pass


def test_the_command_trains_on_processes(tmp_path, capsys):
    command = ["train", "digits", "--workers", "1", "--rounds", "2", "--set", "data.limit=200"]
    assert main([*command, "--out", str(tmp_path / "out")]) == 0
    said = capsys.readouterr().out
    assert "test error" in said
    assert "workers      1: tcp://" in said


@pytest.mark.usefixtures("interruptible")
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no groups of processes")
def test_ctrl_c_ends_command_and_workers_in_one_line(tmp_path):
    options = ["--workers", "2", "--rounds", "60", "--out", str(tmp_path / "out")]
    running = subprocess.Popen(
        [sys.executable, "-m", "visionshare", "train", "digits", *options],
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    # Ctrl-C goes to all processes of a terminal; the command waits until its workers stand.
    while not list(tmp_path.glob("out*")):
        assert running.poll() is None
        time.sleep(0.05)
    os.killpg(running.pid, signal.SIGINT)
    said = running.communicate(timeout=60)[1]
    # Python itself ends by the signal once it has given up its handlers: 130 in a shell.
    assert running.returncode in (130, -signal.SIGINT)
    assert said.splitlines()[-1] == "stopped; the same command with --resume resumes it"
    assert "Traceback" not in said
    # The workers end with it.
    for _ in range(600):
        try:
            os.killpg(running.pid, 0)
        except ProcessLookupError:
            return
        time.sleep(0.05)
    pytest.fail("workers are left")
