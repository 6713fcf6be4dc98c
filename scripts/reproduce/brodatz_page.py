"""The page and the picture of the Brodatz textures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from scripts.reproduce.results import spread, table, write_page

COLORS = {"learned": "C0", "selected": "C1", "fixed": "C2"}
PROTOCOL = """\
Three classes, a plate each. Patches of 16 × 16 pixels are drawn evenly, overlapping, from a
plate's left half for training and from its right half for testing (5000 a class). Each plate is
brought to mean 0 and variance 1 as a whole, measured on its left half, so that neither brightness
nor contrast alone gives a class away. Features: sums of absolute Gabor responses on every second
pixel, columns of unit norm; squared hinge, one against all, ℓ1/ℓ2 penalty,
`GroupFeatureClassifier` with the Newton solver.

- **learned**: parameters drawn anew each round, {draws} a round where nothing else is said; the
  worst violator enters.
- **selected**: {pool} filters drawn once and evaluated in advance; the same column generation
  chooses among them.
- **selected, one solve**: the problem of those {pool} filters solved as a whole (by ADMM), as in
  the paper; `maximum` takes the maximum over positions instead of the sum.
- **fixed**: a grid of parameters (81 filters of 3 values each, where nothing else is said) and
  the same learner with the same penalty.

λ was chosen by cross-validation on the left halves: their columns of pixels fall into three blocks
of which each is judged once (100 patches a class and block), as patches drawn at random would
overlap. `selected` takes the λ of
`learned`, other numbers of patches that of {n} a class. `learned` and `selected` end at 243
features with {n} patches a class, at 81 with other numbers. Every figure is an accuracy on the test
patches in percent, mean ± standard deviation over seeds (patches, draws); the plates are the same
throughout, so that the spread says nothing of other plates. Seconds are of one processor's time,
evaluation of the filters included. The mean over positions instead of the sum is the same
feature once columns have unit norm; the maximum has a row of its own."""


def _cross_validation(found: dict[str, Any]) -> str:
    scores = found["scores"]
    alphas = list(next(iter(scores.values())))
    rows = [[name, *(f"{scores[name][s]:.2f}" for s in alphas)] for name in scores]
    return table(["λ", *(f"{s:g}" for s in alphas)], rows)


def _methods(found: dict[str, Any], counts: tuple[int, ...]) -> str:
    rows = []
    for name, runs in found["runs"].items():
        whole = name.endswith("one solve")
        cells = ["" if whole else spread([r.at(c) for r in runs]) for c in counts]
        last = f"{np.mean([r.counts[-1] for r in runs]):.0f}"
        final = spread([r.accuracy[-1] for r in runs])
        seconds = f"{np.mean([r.seconds[-1] for r in runs]):.1f}"
        rows.append([name, len(runs), *cells, last, final, seconds])
    for size, runs in found["grids"].items():
        cells = [spread([r.at(c) for r in runs]) for c in counts]
        last = f"{np.mean([r.counts[-1] for r in runs]):.0f}"
        final = spread([r.accuracy[-1] for r in runs])
        seconds = f"{np.mean([r.seconds[-1] for r in runs]):.1f}"
        rows.append([f"fixed, grid of {size}", len(runs), *cells, last, final, seconds])
    return table(["", "seeds", *map(str, counts), "at the end", "accuracy", "seconds"], rows)


def _time_to(runs: list[Any], others: list[Any]) -> str:
    """Return the mean seconds to the final accuracy of the other runs, seed by seed."""
    times = [r.time_to(o.accuracy[-1]) for r, o in zip(runs, others, strict=False)]
    reached = [t for t in times if np.isfinite(t)]
    return f"{np.mean(reached):.1f} ({len(reached)} of {len(times)})" if reached else "not reached"


def _times(found: dict[str, Any]) -> str:
    runs = found["runs"]
    goals = ("learned", "selected", "selected, one solve", "fixed")
    goals += ("selected, maximum, one solve",) * ("selected, maximum, one solve" in runs)
    names = [name for name in runs if not name.endswith("one solve")]
    rows = [[name, *(_time_to(runs[name], runs[goal]) for goal in goals)] for name in names]
    return table(["seconds until the final accuracy of", *goals], rows)


def _answers(found: dict[str, Any], counts: tuple[int, ...]) -> str:
    """Return what was asked and what came of it: accuracy at equal features, time at equal ones."""
    runs, lines = found["runs"], []
    gains = []
    for count in counts:
        pairs = zip(runs["learned"], runs["fixed"], strict=True)
        gains.append(spread([a.at(count) - b.at(count) for a, b in pairs], 1) + f" at {count}")
    lines.append("- Learned minus fixed, points of accuracy: " + ", ".join(gains) + " features.")
    for name, goal in (
        ("learned", "selected, one solve"),
        ("ShareBoost", "selected, one solve"),
        ("learned, maximum", "selected, one solve"),
        ("learned, maximum", "selected, maximum, one solve"),
    ):
        if name in runs and goal in runs:
            pairs = list(zip(runs[name], runs[goal], strict=True))
            for slack in (0.0, 0.5):
                ratios = [b.seconds[-1] / a.time_to(b.accuracy[-1] - slack) for a, b in pairs]
                there = [r for r in ratios if r > 0]
                told = f"{np.median(there):.1f} times less time (median)" if there else "never"
                near = f" less {slack:g} points" if slack else ""
                lines.append(
                    f"- {name} reaches the accuracy of {goal}{near} in {len(there)} of "
                    f"{len(ratios)} seeds: {told}."
                )
    return "\n".join(lines)


def _sizes(found: dict[str, Any]) -> str:
    rows = []
    for size, runs in sorted(found["sizes"].items()):
        cells = [spread([r.accuracy[-1] for r in runs[name]]) for name in COLORS]
        times = [f"{np.mean([r.seconds[-1] for r in runs[name]]):.1f}" for name in COLORS]
        rows.append([size, len(runs["learned"]), *cells, *times])
    names = list(COLORS)
    return table(["patches a class", "seeds", *names, *(f"{n}, s" for n in names)], rows)


def _plot(path: Path, found: dict[str, Any]) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(len(found), 2, figsize=(10, 4 * len(found)), squeeze=False)
    for (title, held), (left, right) in zip(found.items(), axes, strict=True):
        for name, color in COLORS.items():
            for i, run in enumerate(held["runs"][name]):
                label = name if i == 0 else None
                left.plot(run.counts[1:], run.accuracy[1:], color, label=label, alpha=0.7)
            sizes = sorted(held["sizes"])
            means = [np.mean([r.accuracy[-1] for r in held["sizes"][s][name]]) for s in sizes]
            right.semilogx(sizes, means, color, marker="o", label=name)
        left.set(xlabel="features", ylabel="accuracy, %", title=title, ylim=(75, 97))
        right.set(xlabel="training patches a class", title=title)
        left.legend()
        right.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    plt.close(figure)


def write(
    out: Path, sets: dict[str, Any], found: dict[str, Any], settings: dict[str, Any], words: str
) -> None:
    """Write the page and the picture; ``words`` is what was asked and what came of it."""
    n = next(iter(found.values()))["n"]
    parts = [words, PROTOCOL.format(n=n, **settings)]
    for name, held in found.items():
        files = ", ".join(f"{plate} (`{file}`)" for plate, file in sets[name])
        parts += [
            f"## Plates of {name}",
            files + ".",
            _answers(held, settings["counts"]),
            f"Features, accuracy and seconds with {n} training patches a class:",
            _methods(held, settings["counts"]),
            "Seconds until another method's final accuracy is first reached on the test part (in "
            "how many of the seeds it is); a description after the fact, no rule to stop by:",
            _times(held),
            "Accuracy and seconds against training patches:",
            _sizes(held),
            "Cross-validation, accuracy in percent:",
            _cross_validation(held),
        ]
    out.mkdir(parents=True, exist_ok=True)
    _plot(out / "brodatz.png", found)
    parts.append("![Accuracy against features and training patches](brodatz.png)")
    write_page(out, "brodatz", "Brodatz textures, learned Gabor filters", parts)
