"""MNIST with kernel hypotheses: objective, error, coverage and sparsity while boosters run.

The setting of Fig. 7 and 8 of J. Duchi, Y. Singer, "Boosting with structural sparsity", ICML 2009:
hypotheses exp(−‖x − z‖²/2) around the examples on which one pass of a multiclass kernel perceptron
errs, multinomial loss.

    python -m scripts.reproduce.kernel_hypotheses --data DIR
"""

from __future__ import annotations

import itertools
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from scripts.reproduce.results import arguments, pyplot, render, table, write_page
from visionshare import StructuralBoostingClassifier
from visionshare.columns import ArrayColumns
from visionshare.datasets.idx import read_idx
from visionshare.losses import coverage
from visionshare.resources import thread_limit

CLASSES, VALIDATION = 10, 5000
SIZES, FRACTIONS = (30, 100, 300), (0.1, 0.05, 0.02, 0.01, 0.005)
ROUNDS, SWEEPS, ENTERING = 40, 4, 50
PENALTIES = ("l1", "l1/l2", "l1/linf")


# Kernels (m, n) and classes (m,).
Examples = tuple[np.ndarray, np.ndarray]


class Curve(NamedTuple):
    """What a booster had after each round; sparsity is the fraction of zeros of W."""

    alpha: float
    seconds: np.ndarray
    objective: np.ndarray
    error: np.ndarray
    coverage: np.ndarray
    sparsity: np.ndarray
    rows: np.ndarray
    kkt: float


def kernel(X: np.ndarray, Z: np.ndarray) -> np.ndarray:
    """Return exp(−‖x − z‖²/2), (len(X), len(Z)) float32, for images of unit length."""
    squares = np.sum(X * X, axis=1)[:, None] + np.sum(Z * Z, axis=1) - 2 * X @ Z.T
    return np.exp(-0.5 * np.maximum(squares, 0)).astype(np.float32)


def mistakes(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the examples on which one pass of the kernel perceptron errs, in order.

    A mistake adds the example to its own class and takes it from the one that won.
    """
    chosen: list[int] = []
    weights = np.zeros((len(X), CLASSES))
    centers = np.empty((len(X), X.shape[1]), np.float32)
    for i, x in enumerate(X):
        n = len(chosen)
        scores = kernel(x[None], centers[:n]).astype(np.float64)[0] @ weights[:n]
        winner = int(np.argmax(scores))
        if n == 0 or winner != y[i]:
            weights[n, y[i]] += 1
            weights[n, winner] -= float(winner != y[i])
            centers[n] = x
            chosen.append(i)
    return np.array(chosen)


def load(data: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return MNIST's training and test images as rows of length 1, and their classes."""
    parts = []
    for name in ("train", "t10k"):
        images = read_idx(data / "mnist" / f"{name}-images-idx3-ubyte.gz")
        labels = read_idx(data / "mnist" / f"{name}-labels-idx1-ubyte.gz")
        rows = images.reshape(len(images), -1).astype(np.float32)
        parts += [rows / np.linalg.norm(rows, axis=1)[:, None], labels.astype(int)]
    return parts[0], parts[1], parts[2], parts[3]


def curve(
    H: np.ndarray, y: np.ndarray, test: Examples, solver: str, penalty: str, n: int, fraction: float
) -> Curve:
    """Return how a booster fared, round by round, at a fraction of λ_max."""
    learner = StructuralBoostingClassifier(
        solver=solver, penalty=penalty, n_entering=ENTERING, rounds=n, max_iter=SWEEPS,
        calibrate=False,
    )  # fmt: skip
    columns = ArrayColumns(H)
    alpha = fraction * learner.alpha_max(columns, y)
    history = learner.set_params(alpha=alpha).fit(columns, y).history_
    offset, scale = columns.scaling_of()
    curves: dict[str, list[float]] = {name: [] for name in ("error", "coverage", "zeros", "rows")}
    for step in history:
        ids = step.candidates
        scores = ((test[0][:, ids] - offset[ids]) * scale[ids]) @ step.coef.T + step.intercept
        curves["error"].append(float(np.mean(np.argmax(scores, axis=1) != test[1])))
        curves["coverage"].append(coverage(scores, test[1]))
        curves["zeros"].append(1 - np.count_nonzero(step.W) / (CLASSES * H.shape[1]))
        curves["rows"].append(len(ids))
    seconds = np.cumsum([step.seconds for step in history])
    values = np.array([step.value for step in history])
    return Curve(
        alpha,
        seconds,
        values,
        error=np.array(curves["error"]),
        coverage=np.array(curves["coverage"]),
        sparsity=np.array(curves["zeros"]),
        rows=np.array(curves["rows"]),
        kkt=history[-1].gap,
    )


def draw(measured: dict[tuple[str, str], Curve], path: Path) -> None:
    """Draw objective, error, coverage and sparsity against seconds."""
    plt = pyplot()

    figure, axes = plt.subplots(2, 2, figsize=(11, 7), constrained_layout=True)
    colors = {"l1/linf": "C0", "l1": "C1", "l1/l2": "C2"}
    labels = {
        "objective": "training objective over the first",
        "error": "test error",
        "coverage": "test coverage",
        "sparsity": "fraction of zeros of W",
    }
    for axis, (name, label) in zip(axes.ravel(), labels.items(), strict=True):
        for (solver, penalty), run in measured.items():
            values = getattr(run, name)
            values = values / values[0] if name == "objective" else values
            style = "-" if solver == "gradboost" else "--"
            pair = f"{solver}, {penalty}"
            axis.plot(run.seconds, values, style, color=colors[penalty], label=pair)
        axis.set(xlabel="seconds", ylabel=label, xscale="log")
        if label != labels["sparsity"]:
            axis.set(yscale="log")
    axes[0, 0].legend(fontsize=8)
    figure.savefig(path, dpi=80)


@dataclass
class Measured:
    """What was chosen and measured so far."""

    chosen: list[list[Any]] = field(default_factory=list)
    sizes: dict[tuple[str, int], tuple[float, float, float]] = field(default_factory=dict)
    curves: dict[tuple[str, str], Curve] = field(default_factory=dict)


def write(options: Any, hypotheses: int, seen: int, median: float, measured: Measured) -> None:
    """Write page and pictures of what is complete."""
    options.out.mkdir(parents=True, exist_ok=True)
    header = ["penalty", "per class", "fraction of λ_max", "error on validation images, %"]
    write_page(
        options.out,
        "kernel_hypotheses",
        median_kernel=f"{median:.0e}",
        seen=seen,
        hypotheses=hypotheses,
        weights=hypotheses * CLASSES,
        sizes=", ".join(map(str, SIZES)),
        fractions=", ".join(map(str, FRACTIONS)),
        n_validation=VALIDATION,
        n_entering=ENTERING,
        sweeps=SWEEPS,
        rounds=ROUNDS,
        jobs=options.jobs,
        by_size=by_size(measured),
        by_round=by_round(options.out, measured),
        chosen=table(header, measured.chosen),
    )


def by_size(measured: Measured) -> str:
    """Return the part of the page about numbers of training examples; empty before the first."""
    if not measured.sizes:
        return ""
    sizes = sorted({size for _, size in measured.sizes})
    rows = [
        [
            penalty,
            *(
                f"{c:.4f}; {100 * e:.2f} % ({fraction:g})"
                for e, c, fraction in (measured.sizes[penalty, size] for size in sizes)
            ),
        ]
        for penalty in PENALTIES
        if all((penalty, size) in measured.sizes for size in sizes)
    ]
    header = ["coverage; error (fraction of λ_max)", *(f"{size} per class" for size in sizes)]
    return render("kernel_hypotheses/by-size", errors=table(header, rows))


def by_round(out: Path, measured: Measured) -> str:
    """Draw the curves and return the part of the page about them; empty before the first."""
    if not measured.curves:
        return ""
    draw(measured.curves, out / "kernel_hypotheses.png")
    header = ["solver", "penalty", "λ", "rounds", "s", "objective at first", "at the end"]
    header += ["KKT", "test error, %", "coverage", "zeros of W", "most features", "at the end"]
    rows = [
        [
            *pair,
            f"{c.alpha:.3g}",
            len(c.rows) - 1,
            f"{c.seconds[-1]:.1f}",
            f"{c.objective[0]:.1f}",
            f"{c.objective[-1]:.1f}",
            f"{c.kkt:.2g}",
            f"{100 * c.error[-1]:.2f}",
            f"{c.coverage[-1]:.4f}",
            f"{c.sparsity[-1]:.3f}",
            int(c.rows.max()),
            int(c.rows[-1]),
        ]
        for pair, c in measured.curves.items()
    ]
    return render("kernel_hypotheses/by-round", size=max(SIZES), boosters=table(header, rows))


def chosen_fraction(
    H: np.ndarray, y: np.ndarray, validation: Examples, penalty: str, into: Measured
) -> float:
    """Return the fraction of λ_max whose classifier errs least on the validation images."""
    errors = {}
    for fraction in FRACTIONS:
        run = curve(H, y, validation, "gradboost", penalty, ROUNDS, fraction)
        errors[fraction] = run.error[-1]
        row = [penalty, len(y) // CLASSES, fraction, f"{100 * errors[fraction]:.2f}"]
        into.chosen.append(row)
        print(row, flush=True)
    return min(errors, key=lambda fraction: errors[fraction])


def median_kernel(data: Path) -> float:
    """Return the median kernel of training images whose pixels are in [0, 1]."""
    pixels = read_idx(data / "mnist" / "train-images-idx3-ubyte.gz")[:500]
    flat = pixels.reshape(500, -1).astype(np.float32) / 255
    return float(np.median(kernel(flat[:250], flat[250:])))


def main() -> None:
    """Choose λ, run all boosters and write the page, after each."""
    options = arguments(__doc__).parse_args()
    with thread_limit(options.jobs):
        X, y, X_test, y_test = load(options.data)
        seen = 3000 if options.quick else len(X)
        begun = time.perf_counter()
        support = mistakes(X[:seen], y[:seen])
        print(f"{len(support)} of {seen}, {time.perf_counter() - begun:.0f} s", flush=True)
        centers, median, measured = X[support], median_kernel(options.data), Measured()
        rows = np.setdiff1d(np.arange(len(X) - VALIDATION, len(X)), support)
        validation = kernel(X[rows], centers), y[rows]
        test = kernel(X_test, centers), y_test
        for size, penalty in itertools.product(SIZES, PENALTIES):
            rows = np.concatenate([np.flatnonzero(y == c)[:size] for c in range(CLASSES)])
            H = kernel(X[rows], centers)
            fraction = chosen_fraction(H, y[rows], validation, penalty, measured)
            run = curve(H, y[rows], test, "gradboost", penalty, ROUNDS, fraction)
            measured.sizes[penalty, size] = run.error[-1], run.coverage[-1], fraction
            if size == max(SIZES):
                measured.curves["gradboost", penalty] = run
                if penalty != "l1/l2":
                    run = curve(H, y[rows], test, "adaboost", penalty, ROUNDS, fraction)
                    measured.curves["adaboost", penalty] = run
            write(options, len(centers), seen, median, measured)


if __name__ == "__main__":
    main()
