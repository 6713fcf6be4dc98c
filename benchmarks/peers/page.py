"""The page of peers: the table, what is beside it, and the picture."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.peers.findings import findings
from benchmarks.peers.plot import draw
from benchmarks.peers.record import Entry, Record
from benchmarks.peers.timing import BATCH
from scripts.reproduce.results import render, spread, table, write_page

__all__ = ["machine_values", "write"]

PACKAGES = (
    "numpy", "scipy", "scikit-learn", "numba", "onnxruntime", "torch", "lightgbm", "kymatio"
)  # fmt: skip


def _processor() -> str:
    """Return the name of the processor, where the system says it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return "unknown"
    return next(
        (x.split(":", 1)[1].strip() for x in lines if x.startswith("model name")), "unknown"
    )


def machine_values() -> dict[str, Any]:
    """Return the processor and the versions of the packages that are there."""
    installed = [name for name in PACKAGES if find_spec(_module(name))]
    return {"processor": _processor(), "versions": {name: version(name) for name in installed}}


def _module(distribution: str) -> str:
    return {"scikit-learn": "sklearn"}.get(distribution, distribution)


def _usual_processor(entries: Sequence[Entry]) -> str:
    """Return the processor that most times are of."""
    timed = [entry.timed_on for entry in entries if entry.times is not None]
    return max(dict.fromkeys(timed), key=timed.count, default="")


def row(entry: Entry, n_test: int, processor: str) -> list[str]:
    """Return a row of the table; seconds are means over seeds.

    Times of another processor than the usual one are marked.
    """
    runs = list(entry.runs.values())
    errors = [100 * run.errors / n_test for run in runs]
    known = [run.seconds for run in runs if run.seconds is not None]
    seconds = f"{np.mean(known):.1f}" if len(known) == len(runs) else "–"
    seconds += f" + {entry.tuning:.0f}" if entry.tuning else ""
    mark = " \\*" if entry.timed_on != processor else ""
    times = (
        "–" if entry.times is None else " / ".join(f"{value:.1f}{mark}" for value in entry.times)
    )
    return [
        entry.name, spread(errors), runs[0].cost, f"{runs[0].n_bytes:,}", times, seconds
    ]  # fmt: skip


def _errors(entry: Entry) -> float:
    return float(np.mean([run.errors for run in entry.runs.values()]))


def _said(value: Any) -> str:
    return value if isinstance(value, str) else f"{value:g}"


# What a page is called: by its name, else by its set.
_TITLES = {
    "mnist": "MNIST", "fashion-mnist": "Fashion-MNIST", "cifar10": "CIFAR-10",
    "peers-more": "MNIST: a Tsetlin machine and scattering", "peers-gates": "MNIST: logic gates",
}  # fmt: skip


def write(
    out: Path, record: Record, left_out: Sequence[str], rounds: int, name: str | None = None
) -> None:
    """Write page, picture and raw figures of a record; the set names them if omitted."""
    conditions, entries = record.conditions, record.entries()
    if name is None:
        name = "peers" if conditions["set"] == "mnist" else f"peers-{conditions['set']}"
    n_test = conditions["test images"]
    draw(entries, n_test, out / f"{name}.svg")
    record.write_to(out / f"{name}.json")
    header = ["classifier", "error, %", "multiply-accumulates per image", "bytes"]
    header += [f"µs per image, alone / in {min(BATCH, n_test)}", "training + tuning, s"]
    processor = _usual_processor(entries)
    deformations = conditions["deformations"]
    elsewhere = sorted({e.timed_on for e in entries if e.times is not None} - {processor})
    write_page(
        out,
        "peers",
        name,
        stem=name,
        data_set=_TITLES.get(name) or _TITLES.get(conditions["set"], conditions["set"]),
        quick="A quick run, to see it work." if conditions["quick"] else "",
        n_train=conditions["training images"],
        n_test=n_test,
        findings=findings(entries, n_test),
        figures=table(header, [row(e, n_test, processor) for e in sorted(entries, key=_errors)]),
        elsewhere=render("peers/elsewhere", there=", ".join(elsewhere), usual=processor)
        if elsewhere
        else "",
        picture=render("peers/picture", file=f"{name}.svg"),
        left_out="\n\n".join(left_out),
        jobs=conditions["threads"],
        rounds=rounds,
        seconds=f"{conditions['seconds']:g}",
        tuning=f"{conditions['tuning']:g}",
        recipe=conditions["recipe"],
        deformations=", ".join(f"{name} {_said(value)}" for name, value in deformations.items()),
    )
