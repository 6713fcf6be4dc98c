"""Work that is spread over a cluster: results in order, each once, whatever is lost."""

import os
import signal
import time
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from visionshare import CompactClassifier, Pixels, load
from visionshare.batch import classify_files, extract_features
from visionshare.batch.mapping import itself, map_here
from visionshare.batch.scoring import score_images
from visionshare.cli.main import main
from visionshare.distributed.mapping import ClusterMap
from visionshare.distributed.worker_parts import Patience
from visionshare.errors import ClusterError, DataError
from visionshare.store import open_store

distributed = pytest.importorskip("distributed", reason="needs the extra [dask]")

# Dask leaves some of its own sockets to the garbage collector.
pytestmark = pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning"
)
SIDE = 6


@pytest.fixture(scope="module")
def model():
    rng = np.random.default_rng(0)
    family = Pixels().fit(np.zeros((1, SIDE, SIDE), np.uint8)).take(np.arange(SIDE * SIDE))
    weights = rng.normal(size=(3, SIDE * SIDE)).astype(np.float32)
    return CompactClassifier(family, weights, np.zeros(3), np.array(["a", "b", "c"]))


@pytest.fixture(scope="module")
def paths(tmp_path_factory):
    folder, rng = tmp_path_factory.mktemp("pictures"), np.random.default_rng(1)
    for i in range(700):
        Image.fromarray(rng.integers(0, 256, (SIDE, SIDE), np.uint8)).save(folder / f"{i:03d}.png")
    (folder / "300.png").write_bytes(b"broken")
    return [str(path) for path in sorted(folder.iterdir())]


def _plus(offset, item):
    time.sleep(0.01 * (item % 3))
    return offset + item


def _fail(_, item):
    raise DataError(f"item {item}")


def test_results_are_in_order(client):
    assert list(ClusterMap(client)(_plus, int, ("100",), range(40))) == list(range(100, 140))
    assert list(ClusterMap(client)(_plus, int, ("100",), [])) == []


def test_few_items_are_under_way(client):
    taken = []

    def items():
        for i in range(1000):
            taken.append(i)
            yield i

    results = ClusterMap(client)(_plus, int, ("0",), items())
    assert next(results) == 0
    assert len(taken) <= 6
    results.close()


def test_errors_of_an_item_are_its_own(client):
    with pytest.raises(DataError, match="item 0"):
        list(ClusterMap(client)(_fail, itself, (1,), range(3)))


def test_workers_that_are_killed_are_replaced(client):
    workers = list(client.run(os.getpid).values())
    results = []
    for number, result in enumerate(ClusterMap(client)(_plus, int, ("0",), range(120))):
        results.append(result)
        if number in (10, 40):
            os.kill(workers.pop(), signal.SIGKILL)
    assert results == list(range(120))


def test_without_workers_the_wait_is_bounded():
    with (
        distributed.LocalCluster(n_workers=0, dashboard_address="127.0.0.1:0") as cluster,
        distributed.Client(cluster) as client,
        pytest.raises(ClusterError, match="no worker for"),
    ):
        list(ClusterMap(client, Patience(workers=0.5))(_plus, int, ("0",), range(3)))


def test_pictures_are_classified_alike(client, model, paths):
    here = list(classify_files(model, paths))
    there = list(classify_files(model, paths, mapper=ClusterMap(client)))
    assert [p for part in there for p in part.paths] == paths
    assert [p for part in here for p in part.problems] == [p for q in there for p in q.problems]
    a, b = (np.concatenate([part.probabilities for part in parts]) for parts in (here, there))
    assert np.array_equal(a, b, equal_nan=True)
    assert np.isnan(a).any(axis=1).sum() == 1


def test_features_are_extracted_alike(client, model, paths, tmp_path):
    family = model.family
    for name, mapper in (("here", None), ("there", ClusterMap(client))):
        done = extract_features(family, paths, tmp_path / name, skip_broken=True, mapper=mapper)
        assert (done.images, len(done.broken)) == (699, 1)
    stores = [open_store(tmp_path / name, family) for name in ("here", "there")]
    assert np.array_equal(*(store.columns_of() for store in stores))
    assert (tmp_path / "here/manifest.json").read_text() == (
        tmp_path / "there/manifest.json"
    ).read_text()


def test_images_are_scored_alike(client, model):
    images = np.random.default_rng(2).integers(0, 256, (50, SIDE, SIDE), np.uint8)
    expected = model.decision_function(images)
    assert np.array_equal(score_images(model, images, ClusterMap(client)), expected)
    assert np.array_equal(score_images(model, images, map_here), expected)


def test_commands_on_a_cluster(client, model, paths, tmp_path, capsys):
    model.save(tmp_path / "c.safetensors")
    classifier, address = str(tmp_path / "c.safetensors"), client.scheduler.address
    folder = os.path.dirname(paths[0])
    texts = []
    for options in ([], ["--scheduler", address]):
        out = str(tmp_path / f"{len(options)}.csv")
        assert main(["predict", classifier, folder, "--out", out, *options]) == 1
        texts.append(Path(out).read_text())
    assert texts[0] == texts[1]
    assert texts[0].count("\n") == 700
    store = str(tmp_path / "store")
    command = ["extract", classifier, folder, "--out", store, "--skip-broken"]
    assert main([*command, "--scheduler", address]) == 0
    assert "images       699" in capsys.readouterr().out
    assert load(classifier).classes_.tolist() == ["a", "b", "c"]
