"""The tables of runs, as a page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from scripts.reproduce.results import render, table, write_page

__all__ = ["write"]

_NAMES = ("flash", "ram", "stack", "instructions")


def write(out: Path, runs: Sequence[dict[str, Any]]) -> None:
    """Write ``edge.md``: a table for each data set.

    Parameters
    ----------
    out : Path
        Folder of the page.
    runs : sequence of dict
        As in the files of JSON: set, optimize, count, compiler and rows.
    """
    sets = [render("edge/set", name=run["set"], figures=_table(run["rows"])) for run in runs]
    first = runs[0]
    write_page(
        out, "edge", optimize=first["optimize"], count=first["count"], sets="\n\n".join(sets),
        compiler=first["compiler"],
    )  # fmt: skip


def _table(rows: Sequence[dict[str, Any]]) -> str:
    cores = list(rows[0]["cores"])
    header = ["classifier", "error, %", "MACs"]
    header += [f"{core}: {name}" if name == "flash" else name for core in cores for name in _NAMES]
    cells = []
    for row in rows:
        macs = "–" if row["macs"] is None else f"{row['macs']:,}"
        figures = [f"{row['cores'][core][name]:,}" for core in cores for name in _NAMES]
        cells.append([row["name"], f"{row['error']:.2f}", macs, *figures])
    return table(header, cells)
