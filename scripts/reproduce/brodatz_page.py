"""The page and the picture of the Brodatz textures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from scripts.reproduce.results import keep_runs, pyplot, render, spread, table, write_page

COLORS = {"learned": "C0", "selected": "C1", "fixed": "C2"}


def _cross_validation(measured: dict[str, Any]) -> str:
    scores = measured["scores"]
    alphas = list(next(iter(scores.values())))
    rows = [[name, *(f"{scores[name][s]:.2f}" for s in alphas)] for name in scores]
    return table(["λ", *(f"{s:g}" for s in alphas)], rows)


def _methods(measured: dict[str, Any], counts: tuple[int, ...]) -> str:
    named = dict(measured["runs"])
    named |= {f"fixed, grid of {size}": runs for size, runs in measured["grids"].items()}
    rows = []
    for name, runs in named.items():
        whole = name.endswith("one solve")
        cells = ["" if whole else spread([r.at(c) for r in runs]) for c in counts]
        last = f"{np.mean([r.counts[-1] for r in runs]):.0f}"
        final = spread([r.accuracy[-1] for r in runs])
        seconds = f"{np.mean([r.seconds[-1] for r in runs]):.1f}"
        rows.append([name, len(runs), *cells, last, final, seconds])
    return table(["", "seeds", *map(str, counts), "at the end", "accuracy", "seconds"], rows)


def _time_to(runs: list[Any], others: list[Any]) -> str:
    """Return the mean seconds to the final accuracy of the other runs, seed by seed."""
    times = [r.time_to(o.accuracy[-1]) for r, o in zip(runs, others, strict=False)]
    reached = [t for t in times if np.isfinite(t)]
    return f"{np.mean(reached):.1f} ({len(reached)} of {len(times)})" if reached else "not reached"


def _times(measured: dict[str, Any]) -> str:
    runs = measured["runs"]
    goals = ["learned", "selected", "selected, one solve", "fixed"]
    goals += ["selected, maximum, one solve"] * ("selected, maximum, one solve" in runs)
    names = [name for name in runs if not name.endswith("one solve")]
    rows = [[name, *(_time_to(runs[name], runs[goal]) for goal in goals)] for name in names]
    return table(["seconds until the final accuracy of", *goals], rows)


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
        told = f"{np.median(ratios):.1f} times less" if ratios else "not reached"
        parts.append(
            f"{told} with plates of {name} ({len(ratios)} of {len(learned)} seeds get there)"
        )
    return ", ".join(parts)


def _answers(measured: dict[str, Any], counts: tuple[int, ...]) -> str:
    """Return accuracy at equal numbers of features, and time to equal accuracy."""
    runs, lines = measured["runs"], []
    gains = []
    # A grid may have nothing left that enters.
    most = min(int(run.counts[-1]) for run in runs["fixed"])
    for count in [*(count for count in counts if count < most), min(most, counts[-1])]:
        both = zip(runs["learned"], runs["fixed"], strict=True)
        gains.append(spread([a.at(count) - b.at(count) for a, b in both], 1) + f" at {count}")
    lines.append("- Learned minus fixed, points of accuracy: " + ", ".join(gains) + " features.")
    if most < counts[-1]:
        lines.append(f"- After {most} features, or a few more, nothing of the fixed grid enters.")
    for name, goal in (
        ("learned", "selected, one solve"),
        ("ShareBoost", "selected, one solve"),
        ("learned, maximum", "selected, one solve"),
        ("learned, maximum", "selected, maximum, one solve"),
    ):
        if name not in runs or goal not in runs:
            continue
        for slack in (0.0, 0.5):
            reached = _ratios(runs[name], runs[goal], slack)
            told = f"{np.median(reached):.1f} times less time (median)" if reached else "never"
            near = f" less {slack:g} points" if slack else ""
            lines.append(
                f"- {name} reaches the accuracy of {goal}{near} in {len(reached)} of "
                f"{len(runs[name])} seeds: {told}."
            )
    return "\n".join(lines)


def _sizes(measured: dict[str, Any]) -> str:
    rows = []
    for size, runs in sorted(measured["sizes"].items()):
        cells = [spread([r.accuracy[-1] for r in runs[name]]) for name in COLORS]
        times = [f"{np.mean([r.seconds[-1] for r in runs[name]]):.1f}" for name in COLORS]
        rows.append([size, len(runs["learned"]), *cells, *times])
    names = list(COLORS)
    return table(["patches per class", "seeds", *names, *(f"{n}, s" for n in names)], rows)


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


def write(
    out: Path, sets: dict[str, Any], measured: dict[str, Any], settings: dict[str, Any]
) -> None:
    """Write the page and the picture."""
    n, counts = next(iter(measured.values()))["n"], settings["counts"]
    parts = [
        render(
            "brodatz/plates",
            name=name,
            n=n,
            methods=_methods(results, counts),
        )
        for name, results in measured.items()
    ]
    sizes = [
        render(
            "brodatz/sizes",
            name=name,
            files=", ".join(f"{plate} (`{file}`)" for plate, file in sets[name]),
            answers=_answers(results, counts),
            times=_times(results),
            sizes=_sizes(results),
            cross_validation=_cross_validation(results),
        )
        for name, results in measured.items()
    ]
    out.mkdir(parents=True, exist_ok=True)
    _plot(out / "brodatz.png", measured)
    keep_runs(out, "brodatz", measured)
    write_page(
        out,
        "brodatz",
        draws=settings["draws"],
        pool=settings["pool"],
        faster=_faster(measured),
        n=n,
        sets="\n\n".join(parts),
        sizes="\n\n".join(sizes),
    )
