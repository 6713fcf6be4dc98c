"""Trials: what was trained, and the file that keeps them from one call to the next."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from visionshare.errors import InputError
from visionshare.files.durable import is_partial, write_text
from visionshare.recipes.design.cost import Cost
from visionshare.recipes.design.structure import Structure
from visionshare.recipes.folder import locked_folder

__all__ = [
    "LOCK",
    "RECIPE",
    "TABLE",
    "WORK",
    "Table",
    "Trial",
    "best_trial",
    "design_folder",
    "rank",
]

TABLE = "design.json"
RECIPE = "recipe.toml"
WORK = "work"
LOCK = "design.lock"

_FORMAT, _VERSION = "visionshare-design", 1
_MOST_BYTES = 1 << 26


@dataclass(frozen=True)
class Trial:
    """A structure that was trained for the epochs of a rung."""

    number: int
    rung: int
    epochs: int
    structure: Structure
    cost: Cost
    error: float | None
    seconds: float
    seconds_per_epoch: float
    problem: str | None = None


def rank(trial: Trial) -> tuple[float, int, int, int]:
    """Return by what trials are sorted: the error, then more epochs, then the cost."""
    error = math.inf if trial.error is None else trial.error
    return error, -trial.rung, trial.cost.macs, trial.number


def best_trial(trials: Sequence[Trial]) -> Trial | None:
    """Return the trial of the least error; None where none was trained to its end."""
    best = min(trials, key=rank, default=None)
    return None if best is None or best.error is None else best


@dataclass
class Table:
    """The trials of a design, kept in a file."""

    folder: Path
    identity: str
    about: Mapping[str, Any]
    trials: list[Trial] = field(default_factory=list)

    def add(self, trial: Trial) -> None:
        """Add a trial, and write all of them."""
        self.trials.append(trial)
        self.write()

    def write(self) -> None:
        """Write the file, atomically."""
        best = best_trial(self.trials)
        values = {
            "format": _FORMAT,
            "version": _VERSION,
            "identity": self.identity,
            **self.about,
            "trials": [asdict(trial) for trial in self.trials],
            "best": None if best is None else asdict(best),
        }
        write_text(self.folder / TABLE, json.dumps(values, indent=1) + "\n")

    def read(self) -> None:
        """Read the trials of an earlier call, where there are any."""
        file = self.folder / TABLE
        if not file.exists():
            return
        values = _values(file)
        if values is None or values.get("version") != _VERSION:
            raise self._damaged()
        if values.get("identity") != self.identity:
            accepted = "a new or empty folder, or that of the same recipe, budget and images"
            raise InputError("out", str(self.folder), f"{accepted} (it holds another design)")
        self.trials = self._checked(values.get("trials"))

    def _checked(self, values: Any) -> list[Trial]:
        from pydantic import TypeAdapter, ValidationError

        try:
            trials = TypeAdapter(list[Trial]).validate_json(json.dumps(values), strict=True)
        except ValidationError:
            raise self._damaged() from None
        keys = [(trial.number, trial.rung) for trial in trials]
        begun = sorted(trial.number for trial in trials if trial.rung == 0)
        valid = len(set(keys)) == len(keys) and begun == list(range(len(begun)))
        for trial in trials:
            numbers = trial.seconds, trial.seconds_per_epoch
            valid = valid and 0 <= trial.number < len(begun) and trial.rung >= 0
            valid = valid and all(0 <= number < math.inf for number in numbers)
            valid = valid and (trial.error is None or 0 <= trial.error <= 1)
        if not valid:
            raise self._damaged()
        return trials

    def _damaged(self) -> InputError:
        accepted = f"a folder whose {TABLE} is whole; remove that file to restart"
        return InputError("out", str(self.folder), accepted)


def _values(file: Path) -> dict[str, Any] | None:
    """Return the values of a table's file; None where it is none."""
    try:
        if file.stat().st_size > _MOST_BYTES:
            return None
        values = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    return values if isinstance(values, dict) and values.get("format") == _FORMAT else None


@contextmanager
def design_folder(out: str | os.PathLike[str]) -> Iterator[Path]:
    """Make a folder a design's own while a block runs; others are kept out of it."""
    with locked_folder(Path(out), LOCK, _check) as folder:
        yield folder


def _check(folder: Path) -> None:
    """Raise an error where a folder holds what no design made."""
    if not folder.exists():
        return
    if not folder.is_dir():
        raise InputError("out", str(folder), "a folder")
    names = [path.name for path in folder.iterdir() if not is_partial(path) and path.name != LOCK]
    work = folder / WORK
    if not names or (_values(folder / TABLE) is not None and not work.is_symlink()):
        return
    accepted = "a new or empty folder, or that of an earlier design; choose another"
    raise InputError("out", str(folder), f"{accepted} (it holds {min(names)!r})")
