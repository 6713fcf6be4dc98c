"""What was measured, in a file of JSON: what is done is not done again."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import joblib
import numpy as np

from benchmarks.peers.peer import Choice, Trained
from benchmarks.peers.timing import Times
from scripts.reproduce.results import commit
from visionshare.errors import InputError
from visionshare.files.durable import replace_file, write_text

__all__ = ["Entry", "Record", "Run"]

VERSION = 1


@dataclass(frozen=True)
class Run:
    """A classifier trained with one seed and its errors on the test images.

    ``source`` is the digest of the file of one of ours; ``commit`` is that of the code or, where
    unknown, the commit that stored the run.
    """

    errors: int
    macs: int | None
    cost: str
    n_bytes: int
    settings: str
    seconds: float | None
    source: str = ""
    commit: str = ""

    @classmethod
    def of(cls, trained: Trained, errors: int, source: str = "") -> Run:
        """Return what is kept of a trained classifier."""
        parts = (trained.macs, trained.cost, trained.n_bytes, trained.settings, trained.seconds)
        return cls(errors, *parts, source, commit())


class Entry(NamedTuple):
    """A row: its name, who it is drawn with, runs by seed, seconds of tuning, times.

    ``timed_on`` is the processor that the times are of; empty where none is known.
    """

    name: str
    group: str
    runs: dict[int, Run]
    tuning: float | None
    times: Times | None
    timed_on: str = ""


class Record:
    """The measurements in a file, and beside it the models of the first seed, to be timed.

    Parameters
    ----------
    file : Path
        Of JSON; made when something is kept.
    conditions : mapping
        Under which all is measured: plain values. A file of other conditions is refused.

    Raises
    ------
    InputError
        If the file was made under other conditions, or is no record.
    """

    def __init__(self, file: Path, conditions: Mapping[str, Any]) -> None:
        self._file, self._models = file, file.with_suffix(".models")
        wanted = json.loads(json.dumps(conditions))
        self._content: dict[str, Any] = {
            "version": VERSION,
            "conditions": wanted,
            "machine": {},
            "results": {},
        }
        if file.is_file():
            self._content = _read(file)
            there = self._content["conditions"]
            differing = [k for k in wanted | there if wanted.get(k) != there.get(k)]
            if differing:
                found = ", ".join(f"{k} {there.get(k)!r}" for k in differing)
                asked = ", ".join(f"{k} {wanted.get(k)!r}" for k in differing)
                raise InputError("json", f"{file} with {found}", f"another file for {asked}")

    @property
    def conditions(self) -> dict[str, Any]:
        """Under which all was measured."""
        return dict(self._content["conditions"])

    def entries(self) -> list[Entry]:
        """Return what has runs, in the order in which it was first kept."""
        found = []
        for name, values in self._content["results"].items():
            runs = {int(seed): Run(**run) for seed, run in values["runs"].items()}
            times = Times(*values["times"]) if "times" in values else None
            if runs:
                tuning = self._content["results"].get(values["group"], {}).get("tuning")
                timed_on = values.get("timed_on", "")
                found.append(Entry(name, values["group"], runs, tuning, times, timed_on))
        return found

    def has(self, name: str, seed: int, source: str = "") -> bool:
        """Return whether a run is there, of this source."""
        runs = self._content["results"].get(name, {}).get("runs", {})
        return str(seed) in runs and runs[str(seed)]["source"] == source

    def choice(self, group: str) -> Choice | None:
        """Return the settings that tuning chose for a group, if it was done."""
        found: Choice | None = self._content["results"].get(group, {}).get("choice")
        return found

    def keep_choice(self, group: str, choice: Choice, seconds: float) -> None:
        """Keep what tuning chose, and the seconds that it took."""
        self._row(group).update(choice=dict(choice), tuning=seconds)
        self._save()

    def keep_run(self, name: str, group: str, seed: int, run: Run) -> None:
        """Keep a run."""
        row = self._row(name)
        row["group"] = group
        row["runs"][str(seed)] = asdict(run)
        self._save()

    def keep_times(self, times: Mapping[str, Times], processor: str) -> None:
        """Keep microseconds per image, and the processor that they were measured on."""
        for name, measured in times.items():
            self._row(name).update(times=list(measured), timed_on=processor)
        self._save()

    def keep_machine(self, values: Mapping[str, Any]) -> None:
        """Keep what the figures were measured on."""
        self._content["machine"] = dict(values)
        self._save()

    def write_to(self, file: Path) -> None:
        """Write all measurements to a file of JSON beside a page."""
        write_text(file, json.dumps(self._content, indent=1, default=_plain) + "\n")

    def keep_model(self, name: str, predict: Callable[[np.ndarray], np.ndarray]) -> None:
        """Keep a predictor, to be timed beside those that are trained later."""
        self._models.mkdir(parents=True, exist_ok=True)
        with replace_file(self._model(name)) as partial:
            joblib.dump(predict, partial)

    def model(self, name: str) -> Callable[[np.ndarray], np.ndarray] | None:
        """Return the predictor that was kept, if it is there. The folder is one's own."""
        file = self._model(name)
        return joblib.load(file) if file.is_file() else None

    def _model(self, name: str) -> Path:
        plain = "".join(c if c.isalnum() or c in ".-" else "_" for c in name)
        return self._models / f"{plain}.joblib"

    def _row(self, name: str) -> dict[str, Any]:
        row: dict[str, Any] = self._content["results"].setdefault(name, {"runs": {}})
        return row

    def _save(self) -> None:
        self._file.parent.mkdir(parents=True, exist_ok=True)
        self.write_to(self._file)


def _plain(value: Any) -> Any:
    """Return a number of numpy as Python's."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{type(value)} in a record")


def _read(file: Path) -> dict[str, Any]:
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError("json", str(file), f"a record of measurements ({error})") from None
    if not isinstance(content, dict) or content.get("version") != VERSION:
        raise InputError("json", str(file), f"a record of measurements of version {VERSION}")
    return content
