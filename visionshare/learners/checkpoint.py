"""Checkpoints: a folder with one small file a round, so that a killed run can go on."""

from __future__ import annotations

import json
import os
from dataclasses import fields
from pathlib import Path
from typing import Generic, TypeVar
from zipfile import BadZipFile

import numpy as np

from visionshare.durable import replace_file, write_text
from visionshare.errors import InputError

__all__ = ["Checkpoint"]

R = TypeVar("R")


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
        If the folder holds another run.
    """

    def __init__(self, folder: str | os.PathLike[str], fingerprint: str, record: type[R]) -> None:
        self.folder, self.record = Path(folder), record
        identity = self.folder / "run.json"
        if identity.exists():
            try:
                found = json.loads(identity.read_text())["fingerprint"]
            except (ValueError, KeyError, TypeError, OSError):
                found = None
            if found != fingerprint:
                raise InputError(
                    "checkpoint",
                    str(folder),
                    "a folder of the same run, or one that does not exist",
                )
        else:
            write_text(identity, json.dumps({"format": 1, "fingerprint": fingerprint}))

    def _file(self, place: int) -> Path:
        return self.folder / f"round-{place:05d}.npz"

    def save(self, done: R, place: int) -> None:
        """Write the round in one place of the run (from 1), whole or not at all."""
        values = {f.name: getattr(done, f.name) for f in fields(done)}  # type: ignore[arg-type]
        with replace_file(self._file(place)) as partial, open(partial, "wb") as handle:
            np.savez(handle, **values)

    def load(self) -> list[R]:
        """Return the rounds from the first on, up to the first that is missing or broken."""
        history: list[R] = []
        names = {f.name for f in fields(self.record)}  # type: ignore[arg-type]
        while (path := self._file(len(history) + 1)).exists():
            try:
                with open(path, "rb") as handle, np.load(handle, allow_pickle=False) as held:
                    values = {name: held[name] for name in names}
            except (OSError, ValueError, KeyError, EOFError, BadZipFile):
                break
            plain = {name: v.item() if v.ndim == 0 else v for name, v in values.items()}
            history.append(self.record(**plain))
        return history
