"""Checkpoints: a folder with one small file per round, from which a stopped run resumes."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, Generic, TypeVar
from zipfile import BadZipFile

import numpy as np

from visionshare.durable import replace_file, write_text
from visionshare.errors import InputError
from visionshare.fingerprints import array_fingerprint
from visionshare.registry import description

__all__ = ["Checkpoint", "Run", "run_identity", "shown"]

R = TypeVar("R")
# Of the rounds' files; folders of another format are refused.
_FORMAT = 2


def run_identity(settings: Sequence[object], *arrays: np.ndarray) -> str:
    """Return the identity of a run: settings, which names and equal objects describe alike, data.

    Examples
    --------
    >>> run_identity([0.5, "unit_norm"]) == run_identity([np.float64(0.5), "unit_norm"])
    True
    """
    text = "\n".join(map(description, settings))
    return array_fingerprint(np.frombuffer(text.encode(), np.uint8), *arrays)


class Checkpoint(Generic[R]):
    """The rounds of one run, on disk.

    Parameters
    ----------
    folder : path-like
    fingerprint : str
        Identity of the run: data, weights and settings. A folder of another run is refused.
    record : type
        Dataclass of a round, of numbers and arrays.

    Raises
    ------
    InputError
        If the folder holds another run, or one of an earlier version's format.
    """

    def __init__(self, folder: str | os.PathLike[str], fingerprint: str, record: type[R]) -> None:
        self.folder, self.record = Path(folder), record
        file = self.folder / "run.json"
        identity = {"format": _FORMAT, "fingerprint": fingerprint}
        if not file.exists():
            write_text(file, json.dumps(identity))
            return
        try:
            written = json.loads(file.read_text())
        except (ValueError, OSError):
            written = None
        if written != identity:
            accepted = "a folder of the same run and version, or one that does not exist"
            raise InputError("checkpoint", str(folder), accepted)

    def _file(self, number: int) -> Path:
        return self.folder / f"round-{number:05d}.npz"

    def save(self, record: R, number: int) -> None:
        """Write a record atomically; records are numbered from 1 without gaps."""
        values = {f.name: getattr(record, f.name) for f in fields(record)}  # type: ignore[arg-type]
        with replace_file(self._file(number)) as partial, open(partial, "wb") as handle:
            np.savez(handle, **values)

    def load(self) -> list[R]:
        """Return the records from the first on, up to the first that is missing or broken."""
        history: list[R] = []
        names = {f.name for f in fields(self.record)}  # type: ignore[arg-type]
        while (path := self._file(len(history) + 1)).exists():
            try:
                with open(path, "rb") as handle, np.load(handle, allow_pickle=False) as stored:
                    values = {name: stored[name] for name in names}
            except (OSError, ValueError, KeyError, EOFError, BadZipFile):
                break
            plain = {name: v.item() if v.ndim == 0 else v for name, v in values.items()}
            history.append(self.record(**plain))
        return history


class Run(Generic[R]):
    """The rounds of one fit: those of a checkpoint or an earlier fit, then those of the loop.

    Parameters
    ----------
    record : type
        Dataclass of a round.
    most : int
        Rounds at most.
    checkpoint : path-like, optional
        Folder that keeps each round.
    identity : callable, optional
        Returns the run's identity; asked where there is a checkpoint.
    earlier : sequence, optional
        Rounds to continue from where there is no checkpoint.
    progress : bool, default False
        Show a progress bar.

    Attributes
    ----------
    history : list
        All rounds so far.
    """

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
        for record in shown(rounds, label, self._most, len(self.history), self._progress):
            self.history.append(record)
            if self._checkpoint is not None:
                self._checkpoint.save(record, len(self.history))
        return self.history


def shown(rounds: Any, label: str, total: int, begun: int, progress: bool) -> Any:
    """Return an iterator, with a progress bar where one is asked for."""
    if not progress:
        return rounds
    from tqdm import tqdm

    return tqdm(rounds, label, total, initial=begun)
