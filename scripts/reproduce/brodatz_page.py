"""The page and the picture of the Brodatz textures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from scripts.reproduce.results import keep_runs, pyplot, render, spread, table, write_page

COLORS = {"learned": "C0", "selected": "C1", "fixed": "C2"}


def _methods(measured: dict[str, Any], counts: tuple[int, ...]) -> str:
    named = dict(measured["runs"])
    named |= {f"fixed, grid of {size}": runs for size, runs in measured["grids"].items()}
    rows = []
    shown = (counts[0], counts[-1])
    for name, runs in named.items():
        whole = name.endswith("one solve")
        cells = ["" if whole else spread([r.at(c) for r in runs]) for c in shown]
        last = f"{np.mean([r.counts[-1] for r in runs]):.0f}"
        final = spread([r.accuracy[-1] for r in runs])
        seconds = f"{np.mean([r.seconds[-1] for r in runs]):.1f}"
        rows.append([name, *cells, last, final, seconds])
    return table(["", *map(str, shown), "at the end", "accuracy", "seconds"], rows)


def _of_most(measured: dict[str, Any]) -> str:
    """Return the accuracies of the largest number of training patches of a class."""
    most = max(measured["sizes"])
    runs = measured["sizes"][most]
    each = [f"{name} {spread([r.accuracy[-1] for r in runs[name]])}" for name in COLORS]
    return f"With {most:,} per class (seeds: {len(runs['fixed'])}): {', '.join(each)} %."


def _of_gaps(measured: dict[str, Any]) -> str:
    """Return what ends learned and selected filters by the duality gap: what one seed has."""
    told = []
    for gap_tol, runs in measured["gaps"].items():
        both = [run for name in ("learned", "selected") for run in runs[name]]
        counts = ", ".join(str(run.counts[-1]) for run in both)
        accuracies = ", ".join(f"{run.accuracy[-1]:.1f}" for run in both)
        seconds = ", ".join(f"{run.seconds[-1]:.0f}" for run in both)
        told.append(f"`gap_tol={gap_tol:g}`: {counts} filters, {accuracies} %, {seconds} s")
    return "; ".join(told)


def _ratios(runs: list[Any], others: list[Any], slack: float = 0.0) -> list[float]:
    """Return, of each seed that gets there, how many times less time the others' accuracy takes."""
    pairs = zip(runs, others, strict=True)
    ratios = [b.seconds[-1] / a.time_to(b.accuracy[-1] - slack) for a, b in pairs]
    return [ratio for ratio in ratios if ratio > 0]


def _faster(measured: dict[str, Any]) -> str:
    """Return how much less time learned filters take than the selection, solved as a whole."""
    parts = []
    for name, results in measured.items():
        learned, selected = (results["runs"][n] for n in ("learned", "selected, one solve"))
        ratios = _ratios(learned, selected)
        told = f"{np.median(ratios):.1f} times as fast" if ratios else "not reached"
        parts.append(f"{told} with {name} ({len(ratios)} of {len(learned)} seeds)")
    return ", ".join(parts)


def _plot(path: Path, measured: dict[str, Any]) -> None:
    plt = pyplot()

    figure, axes = plt.subplots(len(measured), 2, figsize=(10, 4 * len(measured)), squeeze=False)
    for (title, results), (left, right) in zip(measured.items(), axes, strict=True):
        for name, color in COLORS.items():
            for i, run in enumerate(results["runs"][name]):
                label = name if i == 0 else None
                left.plot(run.counts[1:], run.accuracy[1:], color, label=label, alpha=0.7)
            sizes = sorted(results["sizes"])
            means = [np.mean([r.accuracy[-1] for r in results["sizes"][s][name]]) for s in sizes]
            right.semilogx(sizes, means, color, marker="o", label=name)
        left.set(xlabel="features", ylabel="accuracy, %", title=title, ylim=(75, 97))
        right.set(xlabel="training patches per class", title=title)
        left.legend()
        right.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    plt.close(figure)


def write(out: Path, measured: dict[str, Any], settings: dict[str, Any]) -> None:
    """Write the page and the picture."""
    n, counts = next(iter(measured.values()))["n"], settings["counts"]
    parts = [
        render("brodatz/plates", name=name, methods=_methods(results, counts))
        for name, results in measured.items()
    ]
    out.mkdir(parents=True, exist_ok=True)
    _plot(out / "brodatz.png", measured)
    keep_runs(out, "brodatz", measured)
    write_page(
        out,
        "brodatz",
        n=n,
        draws=settings["draws"],
        pool=settings["pool"],
        faster=_faster(measured),
        sets="\n\n".join(parts),
        most=_of_most(next(iter(measured.values()))),
        alpha=settings["alpha"],
        gaps=_of_gaps(next(iter(measured.values()))),
    )
