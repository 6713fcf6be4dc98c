"""The two examples that separate greedy sharing from convex norms: how many features each needs.

Section 6 of S. Shalev-Shwartz, Y. Wexler, A. Shashua, "ShareBoost: Efficient multiclass learning
with feature sharing", NIPS 2011.

    python -m scripts.reproduce.synthetic_sharing --data DIR
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

from scripts.reproduce.results import (
    arguments,
    keep_runs,
    listed,
    pyplot,
    stopwatch,
    table,
    write_page,
)
from visionshare import MixedNormClassifier, ShareBoost
from visionshare.columns import ArrayColumns
from visionshare.learners import regularization_path
from visionshare.machine.resources import thread_limit

CLASSES = (16, 32, 64, 128, 256, 512, 1024)
BLOCKS, ZEROED, ALLOWED = 8, 0.1, 0.02
# Of λ_max. Where all k columns have weights one alpha takes minutes for 1024 classes.
FRACTIONS = (0.9, 0.5, 0.2, 0.05, 0.01)
FEW = (0.5, 0.05)
MANY = 256
# Columns count where their largest weight is more than this fraction of the largest of all.
SEEN = 1e-3


@dataclass(frozen=True)
class Example:
    """Columns (m, d), classes (m,) and the weight of each example (m,)."""

    X: np.ndarray
    y: np.ndarray
    omega: np.ndarray


def binary(k: int) -> np.ndarray:
    """Return the classes' numbers as rows of −1 and 1, (k, log₂ k)."""
    bits = int(np.log2(k))
    return 2.0 * ((np.arange(k)[:, None] >> np.arange(bits)) & 1) - 1


def first(k: int) -> Example:
    """Return x = [bin(y), 2 log₂(k) e_y], one example per class."""
    bits = binary(k)
    X = np.hstack([bits, 2 * bits.shape[1] * np.eye(k)])
    return Example(X.astype(np.float32), np.arange(k), np.full(k, 1 / k))


def second(k: int) -> Example:
    """Return blocks of bin(y); a fraction of the examples has one block zeroed, each as often.

    The paper draws the block; here every block counts with its probability.
    """
    bits = binary(k)
    whole = np.tile(bits, BLOCKS)
    parts, weights = [whole], [np.full(k, (1 - ZEROED) / k)]
    for block in range(BLOCKS):
        zeroed = whole.copy()
        zeroed[:, block * bits.shape[1] : (block + 1) * bits.shape[1]] = 0
        parts.append(zeroed)
        weights.append(np.full(k, ZEROED / BLOCKS / k))
    y = np.tile(np.arange(k), BLOCKS + 1)
    return Example(np.vstack(parts).astype(np.float32), y, np.concatenate(weights))


def wrong(example: Example, scores: np.ndarray) -> float:
    """Return the fraction of examples whose class is not the only best one."""
    truth = scores[np.arange(len(scores)), example.y]
    best = np.sum(scores >= truth[:, None] - 1e-4 * np.abs(scores).max(), axis=1)
    return float(example.omega @ (best > 1))


def greedy(example: Example, rounds: int) -> list[tuple[int, float]]:
    """Return features and error after each of ShareBoost's rounds."""
    model = ShareBoost(rounds, scaling="none", alpha=1e-5, refit_tol=1e-5)
    model.fit(ArrayColumns(example.X), example.y, example.omega)
    features = example.X[:, model.support_]
    return [
        (s.n_features, wrong(example, features[:, : s.n_features] @ s.weights.T + s.intercept))
        for s in model.path_
    ]


def mixed(example: Example, q: float, fractions: Sequence[float]) -> list[tuple[int, float]]:
    """Return columns with weights and error at each alpha."""
    columns = ArrayColumns(example.X)
    # A weight for each example, as ShareBoost's mean: only the scale of λ depends on it.
    omega = example.omega * len(example.y)
    learner = MixedNormClassifier(
        q, scaling="none", n_entering=2000, solver="fista", refit_tol=1e-3, tol=1e-2, max_iter=300,
        calibrate=False,
    )  # fmt: skip
    largest = learner.alpha_max(columns, example.y, omega)
    points = []
    alphas = [fraction * largest for fraction in fractions]
    for model in regularization_path(learner, columns, example.y, omega, alphas=alphas):
        peaks = np.abs(model.coef_).max(axis=0)
        seen = int(np.sum(peaks > SEEN * peaks.max())) if len(peaks) else 0
        scores = example.X[:, model.support_] @ model.coef_.T + model.intercept_
        points.append((seen, wrong(example, scores)))
    return points


def ridge(example: Example, costs: Sequence[float]) -> list[tuple[int, float]]:
    """Return the same of multinomial regression with ‖W‖²_F."""
    points = []
    for cost in costs:
        model = LogisticRegression(C=cost, tol=1e-4, max_iter=500).fit(example.X, example.y)
        peaks = np.abs(model.coef_).max(axis=0)
        points.append(
            (
                int(np.sum(peaks > SEEN * peaks.max())),
                wrong(example, model.decision_function(example.X)),
            )
        )
    return points


def fewest(points: list[tuple[int, float]], allowed: float = 0.0) -> int | None:
    """Return the fewest features of a classifier that is wrong on at most so many."""
    enough = [size for size, error in points if error <= allowed + 1e-9]
    return min(enough) if enough else None


def span(points: list[tuple[int, float]]) -> str:
    """Return the least and the most features along the alphas."""
    sizes = [size for size, _ in points]
    return f"{min(sizes)}" if min(sizes) == max(sizes) else f"{min(sizes)} to {max(sizes)}"


def shown(value: int | None) -> str:
    """Return a number, or a dash where no classifier was good enough."""
    return "–" if value is None else str(value)


def first_row(k: int) -> dict[str, Any]:
    """Return what the methods need on the first example."""
    example, few = first(k), FEW if k > MANY else FRACTIONS
    with stopwatch() as seconds:
        row = {
            "ShareBoost": shown(fewest(greedy(example, 2 * int(np.log2(k))))),
            "‖W‖ ∞,1": shown(fewest(mixed(example, np.inf, FRACTIONS))),
            "ℓ1": span(mixed(example, 1.0, few)),
            "ℓ2": span(ridge(example, (0.01, 1.0) if k > MANY else (0.01, 0.1, 1.0, 10.0))),
        }
    print(k, row, f"{seconds[0]:.0f} s", flush=True)
    return {"k": k, "log₂ k": int(np.log2(k)), **row}


def second_row(k: int) -> dict[str, Any]:
    """Return what the methods need on the second example."""
    example, bits = second(k), int(np.log2(k))
    fractions = FEW if k > MANY else FRACTIONS
    with stopwatch() as seconds:
        path = greedy(example, 3 * bits)
        row = {
            f"ShareBoost, at most {ALLOWED:.0%} wrong": shown(fewest(path, ALLOWED)),
            "ShareBoost, none wrong": shown(fewest(path)),
        }
        for label, q in (("‖W‖ ∞,1", np.inf), ("‖W‖ 2,1", 2.0)):
            points = mixed(example, q, fractions)
            row[f"{label}, at most {ALLOWED:.0%} wrong"] = shown(fewest(points, ALLOWED))
    print(k, row, f"{seconds[0]:.0f} s", flush=True)
    return {"k": k, "log₂ k": bits, "columns": bits * BLOCKS, **row}


def draw(ones: list[dict[str, Any]], twos: list[dict[str, Any]], path: Path) -> None:
    """Draw features against classes for both examples."""
    plt = pyplot()

    figure, axes = plt.subplots(1, 2, figsize=(10, 4), constrained_layout=True)
    for axis, rows, title in zip(
        axes, (ones, twos), ("first example", "second example"), strict=True
    ):
        for label in list(rows[0])[2:] if rows is ones else list(rows[0])[3:]:
            numbers = [str(row[label]).split()[0] for row in rows]
            known = [(row["k"], int(n)) for row, n in zip(rows, numbers, strict=True) if n != "–"]
            # Curves may lie on each other: the later ones are thinner and dashed.
            i = len(axis.lines)
            style = {"lw": 5 - 1.2 * i, "ls": "-" if i == 0 else "--", "ms": 9 - 1.5 * i}
            axis.plot(*zip(*known, strict=True), marker="o", label=label, **style)
        axis.plot([r["k"] for r in rows], [r["log₂ k"] for r in rows], "k:", label="log₂ k")
        axis.set_xscale("log", base=2)
        axis.set_yscale("log", base=2)
        axis.set(xlabel="classes", ylabel="features", title=title)
        axis.legend(fontsize=8)
    figure.savefig(path, dpi=80)


def as_table(rows: list[dict[str, Any]]) -> str:
    """Return rows of the same keys as a table."""
    k, log, *others = rows[0]
    cells = [[f"{row[k]} ({row[log]})", *(row[name] for name in others)] for row in rows]
    return table([f"{k} ({log})", *others], cells)


def write(options: Any, ones: list[dict[str, Any]], twos: list[dict[str, Any]]) -> None:
    """Write page and picture of what is complete."""
    options.out.mkdir(parents=True, exist_ok=True)
    draw(ones, twos, options.out / "synthetic_sharing.png")
    keep_runs(options.out, "synthetic_sharing", {"first": ones, "second": twos})
    write_page(
        options.out,
        "synthetic_sharing",
        fractions=listed(FRACTIONS),
        few_from=2 * MANY,
        seen=f"{SEEN:g}",
        first=as_table(ones),
        blocks=BLOCKS,
        zeroed=f"{ZEROED:g}",
        percent_wrong=f"{ZEROED / BLOCKS:.2%}",
        second=as_table(twos),
    )


def main() -> None:
    """Measure both examples for every number of classes, and write the page after each."""
    options = arguments(__doc__).parse_args()
    ones: list[dict[str, Any]] = []
    twos: list[dict[str, Any]] = []
    # Few examples per class are what the first example is about.
    warnings.filterwarnings("ignore", "The number of unique classes")
    with thread_limit(options.jobs):
        for k in CLASSES[:3] if options.quick else CLASSES:
            ones.append(first_row(k))
            twos.append(second_row(k))
            write(options, ones, twos)


if __name__ == "__main__":
    main()
