"""The tables of runs, as a page."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from scripts.reproduce.results import render, spread, table, write_page

__all__ = ["write"]

# Of the cores in the records, these are on the page.
_SHOWN = ("cortex-m0plus", "cortex-m4")


def write(out: Path, runs: Sequence[dict[str, Any]]) -> None:
    """Write ``edge.md``: a table for each data set.

    Parameters
    ----------
    out : Path
        Folder of the page.
    runs : sequence of dict
        As in the files of JSON: set, compiler, rows and agreement.
    """
    sets = [
        render("edge/set", name=run["set"], figures=_learned(rows), cores=_cores(rows))
        for run in runs
        if (rows := _smallest(run["rows"]))
    ]
    counts = [
        figures["images"]
        for run in runs
        for row in run["rows"]
        for figures in row["cores"].values()
    ]
    write_page(
        out, "edge", count=_range(counts), sets="\n\n".join(sets),
        same=_agreement([one for run in runs for one in run.get("agreement") or ()]),
        compiler=runs[0]["compiler"],
    )  # fmt: skip


def _range(counts: Sequence[int]) -> str:
    low, high = min(counts), max(counts)
    return str(low) if low == high else f"{low} to {high}"


def _smallest(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return a row for each name, compiled for size where there are two, in order of flash."""
    found: dict[str, dict[str, Any]] = {}
    for row in rows:
        if row["name"] not in found or row["optimize"] == "-Os":
            found[row["name"]] = row
    return sorted(found.values(), key=_flash)


def _flash(row: dict[str, Any]) -> float:
    """Return the flash on the first core; models that were not compiled come last."""
    return next((figures["flash"] for figures in row["cores"].values()), math.inf)


def _learned(rows: Sequence[dict[str, Any]]) -> str:
    """Return the table of what no core changes."""
    cells = [
        [row["name"], spread(row["errors"]), _number(row["macs"]), _number(row["seconds"])]
        for row in rows
    ]
    return table(["classifier", "error, %", "MACs", "training, s"], cells)


def _cores(rows: Sequence[dict[str, Any]]) -> str:
    """Return the figures of the cores that are shown, and those behind a camera's frame."""
    alone = _on_cores(rows, ("flash", "instructions"), ("ram", "stack"))
    framed = [row for row in rows if "prepared_flash" in str(row["cores"])]
    if not framed:
        return alone
    fields = "prepared_flash", "prepared_instructions"
    behind = _on_cores(framed, fields, ("prepared_ram",))
    return f"{alone}\n\n{render('edge/frames', figures=behind)}"


def _on_cores(
    rows: Sequence[dict[str, Any]], fields: tuple[str, str], memory: tuple[str, ...]
) -> str:
    shown = [core for core in _SHOWN if core in rows[0]["cores"]]
    cells = [
        [
            row["name"] + (", -O2" if row["optimize"] == "-O2" else ""),
            _number(max(sum(core[name] for name in memory) for core in taken if core)),
            *(_number(core.get(name)) for core in taken for name in fields),
        ]
        for row in rows
        if any(taken := [row["cores"].get(core, {}) for core in shown])
    ]
    names = [f"{name}, {core}" for core in shown for name in ("flash", "instructions")]
    return table(["classifier", " and ".join(memory).removeprefix("prepared_"), *names], cells)


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:,.0f}"


def _agreement(found: Sequence[dict[str, Any]]) -> str:
    header = [
        "classifier",
        "computed by",
        "test images",
        "labels that differ",
        "scores that differ",
    ]
    cells = [
        [one["name"], ways, f"{images:,}", labels, scores]
        for one in found
        for (images, labels, scores), ways in _alike(one["ways"]).items()
    ]
    return table(header, cells)


def _alike(ways: Sequence[dict[str, Any]]) -> dict[tuple[int, int, int], str]:
    """Return the names of the ways that have the same figures, by these figures."""
    found: dict[tuple[int, int, int], list[str]] = {}
    for way in ways:
        found.setdefault((way["images"], way["labels"], way["scores"]), []).append(way["name"])
    return {figures: "; ".join(names) for figures, names in found.items()}
