"""Error against multiply-accumulates, microseconds and bytes, ours and peers: three panels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.peers.record import Entry

__all__ = ["OURS", "Point", "draw", "points"]

# What the names of ours begin with.
OURS = "visionshare"


class Point(NamedTuple):
    """A classifier: what it costs, its mean error and their deviation in percent."""

    name: str
    cost: float
    error: float
    deviation: float


def _macs(entry: Entry) -> float | None:
    return first.macs if (first := next(iter(entry.runs.values()))).macs else None


def _microseconds(entry: Entry) -> float | None:
    return None if entry.times is None else entry.times.single


def _bytes(entry: Entry) -> float | None:
    return next(iter(entry.runs.values())).n_bytes


PANELS: dict[str, Callable[[Entry], float | None]] = {
    "multiply-accumulates per image": _macs,
    "µs of one image": _microseconds,
    "bytes": _bytes,
}


def points(
    entries: Sequence[Entry], cost: Callable[[Entry], float | None], n_test: int
) -> dict[str, list[Point]]:
    """Return the points of a panel by group, the cheapest first; those without the cost are not."""
    groups: dict[str, list[Point]] = {}
    for entry in entries:
        value = cost(entry)
        if value is None:
            continue
        errors = [100 * run.errors / n_test for run in entry.runs.values()]
        point = Point(entry.name, float(value), float(np.mean(errors)), float(np.std(errors)))
        groups.setdefault(entry.group, []).append(point)
    return {group: sorted(found, key=lambda p: p.cost) for group, found in groups.items()}


def _label(axis: Any, digits: Sequence[int], form: str) -> None:
    """Label the numbers with these first digits on a logarithmic axis, and no others."""
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    axis.set_major_locator(LogLocator(subs=digits))
    axis.set_major_formatter(StrMethodFormatter(form))
    axis.set_minor_formatter(NullFormatter())


def draw(entries: Sequence[Entry], n_test: int, file: Path) -> None:
    """Write the picture, SVG."""
    import matplotlib
    from matplotlib.figure import Figure

    groups = list(dict.fromkeys(entry.group for entry in entries))
    colors = matplotlib.colormaps["tab20"]
    figure = Figure(figsize=(13, 5.5), layout="constrained")
    axes = figure.subplots(1, len(PANELS), sharey=True)
    for axis, (label, cost) in zip(axes, PANELS.items(), strict=True):
        for group, found in points(entries, cost, n_test).items():
            number, is_ours = groups.index(group), group.startswith(OURS)
            axis.errorbar(
                [p.cost for p in found],
                [p.error for p in found],
                [p.deviation for p in found],
                label=group,
                color=colors(number % 20),
                marker="*" if is_ours else "osD^vP"[number % 6],
                markersize=11 if is_ours else 5,
                linewidth=1.0,
                capsize=2,
            )
            for point in found if is_ours else ():
                name = point.name.split(", ")[1]
                at = (point.cost, point.error)
                axis.annotate(name, at, (4, 4), textcoords="offset points", fontsize=7)
        axis.set(xscale="log", xlabel=label)
        axis.grid(alpha=0.3)
        _label(axis.xaxis, (1, 3), "{x:,.10g}")
    axes[0].set_ylabel("error on the test images, %")
    if all(run.errors for entry in entries for run in entry.runs.values()):
        axes[0].set_yscale("log")
        _label(axes[0].yaxis, (1, 2, 3, 5), "{x:g}")
    handles: dict[str, Any] = {}
    for axis in axes:
        lines, labels = axis.get_legend_handles_labels()
        handles |= dict(zip(labels, lines, strict=True))
    lines, labels = list(handles.values()), list(handles)
    figure.legend(lines, labels, loc="outside lower center", ncols=4, fontsize=8)
    file.parent.mkdir(parents=True, exist_ok=True)
    # The same figures give the same file.
    with matplotlib.rc_context({"svg.hashsalt": "peers"}):
        figure.savefig(file, format="svg", metadata={"Date": None})
