"""Error against multiply-accumulates, microseconds and bytes, ours and peers: three panels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.peers.names import Name, place_names
from benchmarks.peers.record import Entry
from scripts.reproduce.results import deviation

__all__ = ["OURS", "TIMED", "Point", "draw", "label_axis", "points", "short"]

# What the names of ours begin with.
OURS = "visionshare"
# The panel whose costs depend on the processor.
TIMED = "µs of one image"
# Dark colors first; of neighbors in the legend not only the color differs.
_COLORS = [*range(0, 20, 2), *range(1, 20, 2)]
_MARKERS = "osD^vP"


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
    TIMED: _microseconds,
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
        point = Point(
            entry.name,
            float(value),
            float(np.mean(errors)),
            deviation(errors),
        )
        groups.setdefault(entry.group, []).append(point)
    return {group: sorted(found, key=lambda p: p.cost) for group, found in groups.items()}


def label_axis(axis: Any, format_tick: Callable[[float, int], str]) -> None:
    """Label a logarithmic axis where numbers begin with few digits: fewer where it is long."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    low, high = axis.get_view_interval()
    decades = np.log10(high / low)
    digits = (1, 2, 3, 5) if decades < 1.5 else (1, 3) if decades < 3 else (1,)
    axis.set_major_locator(LogLocator(subs=digits))
    axis.set_major_formatter(FuncFormatter(format_tick))
    axis.set_minor_formatter(NullFormatter())


def short(value: float, _: int = 0) -> str:
    """Return a number with k, M or G for thousands, millions, billions."""
    for unit, letter in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if value >= unit:
            return f"{value / unit:.10g}{letter}"
    return f"{value:.10g}"


def _draw_panel(axis: Any, panel: dict[str, list[Point]], groups: Sequence[str]) -> list[Name]:
    """Draw the points of a panel; return what their names are, ours first."""
    import matplotlib

    colors = matplotlib.colormaps["tab20"]
    names: list[Name] = []
    for group, found in panel.items():
        number, is_ours = groups.index(group), group.startswith(OURS)
        color = colors(_COLORS[number % 20])
        axis.errorbar(
            [p.cost for p in found],
            [p.error for p in found],
            [p.deviation for p in found],
            label=group,
            color=color,
            marker="*" if is_ours else _MARKERS[number % len(_MARKERS)],
            markersize=11 if is_ours else 5,
            linewidth=1.0,
            linestyle="none" if is_ours else "-",
            capsize=2,
        )
        # Ours are several classifiers; of a kind of network the cheapest stands for all.
        named = [(p, p.name.split(", ")[1]) for p in found] if is_ours else [(found[0], group)]
        dark = tuple(0.65 * part for part in color[:3])
        names += [Name(text, p.cost, p.error, dark, is_ours) for p, text in named]
    return sorted(names, key=lambda name: not name.always)


def draw(entries: Sequence[Entry], n_test: int, file: Path) -> None:
    """Write the picture, SVG."""
    import matplotlib
    from matplotlib.figure import Figure

    groups = list(dict.fromkeys(entry.group for entry in entries))
    figure = Figure(figsize=(15, 6.5), layout="constrained")
    axes = figure.subplots(1, len(PANELS), sharey=True)
    logarithmic = all(run.errors for entry in entries for run in entry.runs.values())
    if logarithmic:
        axes[0].set_yscale("log")
    names: list[list[Name]] = []
    handles: dict[Any, Any] = {}
    for axis, (label, cost) in zip(axes, PANELS.items(), strict=True):
        axis.set(xscale="log", xlabel=label)
        axis.grid(alpha=0.3)
        names.append(_draw_panel(axis, points(entries, cost, n_test), groups))
        low, high = axis.get_xlim()
        if high < 1.01 * low:
            # All costs are one: a logarithmic axis would have no length.
            axis.set_xlim(low / 2, 2 * high)
        label_axis(axis.xaxis, short)
        lines, labels = axis.get_legend_handles_labels()
        handles |= dict(zip(labels, lines, strict=True))
    axes[0].set_ylabel("error on the test images, %")
    if logarithmic:
        label_axis(axes[0].yaxis, short)
    figure.legend(
        list(handles.values()), list(handles), loc="outside lower center", ncols=4, fontsize=8
    )
    place_names(figure, dict(zip(axes, names, strict=True)))
    file.parent.mkdir(parents=True, exist_ok=True)
    # The same figures give the same file.
    with matplotlib.rc_context({"svg.hashsalt": "peers"}):
        figure.savefig(file, format="svg", metadata={"Date": None})
