"""What a run may use and what it used: memory, threads, folders for what can be made again."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from contextvars import ContextVar, copy_context
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from visionshare.errors import InputError
from visionshare.machine.system import physical_memory

if TYPE_CHECKING:
    import numpy as np


# Multiply-accumulates that take less time than to wake a thread: no library divides them.
_NO_THREADS = 4096
# Parts that a kernel's work is divided into, for each thread: what is left at the end is short.
_PARTS_A_THREAD = 4
# Threads that the kernels of this context may use, see ``thread_limit``.
_kernel_threads: ContextVar[int] = ContextVar("kernel_threads", default=1)


def parse_size(size: str | int, argument: str = "memory") -> int:
    """Return a number of bytes from a size such as ``"2GiB"``, ``"500 MB"`` or ``1024``."""
    # Units as in pydantic's ``ByteSize``: MB, or M, is 10⁶ bytes, and MiB 2²⁰.
    # Imported here: pydantic takes long to import, and only commands and recipes write sizes.
    from pydantic import ByteSize, TypeAdapter, ValidationError

    number = 0
    if isinstance(size, (int, str)) and not isinstance(size, bool):
        with suppress(ValidationError, OverflowError):
            number = TypeAdapter(ByteSize).validate_python(size)
    if not 0 < number < 2**63:
        raise InputError(argument, size, 'a size such as "2GiB", "500MB" or a number of bytes')
    return int(number)


def resolve_jobs(n_jobs: int | None, argument: str = "n_jobs") -> int:
    """Return a number of threads, as scikit-learn counts."""
    # None is 1, -1 all cores, -2 all but one. Cores are those that this process may use: its
    # affinity and a container's limits count.
    if n_jobs is None:
        return 1
    if isinstance(n_jobs, bool) or not hasattr(n_jobs, "__index__") or n_jobs == 0:
        raise InputError(argument, n_jobs, "a number of threads, or -1 for all cores")
    if n_jobs > 0:
        return int(n_jobs)
    from joblib import cpu_count

    return max(1, int(cpu_count()) + 1 + int(n_jobs))


class _Library(NamedTuple):
    """A BLAS library: its file, and what says and sets its number of threads."""

    file: str
    get_threads: Callable[[], int | None]
    set_threads: Callable[[int], object]


def _library(controller: Any, openmp: bool) -> _Library:
    # Threadpoolctl ignores all Python threads but the first that set a number, as they would
    # disturb each other. Here callers are counted under a lock. OpenBLAS's own functions, without
    # threadpoolctl's search for them in each call, take a third of the time of the whole limit.
    if controller.internal_api == "openblas" and not openmp:
        get = _openblas_function(controller.dynlib, "openblas_get_num_threads")
        put = _openblas_function(controller.dynlib, "openblas_set_num_threads")
        if get is not None and put is not None:
            return _Library(controller.filepath, get, put)
    return _Library(controller.filepath, controller.get_num_threads, controller.set_num_threads)


def _openblas_function(library: Any, name: str) -> Callable[..., Any] | None:
    """Return a function of OpenBLAS by one of the names that its builds give it."""
    for prefix in ("", "scipy_"):
        for suffix in ("", "64_", "_64"):
            function: Callable[..., Any] | None = getattr(library, prefix + name + suffix, None)
            if function is not None:
                return function
    return None


class _OneThread:
    """Libraries that are held at one thread, and what they had before."""

    def __init__(self) -> None:
        self.callers = 0
        self._before: dict[str, tuple[_Library, int]] = {}

    def enter(self, libraries: list[_Library], *, new: bool) -> None:
        """Count a caller; limit what is not limited for the first one, and for new libraries."""
        if self.callers == 0 or new:
            for library in libraries:
                threads = library.get_threads()
                # None: a library that does not say how many it has.
                if threads is not None and threads > 1 and library.file not in self._before:
                    self._before[library.file] = (library, threads)
                    library.set_threads(1)
        self.callers += 1

    def exit(self) -> None:
        """Count a caller less, and restore the libraries after the last one."""
        # None is left to count where the process forked inside the block.
        self.callers = max(0, self.callers - 1)
        if self.callers == 0:
            self.restore()

    def restore(self) -> None:
        """Give each library the threads that it had."""
        for library, threads in self._before.values():
            library.set_threads(threads)
        self._before.clear()


class _BlasLimit:
    """Holds the BLAS libraries of the process at one thread while anybody asks for it."""

    def __init__(self) -> None:
        self._common: list[_Library] = []
        self._by_thread: list[_Library] = []
        self._reset()

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._n_modules = -1
        self._everyone = _OneThread()
        self._local = threading.local()

    def enter(self) -> None:
        with self._lock:
            # Finding the libraries takes milliseconds. A new one comes with a new module.
            new = len(sys.modules) != self._n_modules
            if new:
                self._find_libraries()
            self._everyone.enter(self._common, new=new)
        if self._by_thread:
            if not hasattr(self._local, "limit"):
                self._local.limit = _OneThread()
            self._local.limit.enter(self._by_thread, new=new)

    def exit(self) -> None:
        limit = getattr(self._local, "limit", None)
        if limit is not None and limit.callers:
            limit.exit()
        with self._lock:
            self._everyone.exit()

    def after_fork(self) -> None:
        """Forget the callers of the parent: their threads are not in this process."""
        before = self._everyone
        self._reset()
        before.restore()

    def _find_libraries(self) -> None:
        from threadpoolctl import ThreadpoolController

        self._common = []
        self._by_thread = []
        for controller in ThreadpoolController().select(user_api="blas").lib_controllers:
            openmp = getattr(controller, "threading_layer", None) == "openmp"
            (self._by_thread if openmp else self._common).append(_library(controller, openmp))
        self._n_modules = len(sys.modules)


class _Workers:
    """The threads of :func:`run_blocks`, started on first use in each process."""

    def __init__(self) -> None:
        self.after_fork()

    def after_fork(self) -> None:
        """Forget the threads of the parent: they are not in this process."""
        self._lock = threading.Lock()
        self._pool: ThreadPoolExecutor | None = None

    def submit(self, function: Callable[[], None], n: int) -> list[Future[None]]:
        """Start a function up to ``n`` times; less often where the interpreter is ending."""
        with self._lock:
            if self._pool is None:
                # The calling thread works too.
                most = max(1, resolve_jobs(-1) - 1)
                self._pool = ThreadPoolExecutor(most, thread_name_prefix="visionshare")
        try:
            return [self._pool.submit(copy_context().run, function) for _ in range(n)]
        except RuntimeError:
            return []


_blas_limit = _BlasLimit()
_workers = _Workers()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_blas_limit.after_fork)
    os.register_at_fork(after_in_child=_workers.after_fork)


class single_threaded_blas:
    """Compute products of matrices on the thread that asks for them."""

    def __enter__(self) -> None:
        _blas_limit.enter()

    def __exit__(self, *error: object) -> None:
        _blas_limit.exit()


def product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the product of two matrices; its bits do not depend on the threads of BLAS."""
    result: np.ndarray
    if a.size * b.shape[1] <= _NO_THREADS:
        result = a.dot(b)
    else:
        with single_threaded_blas():
            result = a.dot(b)
    return result


def run_blocks(
    function: Callable[[int, int], object], n: int, block: int, n_jobs: int | None = 1
) -> None:
    """Call ``function(start, stop)`` for blocks of a fixed size below ``n``."""
    # For kernels that
    # release the interpreter's lock. The calling thread takes part; the others belong to the
    # library, serve all callers, and are started anew in a child that was forked. No kernel is
    # compiled with threads of its own (``parallel=True``): these would not survive a fork.
    jobs = min(resolve_jobs(n_jobs), -(-n // block))
    if jobs <= 1:
        for start in range(0, n, block):
            function(start, min(start + block, n))
        return
    starts = iter(range(0, n, block))
    lock = threading.Lock()
    failed = threading.Event()

    def work() -> None:
        while not failed.is_set():
            with lock:
                start = next(starts, n)
            if start >= n:
                return
            try:
                function(start, min(start + block, n))
            except BaseException:
                failed.set()
                raise

    def help_out() -> None:
        with single_threaded_blas():
            work()

    helpers = _workers.submit(help_out, jobs - 1)
    try:
        work()
    finally:
        # Those that wait for a thread have nothing left to do: run_blocks inside run_blocks
        # cannot wait for itself.
        running = [helper for helper in helpers if not helper.cancel()]
        errors = [helper.exception() for helper in running]
    for error in errors:
        if error is not None:
            raise error


def run_kernel(kernel: Callable[..., object], n: int, *args: Any) -> None:
    """Call ``kernel(first, last, *args)`` for parts that cover the numbers below ``n``."""
    # It runs on as many threads as the :class:`thread_limit` around it says.
    threads = _kernel_threads.get()
    if threads <= 1:
        # One call: it costs less than many.
        kernel(0, n, *args)
        return
    block = max(1, -(-n // (_PARTS_A_THREAD * threads)))
    run_blocks(lambda first, last: kernel(first, last, *args), n, block, threads)


@contextmanager
def thread_limit(n_jobs: int | None = 1) -> Iterator[int]:
    """Run kernels (:func:`run_kernel`) on ``n_jobs`` threads, and BLAS on one."""
    # Parts of a kernel's work have results of their own, computed by one thread with a single-
    # threaded BLAS, so that results do not depend on ``n_jobs``.
    before = _kernel_threads.get()
    threads = resolve_jobs(n_jobs)
    with single_threaded_blas():
        _kernel_threads.set(threads)
        try:
            yield threads
        finally:
            _kernel_threads.set(before)


def cache_folder() -> Path:
    """Return the user's folder for files that can be made or fetched again."""
    # It is the platform's: on Linux ``$XDG_CACHE_HOME/visionshare``, or ``~/.cache/visionshare``.
    from platformdirs import user_cache_path

    return user_cache_path("visionshare", appauthor=False, opinion=False)


def available_memory() -> int:
    """Return how many bytes this machine, or the container that this process is in, has."""
    limits = [physical_memory()]
    for file in ("memory.max", "memory/memory.limit_in_bytes"):
        try:
            limits.append(int(Path("/sys/fs/cgroup", file).read_text("ascii")))
        except (OSError, ValueError):
            # No such limit here, or "max".
            continue
    return min(limits)


def size_text(n_bytes: float) -> str:
    """Return a number of bytes as people write it."""
    for unit in ("bytes", "KiB", "MiB", "GiB", "TiB"):
        if n_bytes < 1024:
            return f"{n_bytes:.1f} {unit}"
        n_bytes /= 1024
    return f"{n_bytes:.1f} PiB"
