"""Settings that must stand before scipy is imported, a cluster, a server of S3, short reports."""

import functools
import gc
import os
import signal

# scikit-learn leaves one of its estimator checks out without it.
os.environ.setdefault("SCIPY_ARRAY_API", "1")
# Threads of OpenBLAS wait for each other in loops, which other processes of the tests pay for.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import pytest
from hypothesis import settings

# The same examples each time; `--hypothesis-profile default` looks for new ones.
settings.register_profile("seeded", derandomize=True)
settings.load_profile("seeded")


def pytest_addoption(parser):
    parser.addoption("--all", action="store_true", help="run the exhaustive tests, too")


# Several processes take these files first, so that none has a long one left at the end. At first
# the site is built beside them; then those that wait for other processes alternate with others, so
# that no core idles.
LONG = (
    "service/test_attacks", "test_attack", "distributed/test_cluster", "test_commands_of_pages",
    "export/test_c_families", "cli/test_predict", "generators/test_every_family",
    "image_classifier/test_estimator", "distributed/test_fine_tuning", "recipes/test_training",
    "image_classifier/test_inputs", "distributed/test_mapping", "test_class_labels",
    "export/test_few_bits", "image_classifier/test_cluster", "learners/test_structural_boosting",
    "image_classifier/test_search", "service/test_workers", "test_mutations", "cli/test_names",
    "service/test_server", "image_classifier/test_pretrained", "export/test_packages",
    "service/test_connections", "export/test_preparation", "learners/test_shareboost",
    "service/test_nginx", "recipes/test_own_pictures", "learners/test_group_features",
)  # fmt: skip


def pytest_collection_modifyitems(config, items):
    """Take long files first; leave exhaustive tests out where nobody asks for all."""
    turns = {f"tests/{name}.py": turn for turn, name in enumerate(LONG)}
    items.sort(key=lambda item: turns.get(item.nodeid.split("::")[0], len(LONG)))
    if config.getoption("--all"):
        return
    left_out = [item for item in items if item.get_closest_marker("exhaustive")]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if not item.get_closest_marker("exhaustive")]


@pytest.hookimpl(wrapper=True)
def pytest_collection(session):
    """What collection makes lives as long as the tests: no search for garbage reads it."""
    gc.disable()
    collected = yield
    gc.enable()
    gc.freeze()
    return collected


@pytest.fixture
def interruptible():
    """Ctrl-C interrupts: tests may run where it is ignored, as what they start then would too."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="module")
def client():
    """A client of two workers in processes of their own."""
    pytest.importorskip("distributed", reason="needs the extra [dask]")
    from visionshare.distributed import cluster_client

    with cluster_client(workers=2) as client:
        yield client


@pytest.fixture(scope="session")
def object_storage():
    """A server of S3 on this machine, which the environment names; its files.

    One for all tests of a process: fsspec keeps what it has connected to.
    """
    s3fs = pytest.importorskip("s3fs", reason="needs the extra [storage]")
    server = pytest.importorskip("moto.server", reason="needs a server of S3")
    running = server.ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    running.start()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL", "http://{}:{}".format(*running.get_host_and_port()))
        patch.setenv("AWS_ACCESS_KEY_ID", "key")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
        yield s3fs.S3FileSystem()
    running.stop()


def _write_short_report(path, *_, **__):
    path.write_text("<!DOCTYPE html>", encoding="utf-8")


@pytest.fixture(autouse=True)
def _short_reports(request, monkeypatch):
    """Trainings of tests without ``whole_report`` write no figures, which take half their time."""
    if request.node.get_closest_marker("whole_report") is None:
        from visionshare import reports

        short = functools.wraps(reports.write_report)(_write_short_report)
        monkeypatch.setattr(reports, "write_report", short)
