"""Checkpoints: a folder with one small file per round, from which a stopped run resumes."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Generic, TypeVar

import numpy as np

from visionshare.errors import DataError, InputError
from visionshare.files.durable import write_text
from visionshare.files.fingerprints import array_fingerprint
from visionshare.files.tensors import read_tensor_file, write_tensor_file
from visionshare.machine.progress import shown, track
from visionshare.registry import description

__all__ = ["VERSION", "Checkpoint", "Run", "run_identity", "tracked"]

R = TypeVar("R")
# Of the rounds' files; folders of another format are refused.
VERSION = 4
_ROUND = "visionshare-round"
_DTYPES = ("F32", "F64", "I64")

_logger = logging.getLogger(__name__)


def run_identity(settings: Sequence[object], *arrays: np.ndarray) -> str:
    """Return the identity of a run."""
    # Settings, which names and equal objects describe alike, data.
    text = "\n".join(map(description, settings))
    return array_fingerprint(np.frombuffer(text.encode(), np.uint8), *arrays)


class Checkpoint(Generic[R]):
    """The rounds of one run, on disk."""

    def __init__(self, folder: str | os.PathLike[str], fingerprint: str, record: type[R]) -> None:
        self.folder, self.record, self.fingerprint = Path(folder), record, fingerprint
        file = self.folder / "run.json"
        identity = {"format": VERSION, "fingerprint": fingerprint}
        if not file.exists():
            write_text(file, json.dumps(identity))
            return
        try:
            written = json.loads(file.read_text("utf-8"))
        except (ValueError, RecursionError, OSError):
            written = None
        if written != identity:
            accepted = "a folder of the same run and version, or one that does not exist"
            raise InputError("checkpoint", str(folder), accepted)

    def _file(self, number: int) -> Path:
        return self.folder / f"round-{number:05d}.safetensors"

    def save(self, record: R, number: int) -> None:
        """Write a record atomically; records are numbered from 1 without gaps."""
        arrays = {f.name: np.asarray(getattr(record, f.name)) for f in fields(record)}  # type: ignore[arg-type]
        about = {"run": self.fingerprint, "number": number}
        write_tensor_file(self._file(number), _ROUND, VERSION, about, arrays)

    def load(self) -> list[R]:
        """Return the records from the first on, up to the first that is missing or damaged."""
        # Rounds from there on are learned again.
        history: list[R] = []
        while (path := self._file(len(history) + 1)).exists():
            record = self._read(path, len(history) + 1)
            if record is None:
                break
            history.append(record)
        return history

    def _read(self, path: Path, number: int) -> R | None:
        """Return the record of a file, None where it is damaged."""
        try:
            about, arrays = read_tensor_file(path, _ROUND, {VERSION}, DataError, dtypes=_DTYPES)
        except DataError as error:
            _logger.warning("%s; it is learned again", error)
            return None
        named = fields(self.record)  # type: ignore[arg-type]
        # What has a default may have come after the file was written.
        needed = {f.name for f in named if f.default is MISSING and f.default_factory is MISSING}
        complete = needed <= set(arrays) <= {f.name for f in named}
        identity = (about.get("run"), about.get("number"))
        if identity != (self.fingerprint, number) or not complete:
            raise InputError("checkpoint", str(path), f"round {number} of this run")
        return self.record(**{n: a.item() if a.ndim == 0 else a.copy() for n, a in arrays.items()})


class Run(Generic[R]):
    """The rounds of one fit: those of a checkpoint or an earlier fit, then those of the loop."""

    def __init__(
        self,
        record: type[R],
        most: int,
        checkpoint: str | os.PathLike[str] | None = None,
        identity: Callable[[], str] = str,
        earlier: Iterable[R] = (),
        progress: bool = False,
    ) -> None:
        self._most, self._progress = most, progress
        self._checkpoint = None
        if checkpoint is not None:
            self._checkpoint = Checkpoint(checkpoint, identity(), record)
            earlier = self._checkpoint.load()
        self.history: list[R] = list(earlier)[:most]

    def collect(self, rounds: Iterator[R], label: str = "rounds") -> list[R]:
        """Take what a loop yields after ``history``, save each round and return all."""
        begun = len(self.history)
        for record in tracked(rounds, label, self._most, begun, self._progress):
            self.history.append(record)
            if self._checkpoint is not None:
                self._checkpoint.save(record, len(self.history))
        return self.history


def tracked(rounds: Iterable[R], label: str, total: int, begun: int, progress: bool) -> Iterator[R]:
    """Yield rounds, and show how far they are where it is asked for."""
    with shown(progress):
        yield from track(rounds, label, total, begun)
