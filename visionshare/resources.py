"""Memory sizes, threads and peak memory: what a run may use and what it used."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

from visionshare.errors import InputError

__all__ = ["parse_size", "peak_memory", "resolve_jobs", "thread_limit"]

_limits = threading.local()
_UNITS = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}
_UNITS |= {"k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
_UNITS |= {"kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40}


def parse_size(size: str | int, argument: str = "memory") -> int:
    """Return a number of bytes from a size such as ``"2GiB"``, ``"500 MB"`` or ``1024``.

    Raises
    ------
    InputError
        If the text is no positive size.

    Examples
    --------
    >>> parse_size("2GiB")
    2147483648
    >>> parse_size("1.5 kB")
    1500
    """
    accepted = 'a positive size such as "2GiB", "500MB" or a number of bytes'
    if isinstance(size, bool) or not isinstance(size, (int, str)):
        raise InputError(argument, size, accepted)
    if isinstance(size, int):
        if size <= 0:
            raise InputError(argument, size, accepted)
        return size
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-zA-Z]*)\s*", size)
    if match is None or match[2].lower() not in _UNITS:
        raise InputError(argument, size, accepted)
    number = int(float(match[1]) * _UNITS[match[2].lower()])
    if number <= 0:
        raise InputError(argument, size, accepted)
    return number


def resolve_jobs(n_jobs: int | None, argument: str = "n_jobs") -> int:
    """Return a number of threads, as scikit-learn counts: None is 1, -1 all cores, -2 all but one.

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
    # Cores that this process may use, limits of a container included.
    from joblib import cpu_count

    return max(1, int(cpu_count()) + 1 + int(n_jobs))


@contextmanager
def thread_limit(n_jobs: int | None = 1) -> Iterator[int]:
    """Run numba kernels on ``n_jobs`` threads, and BLAS on one thread inside each.

    Every parallel loop of the library is over blocks of a fixed size, each computed by one
    thread with a single-threaded BLAS, so that results do not depend on ``n_jobs``.

    Yields
    ------
    int
        The number of numba threads in force (never more than numba was started with).
    """
    import numba
    from threadpoolctl import threadpool_limits

    before = numba.get_num_threads()
    threads = min(resolve_jobs(n_jobs), int(numba.config.NUMBA_NUM_THREADS))
    # Finding the BLAS libraries takes milliseconds: only the outermost of nested limits does.
    outermost = not getattr(_limits, "held", False)
    with threadpool_limits(limits=1, user_api="blas") if outermost else nullcontext():
        numba.set_num_threads(threads)
        _limits.held = True
        try:
            yield threads
        finally:
            _limits.held = not outermost
            numba.set_num_threads(before)


def peak_memory() -> int:
    """Return the largest resident size of this process so far, in bytes."""
    import resource
    import sys

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(peak if sys.platform == "darwin" else peak * 1024)
