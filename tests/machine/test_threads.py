"""Predictions have the same bits for any number of threads and callers; limits are counted."""

import hashlib
import json
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

# With BLAS of its own, which is counted: families load it when they first need it.
import cv2  # noqa: F401
import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from tests.generators.examples import family_examples
from visionshare import CompactClassifier
from visionshare.generators import family_names
from visionshare.machine.resources import product, run_blocks, single_threaded_blas, thread_limit

# Not families that know no images: a source is a function, and cannot be built from a name.
NAMES = [name for name in family_names() if name != "sources"]


def blas_threads():
    return {i["filepath"]: i["num_threads"] for i in threadpool_info() if i["user_api"] == "blas"}


def classifiers(names):
    """Return a classifier and images for one example of each family."""
    rng = np.random.default_rng(3)
    images = rng.integers(0, 256, (300, 12, 12)).astype(np.uint8)
    labels = np.arange(len(images)) % 3
    made = {}
    for name in names:
        family = next(iter(family_examples(name).values()))()
        family = family.fit(images[:60], labels[:60])
        ids = rng.choice(family.n_features_, min(90, family.n_features_), replace=False)
        family = family.take(ids)
        weights = rng.standard_normal((7, family.n_features_)).astype(np.float32)
        made[name] = CompactClassifier(family, weights, np.zeros(7), np.arange(7))
    return made, images


def digests(n_jobs=1):
    made, images = classifiers(NAMES)
    return {
        name: hashlib.sha256(model.decision_function(images, n_jobs).tobytes()).hexdigest()
        for name, model in made.items()
    }


@pytest.mark.parametrize("name", NAMES)
def test_callers_at_once_get_the_same_bits_and_leave_the_pools(name):
    import numba

    made, images = classifiers([name])
    model = made[name]
    before, kernels = blas_threads(), numba.get_num_threads()
    expected = model.decision_function(images)
    with ThreadPoolExecutor(8) as pool:
        calls = [pool.submit(model.decision_function, images, 1 + i % 3) for i in range(24)]
        ones = [pool.submit(model.decision_function, images[i : i + 1]) for i in range(24)]
    assert all(np.array_equal(call.result(), expected) for call in calls)
    alone = [model.decision_function(images[i]) for i in range(24)]
    assert all(np.array_equal(a.result(), b) for a, b in zip(ones, alone, strict=True))
    assert blas_threads() == before
    assert numba.get_num_threads() == kernels


def run_python(code, **environment):
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True, text=True, timeout=300, env={**os.environ, **environment},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


HEAD = f"""
import importlib.util, json, os
spec = importlib.util.spec_from_file_location("threads", {__file__!r})
threads = importlib.util.module_from_spec(spec)
spec.loader.exec_module(threads)
"""


def test_threads_of_blas_and_of_calls_do_not_change_bits():
    expected = digests()
    for blas, n_jobs in (("1", 1), ("3", 3)):
        code = f"{HEAD}print(json.dumps(threads.digests({n_jobs})))"
        assert run_python(code, OPENBLAS_NUM_THREADS=blas) == expected


def test_limits_of_blas_are_counted():
    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        entered, leave = threading.Barrier(2), threading.Event()

        def hold():
            with single_threaded_blas():
                entered.wait()
                leave.wait()

        other = threading.Thread(target=hold)
        with single_threaded_blas(), thread_limit(1):
            other.start()
            entered.wait()
        # The other caller still needs it.
        assert set(blas_threads().values()) == {1}
        leave.set()
        other.join()
        assert blas_threads() == before


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform does not fork")
def test_a_fork_inside_the_limit_of_blas_leaves_both_sides_theirs():
    code = f"""{HEAD}
read, write = os.pipe()
with threads.threadpool_limits(2, user_api="blas"):
    before = threads.blas_threads()
    with threads.single_threaded_blas():
        child = os.fork()
    with threads.single_threaded_blas():
        inside = threads.blas_threads()
    both = [inside == dict.fromkeys(before, 1), threads.blas_threads() == before]
if child == 0:
    os.write(write, json.dumps(both).encode())
    os._exit(0)
os.close(write)
with os.fdopen(read) as pipe:
    print(json.dumps([json.loads(pipe.read()), both]))
"""
    assert run_python(code) == [[True, True], [True, True]]


def test_products_are_those_of_numpy():
    rng = np.random.default_rng(0)
    for n, p, k in ((1, 3, 2), (70, 40, 30), (0, 4, 3)):
        a, b = rng.standard_normal((n, p)), rng.standard_normal((p, k))
        np.testing.assert_allclose(product(a, b), np.dot(a, b), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("n_jobs", [1, 2, 9])
def test_blocks_are_called_once_each_and_errors_come_through(n_jobs):
    for n, block in ((0, 4), (1, 4), (37, 4), (40, 4)):
        counts = np.zeros(n, int)
        sizes = []

        def count(start, stop, counts=counts, sizes=sizes):
            counts[start:stop] += 1
            sizes.append(stop - start)

        run_blocks(count, n, block, n_jobs)
        assert (counts == 1).all()
        assert sum(sizes) == n
        assert all(size == block for size in sizes) or n % block

    def fail(start, stop):
        if start == 8:
            raise KeyError(start)

    with pytest.raises(KeyError):
        run_blocks(fail, 40, 4, n_jobs)


def test_blocks_inside_blocks_end():
    counts = np.zeros((12, 12), int)

    def row(start, stop):
        def column(first, last):
            counts[start:stop, first:last] += 1

        run_blocks(column, 12, 2, 4)

    run_blocks(row, 12, 2, 4)
    assert (counts == 1).all()
