"""Checkpoints: a folder with one small file per round, from which a stopped run resumes."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Generic, TypeVar

import numpy as np

from visionshare.errors import DataError, InputError
from visionshare.files.durable import write_text
from visionshare.files.fingerprints import array_fingerprint
from visionshare.files.tensors import read_tensor_file, write_tensor_file
from visionshare.machine.progress import shown, track
from visionshare.registry import description

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


class History(Generic[R]):
    """The rounds of one fit: first from a checkpoint, then from the loop.

    A checkpoint is a folder of one run, with a file for each round: a dataclass of numbers and
    arrays. A folder of another run is refused with an InputError.
    """

    def __init__(
        self,
        record: type[R],
        most: int,
        checkpoint: str | os.PathLike[str] | None = None,
        identity: Callable[[], str] = str,
        progress: bool = False,
    ) -> None:
        self._record = record
        self._most = most
        self._progress = progress
        self.folder = None if checkpoint is None else Path(checkpoint)
        self.records: list[R] = []
        if self.folder is not None:
            self._identity = identity()
            self._claim(self.folder)
            self.records = self._load(self.folder)[:most]

    def collect(self, rounds: Iterator[R], label: str = "rounds") -> list[R]:
        """Take what a loop yields after ``records``, keep each round and return all."""
        for record in tracked(rounds, label, self._most, len(self.records), self._progress):
            self.records.append(record)
            if self.folder is not None:
                self.save(record)
        return self.records

    def _claim(self, folder: Path) -> None:
        """Write the run's identity into a folder without one; check it in others."""
        file = folder / "run.json"
        identity = {"format": VERSION, "fingerprint": self._identity}
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

    def save(self, record: R) -> None:
        """Write the last record atomically; records are numbered from 1 without gaps."""
        assert self.folder is not None
        number = len(self.records)
        arrays = {name: np.asarray(getattr(record, name)) for name in self._names}
        about = {"run": self._identity, "number": number}
        write_tensor_file(_file(self.folder, number), _ROUND, VERSION, about, arrays)

    def _load(self, folder: Path) -> list[R]:
        """Return the records up to the first that is missing or damaged, which is learned again."""
        found: list[R] = []
        while (path := _file(folder, len(found) + 1)).exists():
            number = len(found) + 1
            try:
                about, arrays = read_tensor_file(path, _ROUND, {VERSION}, DataError, dtypes=_DTYPES)
            except DataError as error:
                _logger.warning("%s; it is learned again", error)
                break
            same = about.get("run") == self._identity and about.get("number") == number
            if not same or set(arrays) != set(self._names):
                raise InputError("checkpoint", str(path), f"round {number} of this run")
            values = {n: a.item() if a.ndim == 0 else a.copy() for n, a in arrays.items()}
            found.append(self._record(**values))
        return found

    @property
    def _names(self) -> list[str]:
        return [field.name for field in fields(self._record)]  # type: ignore[arg-type]


def _file(folder: Path, number: int) -> Path:
    return folder / f"round-{number:05d}.safetensors"


def tracked(rounds: Iterable[R], label: str, total: int, begun: int, progress: bool) -> Iterator[R]:
    """Yield rounds, and show how far they are where it is asked for."""
    with shown(progress):
        yield from track(rounds, label, total, begun)
