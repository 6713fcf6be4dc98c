"""The tables of runs, as a page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from scripts.reproduce.results import render, table, write_page

__all__ = ["write"]

_NAMES = ("flash", "ram", "stack", "instructions")
# The same with a camera's frame before.
_PREPARED = ("prepared_flash", "prepared_ram", "prepared_instructions")


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
        render(
            "edge/set", name=run["set"], figures=_learned(run["rows"]), cores=_cores(run["rows"])
        )
        for run in runs
        if run["rows"]
    ]
    counts = [
        figures["images"]
        for run in runs
        for row in run["rows"]
        for figures in row["cores"].values()
    ]
    same = [_agreement(run["agreement"]) for run in runs if run.get("agreement")]
    write_page(
        out, "edge", count=_range(counts), sets="\n\n".join(sets),
        same="\n\n".join(same), compiler=runs[0]["compiler"],
    )  # fmt: skip


def _range(counts: Sequence[int]) -> str:
    low, high = min(counts), max(counts)
    return str(low) if low == high else f"{low} to {high}"


def _learned(rows: Sequence[dict[str, Any]]) -> str:
    """Return the table of what no core changes."""
    header = ["classifier", "compiled", "error, %", "MACs", "training, s", "its memory, MB"]
    cells = []
    for row in rows:
        memory = None if row["memory"] is None else row["memory"] / 1e6
        taken = [_number(row["macs"]), _number(row["seconds"]), _number(memory)]
        cells.append([row["name"], row["optimize"], _errors(row["errors"]), *taken])
    return table(header, cells)


def _cores(rows: Sequence[dict[str, Any]]) -> str:
    """Return a table for each core; an earlier run may have another core than a later one."""
    header = ["classifier", "compiled", *_NAMES, "flash, prepared", "ram", "instructions"]
    tables = []
    for number, core in enumerate(rows[0]["cores"]):
        cells = [
            [row["name"], row["optimize"]]
            + [_number(row["cores"][core].get(name)) for name in (*_NAMES, *_PREPARED)]
            for row in rows
            if core in row["cores"]
        ]
        tables.append(
            render(
                "edge/core", core=core, open="" if number else " open", figures=table(header, cells)
            )
        )
    return "\n\n".join(tables)


def _errors(errors: Sequence[float]) -> str:
    mean = f"{sum(errors) / len(errors):.2f}"
    return f"{mean} ({', '.join(f'{e:.2f}' for e in errors)})" if len(errors) > 1 else mean


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
