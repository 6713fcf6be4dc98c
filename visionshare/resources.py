"""What a run may use and what it used: memory, threads, folders for what can be made again."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

from visionshare.errors import InputError

__all__ = [
    "available_memory",
    "cache_folder",
    "parse_size",
    "peak_memory",
    "resolve_jobs",
    "size_text",
    "thread_limit",
]

_limits = threading.local()


def parse_size(size: str | int, argument: str = "memory") -> int:
    """Return a number of bytes from a size such as ``"2GiB"``, ``"500 MB"`` or ``1024``.

    Units are those of pydantic's ``ByteSize``: MB, or M, is 10⁶ bytes, and MiB 2²⁰.

    Parameters
    ----------
    size : str or int
    argument : str, default "memory"
        What an error calls it.

    Raises
    ------
    InputError
        If it is no positive size.

    Examples
    --------
    >>> parse_size("2GiB")
    2147483648
    >>> parse_size("1.5 kB")
    1500
    """
    # Imported here: learners and columns, which import this file, take numbers.
    from pydantic import ByteSize, TypeAdapter, ValidationError

    number = 0
    if isinstance(size, (int, str)) and not isinstance(size, bool):
        try:
            number = TypeAdapter(ByteSize).validate_python(size)
        except (ValidationError, OverflowError):
            number = 0
    if not 0 < number < 2**63:
        raise InputError(argument, size, 'a size such as "2GiB", "500MB" or a number of bytes')
    return int(number)


def resolve_jobs(n_jobs: int | None, argument: str = "n_jobs") -> int:
    """Return a number of threads, as scikit-learn counts: None is 1, -1 all cores, -2 all but one.

    Cores are those that this process may use: its affinity and a container's limits count.

    Parameters
    ----------
    n_jobs : int or None
    argument : str, default "n_jobs"
        What an error calls it.

    Raises
    ------
    InputError
        If it is 0, or no integer.

    Examples
    --------
    >>> resolve_jobs(None), resolve_jobs(3), resolve_jobs(-1) >= resolve_jobs(-2) >= 1
    (1, 3, True)
    """
    if n_jobs is None:
        return 1
    if isinstance(n_jobs, bool) or not hasattr(n_jobs, "__index__") or n_jobs == 0:
        raise InputError(argument, n_jobs, "a number of threads, or -1 for all cores")
    if n_jobs > 0:
        return int(n_jobs)
    from joblib import cpu_count

    return max(1, int(cpu_count()) + 1 + int(n_jobs))


@contextmanager
def thread_limit(n_jobs: int | None = 1) -> Iterator[int]:
    """Run numba kernels on ``n_jobs`` threads, and BLAS on one thread inside each.

    Every parallel loop of the library is over blocks of a fixed size, each computed by one
    thread with a single-threaded BLAS, so that results do not depend on ``n_jobs``.

    Parameters
    ----------
    n_jobs : int or None, default 1
        See :func:`resolve_jobs`.

    Yields
    ------
    int
        The number of numba threads in force (never more than numba was started with).

    Examples
    --------
    >>> with thread_limit(1) as threads:
    ...     threads
    1
    """
    import numba
    from threadpoolctl import threadpool_limits

    before = numba.get_num_threads()
    threads = min(resolve_jobs(n_jobs), int(numba.config.NUMBA_NUM_THREADS))
    # Finding the BLAS libraries takes milliseconds: only the outermost of nested limits does.
    outermost = not getattr(_limits, "active", False)
    with threadpool_limits(limits=1, user_api="blas") if outermost else nullcontext():
        numba.set_num_threads(threads)
        _limits.active = True
        try:
            yield threads
        finally:
            _limits.active = not outermost
            numba.set_num_threads(before)


def cache_folder() -> Path:
    """Return the user's folder for files that can be made or fetched again.

    It is the platform's: on Linux ``$XDG_CACHE_HOME/visionshare``, or ``~/.cache/visionshare``.

    Examples
    --------
    >>> cache_folder().name
    'visionshare'
    """
    from platformdirs import user_cache_path

    return user_cache_path("visionshare", appauthor=False, opinion=False)


def available_memory() -> int:
    """Return how many bytes this machine, or the container that this process is in, has.

    Examples
    --------
    >>> available_memory() > 1 << 28
    True
    """
    import os

    limits = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    for file in ("memory.max", "memory/memory.limit_in_bytes"):
        try:
            limits.append(int(Path("/sys/fs/cgroup", file).read_text()))
        except (OSError, ValueError):
            # No such limit here, or "max".
            continue
    return min(limits)


def size_text(n_bytes: float) -> str:
    """Return a number of bytes as people write it.

    Examples
    --------
    >>> size_text(3 << 30), size_text(10**18)
    ('3.0 GiB', '888.2 PiB')
    """
    for unit in ("bytes", "KiB", "MiB", "GiB", "TiB"):
        if n_bytes < 1024:
            return f"{n_bytes:.1f} {unit}"
        n_bytes /= 1024
    return f"{n_bytes:.1f} PiB"


def peak_memory() -> int:
    """Return the largest resident size of this process so far, in bytes.

    Examples
    --------
    >>> peak_memory() > 1 << 20
    True
    """
    import resource
    import sys

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(peak if sys.platform == "darwin" else peak * 1024)
