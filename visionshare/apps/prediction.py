"""Classes of any number of picture files, in order, with bounded memory, on all cores."""

from __future__ import annotations

import multiprocessing
import os
import signal
import tempfile
import threading
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain, islice

import numpy as np

from visionshare.apps.pictures import read_picture
from visionshare.classifier import CompactClassifier
from visionshare.errors import DataError
from visionshare.resources import resolve_jobs

__all__ = ["Classified", "classify_files"]

# A few first, so that something is seen soon; then chunks that are worth sending.
_FIRST, _CHUNK, _CHUNK_BYTES = 16, 256, 8 << 20
# Fewer pictures are not worth the start of processes.
_FEW = 2048


@dataclass(frozen=True)
class Classified:
    """Some pictures and what they were taken for.

    Attributes
    ----------
    paths : tuple of str
    probabilities : ndarray of shape (n, k), float64
        Rows of NaN for pictures that cannot be read.
    problems : tuple of (str or None)
        Why a picture cannot be read.
    """

    paths: tuple[str, ...]
    probabilities: np.ndarray
    problems: tuple[str | None, ...]


def classify_files(
    classifier: CompactClassifier, paths: Iterable[str], n_jobs: int = 1
) -> Iterator[Classified]:
    """Classify picture files; yield them in order, some at a time.

    Pictures are read, prepared and classified by chunks, by processes of their own where there
    are many. Few chunks are held at any time, however many paths there are. The figures do not
    depend on the number of processes. A picture that cannot be read does not stop the others.

    Parameters
    ----------
    classifier : CompactClassifier
        Of images, not of vectors.
    paths : iterable of str
    n_jobs : int, default 1
        Processes, or threads where there are few pictures; -1 for all cores. A script that asks
        for more than one starts its work under ``if __name__ == "__main__":``.

    Yields
    ------
    Classified

    Raises
    ------
    DataError
        If the classifier is of vectors, or a process died (of too little memory, say).
    """
    if classifier.picture_size is None:
        raise DataError("the classifier classifies vectors, not images")
    jobs, left = resolve_jobs(n_jobs), iter(paths)
    # Something is seen at once; this also compiles what processes then find compiled.
    few = tuple(islice(left, _FIRST))
    if few:
        yield _classified(classifier, few, None)
    head = list(islice(left, _FEW))
    beyond = list(islice(left, 1))
    left = chain(beyond, left)
    if jobs == 1 or not beyond:
        with ThreadPoolExecutor(jobs) as threads:
            for chunk in chain(_chunks(iter(head)), _chunks(left)):
                yield _classified(classifier, chunk, threads if jobs > 1 else None)
        return
    with _workers(classifier, jobs) as workers:
        sent = _chunks(left)
        pending = deque(workers.submit(_in_worker, chunk) for chunk in islice(sent, 3 * jobs))
        # While the processes start.
        for chunk in _chunks(iter(head)):
            yield _classified(classifier, chunk, None)
        yield from _in_order(workers, pending, sent)


def _in_order(
    workers: ProcessPoolExecutor,
    pending: deque[Future[Classified]],
    sent: Iterator[tuple[str, ...]],
) -> Iterator[Classified]:
    try:
        while pending:
            done = pending.popleft().result()
            for chunk in islice(sent, 1):
                pending.append(workers.submit(_in_worker, chunk))
            yield done
    except BrokenProcessPool:
        message = "a process that read pictures died; fewer --jobs need less memory"
        raise DataError(message) from None


def _chunks(paths: Iterator[str]) -> Iterator[tuple[str, ...]]:
    """Yield paths by number and by bytes: large pictures take long."""
    held: list[str] = []
    size = 0
    for path in paths:
        held.append(path)
        try:
            size += os.stat(path).st_size
        except (OSError, ValueError):
            # Whoever reads it will say so.
            size += 1
        if len(held) == _CHUNK or size >= _CHUNK_BYTES:
            yield tuple(held)
            held, size = [], 0
    if held:
        yield tuple(held)


def _classified(
    classifier: CompactClassifier, paths: tuple[str, ...], threads: ThreadPoolExecutor | None
) -> Classified:
    def read(path: str) -> np.ndarray | str:
        try:
            return read_picture(classifier, path)
        except DataError as error:
            return str(error)
        except MemoryError:
            return f"{path}: decoding it takes too much memory"

    found = list((map if threads is None else threads.map)(read, paths))
    sound = [i for i, image in enumerate(found) if not isinstance(image, str)]
    shares = np.full((len(paths), len(classifier.classes_)), np.nan)
    if sound:
        shares[sound] = classifier.predict_proba(np.stack([found[i] for i in sound]))
    problems = tuple(image if isinstance(image, str) else None for image in found)
    return Classified(paths, shares, problems)


@contextmanager
def _workers(classifier: CompactClassifier, jobs: int) -> Iterator[ProcessPoolExecutor]:
    """Yield processes that have the classifier; they end with the block, whatever ends it."""
    context = multiprocessing.get_context("spawn")
    before = set(context.active_children())
    with tempfile.TemporaryDirectory() as folder:
        # As a file: this process would have to wait until each of them has read an argument.
        file = os.path.join(folder, "classifier.safetensors")
        replace(classifier, exit_rule=None, path=()).save(file)
        with _interrupts_ignored():
            workers = ProcessPoolExecutor(jobs, context, _begin, (file,))
            # Each of them starts with the first call that finds no idle one.
            for _ in range(jobs):
                workers.submit(os.getpid)
        try:
            yield workers
        except BaseException:
            for process in set(context.active_children()) - before:
                process.terminate()
            raise
        finally:
            workers.shutdown(cancel_futures=True)


@contextmanager
def _interrupts_ignored() -> Iterator[None]:
    """Let processes that start now ignore Ctrl-C: this one hears it, and ends them."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


_own: list[CompactClassifier] = []


def _begin(file: str) -> None:
    """Make this process a worker with a classifier."""
    from threadpoolctl import threadpool_limits

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threadpool_limits(1)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _own.append(CompactClassifier.load(file))


def _end_with_parent() -> None:
    # A parent that was killed cannot say that there is no more work.
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _in_worker(paths: tuple[str, ...]) -> Classified:
    return _classified(_own[0], paths, None)
