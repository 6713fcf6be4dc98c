"""Sizes, threads and folders."""

import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from visionshare.errors import InputError
from visionshare.machine.resources import (
    cache_folder,
    parse_size,
    resolve_jobs,
    run_kernel,
    thread_limit,
)


@pytest.mark.parametrize(
    ("size", "number"),
    [
        ("4GiB", 4 << 30), ("500MB", 500_000_000), ("500 MB", 500_000_000), ("1.5kB", 1500),
        (" 2 gib ", 2 << 30), ("2G", 2_000_000_000), ("1024", 1024), (1024, 1024), ("7B", 7),
    ],
)  # fmt: skip
def test_sizes_are_read(size, number):
    assert parse_size(size) == number
    assert type(parse_size(size)) is int


@pytest.mark.parametrize(
    "size",
    [
        "much", "", "-3GiB", "0", 0, -1, True, None, 1.5, b"3", [1], "nan", "inf", "1e3", "2 bogus",
        "GiB", "1 bit", "9" * 40, "9" * 400 + "GiB", 2**70,
    ],
)  # fmt: skip
def test_other_sizes_are_refused_by_name(size):
    with pytest.raises(InputError, match=r"^store\.memory: got .*\"2GiB\""):
        parse_size(size, "store.memory")


def test_threads_are_counted_as_scikit_learn_does():
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    assert 1 <= resolve_jobs(-1) <= cores
    assert resolve_jobs(-2) == max(1, resolve_jobs(-1) - 1)
    assert resolve_jobs(-10_000) == 1
    for wrong in (0, 1.5, "2", True):
        with pytest.raises(InputError, match=r"^--jobs: got"):
            resolve_jobs(wrong, "--jobs")


def _threads_of_a_kernel():
    """Return how many parts a kernel's work of 1000 numbers is divided into: 1 on one thread."""
    parts = []
    run_kernel(lambda first, last: parts.append((first, last)), 1000)
    covered = sorted(parts)
    assert [first for first, _ in covered] == [0, *(last for _, last in covered[:-1])]
    assert covered[-1][1] == 1000
    return len(parts)


def test_thread_limits_nest_and_end():
    assert _threads_of_a_kernel() == 1
    with thread_limit(2) as outer:
        two = _threads_of_a_kernel()
        with thread_limit(1) as inner:
            assert (outer, inner, _threads_of_a_kernel()) == (2, 1, 1)
        assert _threads_of_a_kernel() == two > 1
    assert _threads_of_a_kernel() == 1


def test_a_thread_limit_holds_in_its_own_thread_alone():
    with ThreadPoolExecutor(1) as pool, thread_limit(2):
        assert pool.submit(_threads_of_a_kernel).result() == 1
        assert _threads_of_a_kernel() > 1


def test_a_kernel_without_work_is_called_for_nothing():
    for threads in (1, 2):
        with thread_limit(threads):
            run_kernel(lambda first, last: pytest.fail("called") if first < last else None, 0)


@pytest.mark.skipif(os.name != "posix", reason="other platforms have folders of their own")
def test_the_cache_is_where_the_user_says(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "visionshare"
