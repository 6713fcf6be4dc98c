"""Which classifiers nobody beats: error against flash, operations, time of an image and training.

``python -m benchmarks.front --set mnist`` reads what the other benchmarks measured (the JSON files
of ``docs/results``) and what others published (``published.toml``), and writes one page and one
picture: the front of each cost, and where others are ahead of ours. It measures nothing.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean, mode
from typing import Any

from benchmarks.peers.names import Name, place_names
from benchmarks.peers.plot import label_axis, short
from scripts.reproduce.results import RESULTS, keep_runs, render, table, write_page

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = ["OURS", "Point", "ahead", "front", "points"]

OURS, MEASURED, PUBLISHED = "ours", "measured", "published"
FLASH = "flash of a Cortex-M4, bytes"
MACS = "multiply-accumulates"
PYTHON = "µs of one image in Python"
C = "µs of one image in C"
TRAINING = "seconds of training"
COSTS = (FLASH, MACS, PYTHON, C, TRAINING)
_TITLES = {"mnist": "MNIST", "fashion-mnist": "Fashion-MNIST", "cifar10": "CIFAR-10"}
_PEERS_OF_CORES = ("emlearn", "LeNet", "separable CNN", "BitNetMCU", "TinyMaix")
_COMPARISONS = {
    "mnist": ("peers-deformed", "peers-more", "peers-gates"),
    "fashion-mnist": ("peers-fashion-deformed",),
    "cifar10": ("peers-cifar10", "peers-cifar10-resnet8"),
}
_RECIPES = {"mnist": "mnist-", "fashion-mnist": "fashion-", "cifar10": "cifar10-"}


@dataclass(frozen=True)
class Point:
    """A classifier: whose it is, its mean test error in percent, what it costs, and the source."""

    name: str
    kind: str
    error: float
    costs: Mapping[str, float] = field(default_factory=dict)
    source: str = ""


def points(data_set: str, results: Path = RESULTS) -> list[Point]:
    """Return the points of a data set: of small cores, recipes, comparisons and publications.

    Parameters
    ----------
    data_set : {"mnist", "fashion-mnist", "cifar10"}
    results : Path
        Folder of the records.
    """
    found = [*_of_cores(data_set, results), *_of_recipes(data_set, results)]
    for page in _COMPARISONS[data_set]:
        # Times of one processor alone are compared.
        is_timed = page == _COMPARISONS[data_set][0]
        found += _of_comparison(results / f"{page}.json", is_timed)
    return [*found, *_published(data_set)]


def _of_cores(data_set: str, results: Path) -> Iterator[Point]:
    """Yield the smallest program of each classifier that ran on an emulated Cortex-M4."""
    file = results / "edge" / f"{data_set}.json"
    if not file.is_file():
        return
    smallest: dict[str, Any] = {}
    for row in json.loads(file.read_text())["rows"]:
        # Behind an interpreter classifiers are the same, and always larger.
        if "cortex-m4" not in row["cores"] or row["name"].endswith("TFLite Micro"):
            continue
        known = smallest.get(row["name"])
        if known is None or _flash(row) < _flash(known):
            smallest[row["name"]] = row
    for name, row in smallest.items():
        known = {FLASH: _flash(row), TRAINING: row["seconds"], MACS: row["macs"]}
        costs = {cost: value for cost, value in known.items() if value}
        kind = MEASURED if name.startswith(_PEERS_OF_CORES) else OURS
        yield Point(name, kind, mean(row["errors"]), costs, f"edge/{data_set}.json")


def _flash(row: Mapping[str, Any]) -> float:
    return float(row["cores"]["cortex-m4"]["flash"])


def _of_recipes(data_set: str, results: Path) -> Iterator[Point]:
    """Yield the recipes of a data set: means over seeds."""
    runs: dict[tuple[str, str], list[Any]] = {}
    pages = ("layers", "mnist") if data_set == "mnist" else ("layers",)
    for page in pages:
        for run in json.loads((results / f"{page}.json").read_text())["runs"].values():
            if f"{run['pipeline']}-".startswith(_RECIPES[data_set]):
                runs.setdefault((page, run["pipeline"]), []).append(run)
    for (page, name), of_recipe in runs.items():
        seconds = [sum(run["processor_seconds"].values()) for run in of_recipe]
        costs = {MACS: of_recipe[0]["macs"], TRAINING: mean(seconds)}
        error = 100 * mean(run["test_error_rate"] for run in of_recipe)
        yield Point(name, OURS, error, costs, f"{page}.json")


def _of_comparison(file: Path, is_timed: bool) -> Iterator[Point]:
    """Yield the classifiers of a comparison; of ours the times alone, the rest is in the records.

    Ours were trained again for each comparison: the luckiest of several runs would be a choice on
    test images.
    """
    record = json.loads(file.read_text())
    n_test = record["conditions"]["test images"]
    processors = [e["timed_on"] for e in record["results"].values() if e.get("times")]
    for name, entry in record["results"].items():
        runs = list(entry["runs"].values())
        if not runs:
            continue
        is_ours = name.startswith("visionshare, ")
        costs = {}
        if is_timed and entry.get("times") and entry["timed_on"] == mode(processors):
            costs[C if name.endswith(", C") else PYTHON] = entry["times"][0]
        seconds = [run["seconds"] for run in runs if run["seconds"] is not None]
        if seconds and not is_ours:
            costs[TRAINING] = mean(seconds)
        if runs[0]["macs"] and not is_ours:
            costs[MACS] = runs[0]["macs"]
        error = 100 * mean(run["errors"] for run in runs) / n_test
        # Ours are there twice, with the times of C and of Python.
        shown = (
            name.removeprefix("visionshare, ").removesuffix(", deformed").removesuffix(", Python")
        )
        yield Point(shown, OURS if is_ours else MEASURED, error, costs, file.name)


def _published(data_set: str) -> Iterator[Point]:
    """Yield what others published, with its source."""
    text = Path(__file__).with_name("published.toml").read_text("utf-8")
    for one in tomllib.loads(text)["point"]:
        if one["set"] != data_set:
            continue
        costs = {}
        if "bytes" in one:
            costs[FLASH] = float(one["bytes"])
        if "macs" in one:
            costs[MACS] = float(one["macs"])
        yield Point(one["name"], PUBLISHED, one["error"], costs, one["source"])


def front(found: Sequence[Point], cost: str) -> list[Point]:
    """Return the points that none beats in both error and cost, the cheapest first."""
    with_cost = sorted(
        (p for p in found if cost in p.costs), key=lambda p: (p.costs[cost], p.error)
    )
    best: list[Point] = []
    for point in with_cost:
        if not best or point.error < best[-1].error:
            best.append(point)
    return best


def ahead(found: Sequence[Point], cost: str) -> list[tuple[Point, list[Point]]]:
    """Return each of ours that others beat in error and cost while none of ours does, with them."""
    with_cost = [p for p in found if cost in p.costs]
    ours = [p for p in with_cost if p.kind == OURS]
    others = [p for p in with_cost if p.kind != OURS]
    beaten = []
    for one in front(ours, cost):
        better = [p for p in others if p.error < one.error and p.costs[cost] <= one.costs[cost]]
        if better:
            beaten.append((one, better))
    return beaten


def compared_costs(found: Sequence[Point]) -> list[str]:
    """Return the costs that are known of ours and of others."""
    ours = {cost for p in found if p.kind == OURS for cost in p.costs}
    others = {cost for p in found if p.kind != OURS for cost in p.costs}
    return [cost for cost in COSTS if cost in ours & others]


def draw(found: Sequence[Point], file: Path) -> None:
    """Draw error against each cost that at least two points have, as SVG."""
    import matplotlib
    from matplotlib.figure import Figure

    costs = compared_costs(found)
    figure = Figure(figsize=(7.5, 3.9 * len(costs) + 0.5), layout="constrained")
    axes = figure.subplots(len(costs), squeeze=False).ravel()
    names = []
    for axis, cost in zip(axes, costs, strict=True):
        axis.set(xscale="log", yscale="log", xlabel=cost)
        axis.grid(alpha=0.3)
        for kind, marker, color in (
            (OURS, "*", "C0"),
            (MEASURED, "o", "C1"),
            (PUBLISHED, "^", "C2"),
        ):
            some = [p for p in found if p.kind == kind and cost in p.costs]
            label = kind if axis is axes[0] else None
            x = [p.costs[cost] for p in some]
            axis.plot(x, [p.error for p in some], marker, color=color, label=label)
        best = front(found, cost)
        axis.step([p.costs[cost] for p in best], [p.error for p in best], where="post",
                  color="0.6", linewidth=1, zorder=0)  # fmt: skip
        label_axis(axis.xaxis, short)
        names.append(
            [Name(p.name, p.costs[cost], p.error, (0, 0, 0), p.kind == OURS) for p in best]
        )
        label_axis(axis.yaxis, short)
        axis.set_ylabel("test error, %")
    figure.legend(loc="outside lower center", ncols=3)
    place_names(figure, dict(zip(axes, names, strict=True)))
    # The same figures give the same file.
    with matplotlib.rc_context({"svg.hashsalt": "front", "svg.fonttype": "none"}):
        figure.savefig(file, metadata={"Date": None})


def write(data_set: str, out: Path, results: Path = RESULTS) -> None:
    """Write page, picture and points of a data set."""
    found = points(data_set, results)
    name = f"front-{data_set}"
    draw(found, out / f"{name}.svg")
    keep_runs(out, name, found)
    write_page(
        out,
        "front",
        name,
        title=_TITLES[data_set],
        name=name,
        note=render("front/cifar10") if data_set == "cifar10" else "",
        sections="\n\n".join(_section(found, cost) for cost in compared_costs(found)),
    )


def _section(found: Sequence[Point], cost: str) -> str:
    """Return the front of a cost, and who is ahead of ours."""
    rows = [
        [p.name, p.kind, f"{p.error:.2f}", f"{p.costs[cost]:,.0f}", _link(p)]
        for p in front(found, cost)
    ]
    beaten = [f"- {_sentence(one, better, cost)}" for one, better in ahead(found, cost)]
    said = render("front/ahead", names="\n".join(beaten)) if beaten else render("front/nobody")
    header = ["classifier", "whose", "error, %", cost, "source"]
    return render("front/cost", cost=cost, table=table(header, rows), ahead=said)


def _link(point: Point) -> str:
    """Return where a figure stands."""
    text = "publication" if point.kind == PUBLISHED else point.source
    return f"[{text}]({point.source})"


def _sentence(one: Point, better: Sequence[Point], cost: str) -> str:
    """Return who is ahead of one of ours."""
    named = ", ".join(f"{p.name} ({p.error:.2f} %, {p.costs[cost]:,.0f})" for p in better)
    return f"`{one.name}` ({one.error:.2f} %, {one.costs[cost]:,.0f}): {named}"


def main(given: Sequence[str] | None = None) -> None:
    """Write the pages of the data sets that were named."""
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser("python -m benchmarks.front", None, __doc__, None, [], raw)
    parser.add_argument("--set", nargs="+", choices=_TITLES, default=list(_TITLES))
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of the pages")
    options = parser.parse_args(given)
    for data_set in options.set:
        write(data_set, options.out)


if __name__ == "__main__":
    main()
