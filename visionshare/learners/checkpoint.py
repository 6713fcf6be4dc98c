"""Checkpoints: a folder with one small file a round, so that a killed run can go on."""

from __future__ import annotations

import json
import os
from pathlib import Path
from zipfile import BadZipFile

import numpy as np

from visionshare.durable import replace_file, write_text
from visionshare.errors import InputError
from visionshare.learners.greedy import Round

__all__ = ["Checkpoint"]

_NUMBERS = (
    "number",
    "candidate",
    "score",
    "value",
    "loss",
    "train_error",
    "validation_error",
    "seconds",
)


class Checkpoint:
    """The rounds of one run, on disk.

    Parameters
    ----------
    folder : path-like
    fingerprint : str
        Identity of the run: data, weights and settings. A folder of another run is refused.

    Raises
    ------
    InputError
        If the folder holds another run.
    """

    def __init__(self, folder: str | os.PathLike[str], fingerprint: str) -> None:
        self.folder = Path(folder)
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

    def _file(self, number: int) -> Path:
        return self.folder / f"round-{number:05d}.npz"

    def save(self, done: Round) -> None:
        """Write one round, whole or not at all."""
        values = {name: getattr(done, name) for name in _NUMBERS}
        with replace_file(self._file(done.number)) as partial, open(partial, "wb") as handle:
            np.savez(handle, features=done.features, W=done.W, **values)

    def load(self) -> list[Round]:
        """Return the rounds from the first on, up to the first that is missing or broken."""
        history: list[Round] = []
        while (path := self._file(len(history) + 1)).exists():
            try:
                with open(path, "rb") as handle, np.load(handle, allow_pickle=False) as held:
                    fields = {name: held[name].item() for name in _NUMBERS}
                    history.append(Round(features=held["features"], W=held["W"], **fields))
            except (OSError, ValueError, KeyError, EOFError, BadZipFile):
                break
        return history
