"""Classes of any number of pictures, in order, with bounded memory, on all cores or a cluster."""

from __future__ import annotations

import os
import tempfile
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from itertools import chain, islice
from numbers import Integral

import numpy as np

from visionshare.batch.mapping import Mapper, itself
from visionshare.batch.pictures import read_picture
from visionshare.batch.worker_processes import DeadProcess, WorkerProcesses, worker_processes
from visionshare.classifier import CompactClassifier
from visionshare.datasets.opening import open_picture
from visionshare.datasets.readers.picture_set import Content
from visionshare.datasets.readers.tars import is_tar, tar_contents
from visionshare.errors import DataError, InputError
from visionshare.files.storage import is_url, open_file
from visionshare.machine.resources import resolve_jobs, single_threaded_blas


@dataclass(frozen=True)
class BatchLimits:
    """Limits on how many pictures are classified together.

    Attributes
    ----------
    first : int, default 16
        Pictures of the first batch, which is small so that results are seen soon.
    batch : int, default 256
        Pictures of a later batch.
    batch_bytes : int, default 8 MiB
        A batch ends when its files have this size: large pictures take long.
    raster_bytes : int, default 64 MiB
        Of the images of a batch, as the classifier takes them: fewer of large ones are together.
    sequential : int, default 2048
        Processes are started only if there are more pictures than these after the first batch;
        this process classifies them while the others start.

    Examples
    --------
    >>> BatchLimits(first=1).batch
    256
    """

    first: int = 16
    batch: int = 256
    batch_bytes: int = 8 << 20
    raster_bytes: int = 64 << 20
    sequential: int = 2048

    def __post_init__(self) -> None:
        for limit in fields(self):
            value = getattr(self, limit.name)
            if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
                raise InputError(limit.name, value, "an integer of at least 1")


@dataclass(frozen=True)
class Classified:
    """A batch of pictures and their probabilities.

    Attributes
    ----------
    paths : tuple of str
    probabilities : ndarray of shape (n, k), float64
        Rows of NaN for pictures that cannot be read.
    problems : tuple of (str or None)
        Why a picture cannot be read.
    files : int
        Of the paths that were given, how many end with this batch: a tar has many pictures.
    left_out : dict
        Pages and frames that were not used, by the names of pictures.
    known : ndarray of shape (n,), optional
        Of a classifier that refuses: the share of known pictures that look as strange.

    Examples
    --------
    >>> batch = Classified(("a.png",), np.array([[0.2, 0.8]]), (None,), files=1)
    >>> batch.probabilities.argmax(axis=1).tolist()
    [1]
    """

    paths: tuple[str, ...]
    probabilities: np.ndarray
    problems: tuple[str | None, ...]
    files: int
    left_out: dict[str, int] = field(default_factory=dict)
    known: np.ndarray | None = None


def classify_files(
    classifier: CompactClassifier,
    paths: Iterable[str],
    n_jobs: int = 1,
    limits: BatchLimits | None = None,
    mapper: Mapper | None = None,
) -> Iterator[Classified]:
    """Classify pictures of files and of tars; yield them in order, a batch at a time.

    Pictures are read, preprocessed and classified in batches, by other processes where there are
    many. Few batches are in memory at any time, however many paths there are. The probabilities do
    not depend on the number of processes. A picture that cannot be read does not stop the others.

    Parameters
    ----------
    classifier : CompactClassifier
        Of images, not of vectors.
    paths : iterable of str
        Pictures, and tars of them (one that cannot be read is one problem); URLs too, of storage
        that fsspec opens.
    n_jobs : int, default 1
        Processes, or threads where there are few pictures; -1 for all cores. A script that asks
        for more than one starts its work under ``if __name__ == "__main__":``.
    limits : BatchLimits, optional
        Sizes of the batches.
    mapper : Mapper, optional
        Carries the batches out elsewhere, on a cluster for example; ``n_jobs`` is not used then.

    Yields
    ------
    Classified

    Raises
    ------
    DataError
        If the classifier is of vectors, or a process died (for lack of memory, for example).

    Examples
    --------
    >>> import tempfile
    >>> from PIL import Image
    >>> from visionshare import Pixels
    >>> family = Pixels().fit(np.zeros((1, 2, 2))).take([0, 3])
    >>> model = CompactClassifier(family, np.eye(2), np.array([1.0, 0.0]), np.array(["a", "b"]))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Image.new("L", (9, 9), 7).save(f"{folder}/a.png")
    ...     batches = list(classify_files(model, [f"{folder}/a.png"]))
    >>> batches[0].probabilities.round(2).tolist()
    [[0.73, 0.27]]
    """
    if classifier.picture_size is None:
        raise DataError("the classifier classifies vectors, not images")
    limits = BatchLimits() if limits is None else limits
    fitting = max(1, limits.raster_bytes // max(1, int(np.prod(classifier.image_shape))))
    limits = replace(limits, first=min(limits.first, fitting), batch=min(limits.batch, fitting))
    jobs = resolve_jobs(n_jobs)
    remaining = iter(paths)
    if mapper is not None:
        model = replace(classifier, exit_rule=None, path=())
        batches = _batches(remaining, limits)
        for parts in mapper(_classified_there, itself, (model,), batches):
            yield from parts
        return
    # This also compiles the kernels: other processes then find them in the cache.
    first, remaining = _leading_pictures(remaining, limits.first)
    if first:
        yield from _classified(classifier, tuple(first), None)
    head, remaining = _leading_pictures(remaining, limits.sequential)
    beyond = list(islice(remaining, 1))
    remaining = chain(beyond, remaining)
    if jobs == 1 or not beyond:
        with ThreadPoolExecutor(jobs) as threads:
            for batch in chain(_batches(head, limits), _batches(remaining, limits)):
                yield from _classified(classifier, batch, threads if jobs > 1 else None)
        return
    with _workers(classifier, jobs) as workers:
        batches = _batches(remaining, limits)
        pending = deque(workers.submit(_in_worker, batch) for batch in islice(batches, 3 * jobs))
        # While the processes start.
        for batch in _batches(head, limits):
            yield from _classified(classifier, batch, None)
        yield from _in_order(workers, pending, batches)


def _leading_pictures(paths: Iterator[str], most: int) -> tuple[list[str], Iterator[str]]:
    """Return the pictures before the first tar, so many at most, and the other paths."""
    taken: list[str] = []
    for path in paths:
        if is_tar(path):
            return taken, chain([path], paths)
        taken.append(path)
        if len(taken) == most:
            break
    return taken, paths


def _in_order(
    workers: WorkerProcesses,
    pending: deque[Future[list[Classified]]],
    batches: Iterator[tuple[str, ...]],
) -> Iterator[Classified]:
    """Yield the results in the order of the batches; a batch is sent for each that comes back."""
    try:
        while pending:
            results = pending.popleft().result()
            for batch in islice(batches, 1):
                pending.append(workers.submit(_in_worker, batch))
            yield from results
    except DeadProcess:
        message = "a process that read pictures died; fewer --jobs need less memory"
        raise DataError(message) from None


def _batches(paths: Iterable[str], limits: BatchLimits) -> Iterator[tuple[str, ...]]:
    """Yield paths that are classified together: pictures, or one tar."""
    batch: list[str] = []
    size = 0
    for path in paths:
        if is_tar(path):
            if batch:
                yield tuple(batch)
            yield (path,)
            batch = []
            size = 0
            continue
        batch.append(path)
        size += _file_bytes(path)
        if len(batch) == limits.batch or size >= limits.batch_bytes:
            yield tuple(batch)
            batch = []
            size = 0
    if batch:
        yield tuple(batch)


def _file_bytes(path: str) -> int:
    """Return a file's bytes; 1 where reading it will say more."""
    try:
        return 1 if is_url(path) else os.stat(path).st_size
    except (OSError, ValueError):
        return 1


def _classified_there(classifier: CompactClassifier, paths: tuple[str, ...]) -> list[Classified]:
    """Classify a batch on a worker, in one of its threads."""
    with single_threaded_blas():
        return list(_classified(classifier, paths, None))


def _classified(
    classifier: CompactClassifier, paths: tuple[str, ...], threads: ThreadPoolExecutor | None
) -> Iterator[Classified]:
    """Yield the batch of these pictures, or the pictures of a tar."""
    if not is_tar(paths[0]):
        pictures = [Content(path, path) for path in paths]
        yield _classified_pictures(classifier, pictures, threads, len(paths))
        return
    (tar,) = paths
    contents = tar_contents(tar)
    limits = BatchLimits()
    try:
        while pictures := _next_pictures(contents, limits):
            yield _classified_pictures(classifier, pictures, threads, 0)
    except DataError as error:
        nothing = np.full((1, len(classifier.classes_)), np.nan)
        yield Classified((tar,), nothing, (str(error),), 1)
        return
    yield Classified((), np.zeros((0, len(classifier.classes_))), (), 1)


def _next_pictures(contents: Iterator[Content], limits: BatchLimits) -> list[Content]:
    pictures: list[Content] = []
    size = 0
    for content in contents:
        pictures.append(content)
        size += len(content.data)
        if len(pictures) == limits.batch or size >= limits.batch_bytes:
            break
    return pictures


def _classified_pictures(
    classifier: CompactClassifier,
    pictures: Sequence[Content],
    threads: ThreadPoolExecutor | None,
    files: int,
) -> Classified:
    left_out: dict[str, int] = {}

    def read(picture: Content) -> np.ndarray | str:
        name = picture.name
        data: str | bytes = picture.data if isinstance(picture.data, bytes) else name
        try:
            if data is name and is_url(name):
                with open_file(name) as file:
                    data = file.read()
            opened = open_picture(data, name=name)
            if opened.n_pages > 1:
                left_out[name] = opened.n_pages - 1
            return read_picture(classifier, opened)
        except DataError as error:
            return str(error) if str(error).startswith(name) else f"{name}: {error}"
        except MemoryError:
            return f"{name}: decoding it takes too much memory"

    results = list((map if threads is None else threads.map)(read, pictures))
    images = {i: image for i, image in enumerate(results) if not isinstance(image, str)}
    probabilities = np.full((len(pictures), len(classifier.classes_)), np.nan)
    known = None
    rows = list(images)
    rasters = np.stack(list(images.values())) if images else None
    if rasters is not None:
        scores, shares = classifier.judged(rasters)
        probabilities[rows] = classifier.probabilities(scores)
        if shares is not None:
            known = np.full(len(pictures), np.nan)
            known[rows] = shares
    problems = tuple(result if isinstance(result, str) else None for result in results)
    names = tuple(p.name for p in pictures)
    return Classified(names, probabilities, problems, files, left_out, known)


@contextmanager
def _workers(classifier: CompactClassifier, jobs: int) -> Iterator[WorkerProcesses]:
    """Yield processes that have the classifier; they end with the block, whatever ends it."""
    with tempfile.TemporaryDirectory() as folder:
        # As a file: this process would have to wait until each of them has read an argument.
        file = os.path.join(folder, "classifier.safetensors")
        replace(classifier, exit_rule=None, path=()).save(file)
        with worker_processes(jobs, _begin, file) as workers:
            yield workers


# The classifier of this process, where it is a worker.
_worker_classifier: list[CompactClassifier] = []


def _begin(file: str) -> None:
    """Make this process a worker with a classifier."""
    from threadpoolctl import threadpool_limits

    threadpool_limits(1)
    _worker_classifier.append(CompactClassifier.load(file))


def _in_worker(paths: tuple[str, ...]) -> list[Classified]:
    return list(_classified(_worker_classifier[0], paths, None))
