"""MNIST with kernel hypotheses: objective, error, coverage and sparsity while boosters run.

The setting of Fig. 7 and 8 of J. Duchi, Y. Singer, "Boosting with structural sparsity", ICML 2009,
cut down: hypotheses exp(−‖x − z‖²/2) around the examples on which one pass of a multiclass kernel
perceptron errs, multinomial loss.

    python -m scripts.reproduce.kernel_hypotheses --data DIR
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from scripts.reproduce.results import arguments, table, write_page
from visionshare import StructuralBoostingClassifier
from visionshare.datasets.idx import read_idx
from visionshare.losses import coverage
from visionshare.resources import thread_limit
from visionshare.store import ArrayColumns

PASS, A_CLASS, CLASSES = 3000, 100, 10
SHARE, ROUNDS, SWEEPS, ENTERING = 0.02, 15, 4, 30
BOOSTERS = (
    ("gradboost", "l1/linf"),
    ("adaboost", "l1/linf"),
    ("gradboost", "l1"),
    ("adaboost", "l1"),
    ("gradboost", "l1/l2"),
)


class Curve(NamedTuple):
    """What a booster had after each round; sparsity is the share of zeros of W."""

    strength: float
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
    held = np.empty((len(X), X.shape[1]), np.float32)
    for i, x in enumerate(X):
        n = len(chosen)
        scores = kernel(x[None], held[:n]).astype(np.float64)[0] @ weights[:n]
        winner = int(np.argmax(scores))
        if n == 0 or winner != y[i]:
            weights[n, y[i]] += 1
            weights[n, winner] -= float(winner != y[i])
            held[n] = x
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


def curve(H: np.ndarray, y: np.ndarray, test: tuple, master: str, penalty: str, n: int) -> Curve:
    """Return how a booster fared, round by round."""
    learner = StructuralBoostingClassifier(
        master=master, penalty=penalty, entering=ENTERING, rounds=n, max_iter=SWEEPS,
        calibrate=False,
    )  # fmt: skip
    columns = ArrayColumns(H)
    strength = SHARE * learner.strength_max(columns, y)
    history = learner.set_params(strength=strength).fit(columns, y).history_
    offset, scale = columns.scaling_of()
    held: dict[str, list[float]] = {name: [] for name in ("error", "coverage", "zeros", "rows")}
    for done in history:
        ids = done.candidates
        scores = ((test[0][:, ids] - offset[ids]) * scale[ids]) @ done.W + done.b
        held["error"].append(float(np.mean(np.argmax(scores, axis=1) != test[1])))
        held["coverage"].append(coverage(scores, test[1]))
        held["zeros"].append(1 - np.count_nonzero(done.W) / (CLASSES * H.shape[1]))
        held["rows"].append(len(ids))
    seconds = np.cumsum([done.seconds for done in history])
    values = np.array([done.value for done in history])
    found = (np.array(held[name]) for name in ("error", "coverage", "zeros", "rows"))
    return Curve(strength, seconds, values, *found, history[-1].kkt)


def draw(found: dict[tuple[str, str], Curve], path: Path) -> None:
    """Draw objective, error, coverage and sparsity against seconds."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 2, figsize=(11, 7), constrained_layout=True)
    colors = {"l1/linf": "C0", "l1": "C1", "l1/l2": "C2"}
    labels = {
        "objective": "training objective over the first",
        "error": "test error",
        "coverage": "test coverage",
        "sparsity": "share of zeros of W",
    }
    for axis, (field, label) in zip(axes.ravel(), labels.items(), strict=True):
        for (master, penalty), held in found.items():
            values = getattr(held, field)
            values = values / values[0] if field == "objective" else values
            style = "-" if master == "gradboost" else "--"
            name = f"{master}, {penalty}"
            axis.plot(held.seconds, values, style, color=colors[penalty], label=name)
        axis.set(xlabel="seconds", ylabel=label)
    axes[0, 0].legend(fontsize=8)
    figure.savefig(path, dpi=80)


def write(
    options: Any, n: int, seen: int, sharp: float, found: dict[tuple[str, str], Curve]
) -> None:
    """Write page and picture of the boosters that are done."""
    options.out.mkdir(parents=True, exist_ok=True)
    draw(found, options.out / "kernel_hypotheses.png")
    settings = (
        "Images of length 1. The paper does not name a scale; for pixels in [0, 1] the kernel of "
        f"two of the training images is {sharp:.0e} in the median, so that every hypothesis is an "
        "indicator of one image and the free intercepts decide about test images. "
        f"One pass over {seen} training images errs on "
        f"{n}: these are the hypotheses, {n * CLASSES} weights (the paper: 2766 of 60 000 images, "
        f"27 660 weights). {A_CLASS} training examples a class out of those images train, all "
        "10 000 test images judge every round; no choice is made by them. λ is "
        f"{SHARE:g} λ_max of each penalty, not chosen by cross-validation as in the paper, so that "
        "errors of different penalties are of different compromises. Cut down further: totally "
        f"corrective rounds in which {ENTERING} candidates enter at most, with {SWEEPS} sweeps of "
        f"updates each, {ROUNDS} rounds at most, where the paper makes thousands of single "
        "updates. KKT residuals say how far the end is from the optimum, as a share of λ. Seconds "
        f"are of {options.jobs} thread on cores that other work shared: read the shapes, not the "
        "figures. One seed."
    )
    rows = [
        [
            master,
            penalty,
            f"{c.strength:.3g}",
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
        for (master, penalty), c in found.items()
    ]
    header = ["master", "penalty", "λ", "rounds", "s", "objective at first", "at the end", "KKT"]
    header += ["test error, %", "coverage", "zeros of W", "most features", "features at the end"]
    picture = "![objective, error, coverage and sparsity against seconds](kernel_hypotheses.png)"
    parts = [settings, table(header, rows), picture]
    write_page(options.out, "kernel_hypotheses", "MNIST: kernel hypotheses by boosting", parts)


def main() -> None:
    """Run all boosters and write the page, after each."""
    options = arguments(__doc__.splitlines()[0]).parse_args()
    seen, rounds = (1000, 3) if options.quick else (PASS, ROUNDS)
    with thread_limit(options.jobs):
        X, y, X_test, y_test = load(options.data)
        begun = time.perf_counter()
        centres = X[:seen][mistakes(X[:seen], y[:seen])]
        print(f"{len(centres)} of {seen}, {time.perf_counter() - begun:.0f} s", flush=True)
        rows = np.concatenate([np.flatnonzero(y[:seen] == c)[:A_CLASS] for c in range(CLASSES)])
        H, test = kernel(X[rows], centres), (kernel(X_test, centres), y_test)
        pixels = read_idx(options.data / "mnist" / "train-images-idx3-ubyte.gz")[:500]
        flat = pixels.reshape(500, -1).astype(np.float32) / 255
        sharp = float(np.median(kernel(flat[:250], flat[250:])))
        found: dict[tuple[str, str], Curve] = {}
        for master, penalty in BOOSTERS:
            found[master, penalty] = curve(H, y[rows], test, master, penalty, rounds)
            write(options, len(centres), seen, sharp, found)


if __name__ == "__main__":
    main()
