"""A file of results that a stopped run leaves unfinished, and that the same run completes."""

from __future__ import annotations

import hashlib
import itertools
import json
import logging
import os
import time
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

from visionshare.files.durable import make_folder, move_into_place, storage_errors, write_text
from visionshare.files.storage import check_takes_results, is_url, put_file
from visionshare.files.uploads import local_place, remove_empty_folders
from visionshare.store.writer_lock import writer_lock

# Seconds between two records of how far it is: a stop loses so many at most.
_INTERVAL = 1.0

_logger = logging.getLogger(__name__)


@dataclass
class _Record:
    """How far an unfinished file is."""

    identity: str
    inputs: int
    digest: str
    size: int
    counts: dict[str, int]


class ResumedFile:
    """Results of inputs, in order, each exactly once however often the run was stopped."""

    def __init__(self, path: Path, file: IO[bytes], identity: str, header: str) -> None:
        self._path = path
        self._file = file
        self._identity = identity
        self._journal = _unfinished(path, ".json")
        self._record = _read_record(self._journal, file, identity) or self._begun()
        self._header = header
        self._waiting = deque[str]()
        self._written = time.monotonic()
        # Of an input that is not complete yet.
        self._counted: Counter[str] = Counter()
        self._cut()

    @property
    def inputs(self) -> int:
        """Inputs whose results are there."""
        return self._record.inputs

    @property
    def counts(self) -> dict[str, int]:
        """What was counted, in earlier runs too."""
        return self._record.counts

    def remaining(self, inputs: Iterable[str]) -> Iterator[str]:
        """Yield the inputs that have no results yet; all, where the first ones are others now."""
        names = iter(inputs)
        done = list(itertools.islice(names, self._record.inputs))
        digest = ""
        for name in done:
            digest = _next_digest(digest, name)
        if (len(done), digest) != (self._record.inputs, self._record.digest):
            _logger.warning("%s: the inputs changed; all are done again", self._path)
            self._record = self._begun()
            self._cut()
            names = itertools.chain(done, names)
            digest = ""
        for name in names:
            digest = _next_digest(digest, name)
            self._waiting.append(digest)
            yield name

    def add(self, text: str, inputs: int, **counts: int) -> None:
        """Append results."""
        with storage_errors(self._path):
            self._file.write(text.encode("utf-8", "surrogateescape"))
            self._counted.update(counts)
            if not inputs:
                return
            self._record.counts = dict(self._counted + Counter(self._record.counts))
            self._counted.clear()
            for _ in range(inputs):
                self._record.digest = self._waiting.popleft()
            self._record.inputs += inputs
            self._file.flush()
            self._record.size = self._file.tell()
            if time.monotonic() - self._written >= _INTERVAL:
                self._write_record()

    def finish(self, url: str | None = None) -> None:
        """Give the file its name, or upload it to storage."""
        with storage_errors(self._path):
            if url is None:
                self._file.close()
                move_into_place(_unfinished(self._path), self._path)
            else:
                # A stopped upload is repeated, and nothing else.
                self._write_record()
                self._file.close()
                put_file(_unfinished(self._path), url)
                _unfinished(self._path).unlink()
            self._journal.unlink(missing_ok=True)

    def stop(self) -> None:
        """Keep what there is, for the run that completes it."""
        if self._record.inputs:
            self._write_record()
        else:
            # Windows removes no file that is open.
            self._file.close()
            _unfinished(self._path).unlink(missing_ok=True)

    def _begun(self) -> _Record:
        return _Record(self._identity, 0, "", 0, {})

    def _cut(self) -> None:
        """Remove what lies beyond the record, and begin with the header."""
        with storage_errors(self._path):
            self._file.truncate(self._record.size)
            self._file.seek(self._record.size)
            if not self._record.size:
                self._file.write(self._header.encode())

    def _write_record(self) -> None:
        self._file.flush()
        os.fsync(self._file.fileno())
        write_text(self._journal, json.dumps(asdict(self._record)))
        self._written = time.monotonic()


@contextmanager
def resumed_file(
    path: str | os.PathLike[str], identity: str, header: str = ""
) -> Iterator[ResumedFile]:
    """Open a file of results that appears when it is complete."""
    # When the block is left by an exception, or the process dies, the results so far stay beside
    # it in a hidden file. A later block of the same path and identity goes on from there.
    url = os.fspath(path) if is_url(os.fspath(path)) else None
    if url is not None:
        check_takes_results(url)
    final = local_place(path)
    make_folder(final.parent)
    lock = f".{final.name}.lock"
    with writer_lock(final.parent, lock):
        with _appended(final) as data:
            file = ResumedFile(final, data, identity, header)
            try:
                yield file
            except BaseException:
                _keep(file, final)
                raise
            file.finish(url)
        # Windows removes no open file: there a lock that is released removes its own.
        with suppress(PermissionError):
            final.with_name(lock).unlink(missing_ok=True)
    if url is not None:
        remove_empty_folders(final.parent)


def _keep(file: ResumedFile, path: Path) -> None:
    """Keep what there is; where that fails, why the block ended says more."""
    try:
        file.stop()
    except OSError as error:
        _logger.warning("%s: the results so far cannot be kept: %s", path, error)


@contextmanager
def _appended(path: Path) -> Iterator[IO[bytes]]:
    """Open the unfinished file of a path; that a disk is full may show when it is closed."""
    with storage_errors(path):
        data = open(_unfinished(path), "ab")  # noqa: SIM115 - closed below, where errors are typed
    try:
        yield data
    finally:
        with storage_errors(path):
            data.close()


def _unfinished(path: Path, suffix: str = "") -> Path:
    return path.with_name(f".{path.name}.unfinished{suffix}")


def _read_record(journal: Path, data: IO[bytes], identity: str) -> _Record | None:
    """Return the record of a stopped run, None where there is none that fits."""
    try:
        record = _Record(**json.loads(journal.read_text("utf-8")))
        if record.identity != identity or os.fstat(data.fileno()).st_size < record.size:
            return None
    except (OSError, ValueError, TypeError, RecursionError):
        return None
    return record


def _next_digest(digest: str, name: str) -> str:
    """Return the digest of names of which the earlier ones have a digest."""
    return hashlib.sha256(digest.encode() + os.fsencode(name)).hexdigest()
