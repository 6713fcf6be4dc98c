"""The transferability matrix: which sources each class learned from, as picture and table."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from visionshare.errors import InputError
from visionshare.errors.names import without_controls
from visionshare.files.durable import replace_file, write_text

__all__ = [
    "TABLE_BEGINS",
    "draw_transferability",
    "transferability_table",
    "write_transferability",
]

#: What a table begins with: a file of its name that does not is not replaced.
TABLE_BEGINS = "target,"


def _check(weights: np.ndarray, targets: Sequence[str], sources: Sequence[str]) -> np.ndarray:
    matrix = np.asarray(weights, np.float64)
    if matrix.shape != (len(targets), len(sources)) or matrix.size == 0:
        accepted = f"an array of shape {(len(targets), len(sources))}, targets by sources"
        raise InputError("weights", matrix.shape, accepted)
    return matrix


def transferability_table(
    weights: np.ndarray, targets: Sequence[str], sources: Sequence[str]
) -> str:
    """Return the weights as a table of comma-separated values, one row per target."""
    import csv
    import io

    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["target", *sources])
    for name, row in zip(targets, _check(weights, targets, sources), strict=True):
        writer.writerow([name, *("" if np.isnan(w) else f"{w:.6f}" for w in row)])
    return without_controls(text.getvalue())


def write_transferability(
    path: str | os.PathLike[str],
    weights: np.ndarray,
    targets: Sequence[str],
    sources: Sequence[str],
) -> None:
    """Write the picture, and beside it the table with the ending .csv."""
    table = Path(path).with_suffix(".csv")
    if table.is_file() and not table.read_bytes().startswith(TABLE_BEGINS.encode()):
        given = f"{path}, beside which {table.name} is no such table"
        raise InputError("path", given, "a name that no other table has")
    figure = draw_transferability(weights, targets, sources)
    with replace_file(path) as partial:
        figure.savefig(partial, format="png", dpi=110, metadata={"Software": None})
    write_text(table, transferability_table(weights, targets, sources))


def draw_transferability(
    weights: np.ndarray, targets: Sequence[str], sources: Sequence[str], title: str = ""
) -> Figure:
    """Return the matrix as a figure."""
    # Columns are targets, rows sources, as in the paper's fig. 4. Red lowers the score, blue
    # raises it; gray: excluded.
    from matplotlib import colormaps

    matrix = _check(weights, targets, sources).T
    # Fonts have no characters that give orders to terminals.
    targets = [without_controls(name) for name in targets]
    sources = [without_controls(name) for name in sources]
    n, k = matrix.shape
    figure = Figure(
        figsize=(min(16.0, 2.6 + 0.28 * k), min(16.0, 1.6 + 0.28 * n)), layout="constrained"
    )
    axis = figure.subplots()
    colors = colormaps["RdBu"].with_extremes(bad="0.8")
    reach = float(np.nanmax(np.abs(matrix))) if np.isfinite(matrix).any() else 1.0
    shown = axis.imshow(
        np.ma.masked_invalid(matrix), cmap=colors, vmin=-(reach or 1.0), vmax=reach or 1.0
    )
    size = 8 if max(n, k) <= 40 else 5
    axis.set_xticks(range(k), targets, size=size, rotation=90 if k > 12 else 0)
    axis.set_yticks(range(n), sources, size=size)
    axis.set(xlabel="class that is learned", ylabel="source", title=title)
    figure.colorbar(shown, ax=axis, label="weight", shrink=0.8)
    return figure
