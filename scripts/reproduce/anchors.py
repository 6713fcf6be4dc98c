"""MNIST from anchors: ShareBoost of piece-wise linear functions against a Gaussian SVM.

Shalev-Shwartz, Wexler and Shashua, "ShareBoost: Efficient multiclass learning with feature
sharing", §4.2, §7.5 and figure 7.

    python -m scripts.reproduce.anchors --data DIR
"""

from __future__ import annotations

import time
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from scripts.reproduce.results import arguments, keep_runs, pyplot, table, write_page
from visionshare import KernelAnchors, ShareBoost
from visionshare.columns import ArrayColumns
from visionshare.datasets.readers.idx import read_idx
from visionshare.generators.anchors import AnchorColumns

VALIDATION = 10000
GAMMAS = (0.01, 0.02, 0.03, 0.04, 0.06)
COSTS = (2.0, 5.0, 10.0, 20.0, 50.0)
COUNTS = (10, 20, 40, 60, 80, 100, 120, 150, 180, 200, 230)
# A few steps per round: the next round resumes from there; refits of up to 300 take 2.6 times as
# long and are no better on the validation images. An exhaustive search is, at five times the cost:
# see ``anchor_searches``.
LEARNERS: dict[str, dict[str, Any]] = {
    "linear": {
        "search": "random",
        "search_options": {"n": 60},
        "refit_tol": 1e-3,
        "max_iter": 6,
        "scaling": "none",
    },
    "gaussian": {"search": "random", "search_options": {"n": 500}, "refit_tol": 1e-3},
}


def read(folder: Path, kind: str) -> tuple[np.ndarray, np.ndarray]:
    """Return images and classes of the 60 000 ("train") or the 10 000 ("t10k")."""
    images, labels = (f"{kind}-images-idx3-ubyte.gz", f"{kind}-labels-idx1-ubyte.gz")
    return read_idx(folder / images), read_idx(folder / labels).astype(np.int64)


def columns_of(family: KernelAnchors, images: np.ndarray) -> Any:
    """Return the columns of a family: searched whole, or as an array for Gaussians."""
    if family.kind == "linear":
        return AnchorColumns(family, images)
    return ArrayColumns.from_family(family, images, dtype="float16")


def learn(
    columns: Any,
    y: np.ndarray,
    rounds: int,
    alpha: float,
    validation: np.ndarray,
    checkpoint: Path | None = None,
) -> ShareBoost:
    """Return ShareBoost; validation examples give errors and temperature."""
    settings = LEARNERS["gaussian" if columns.groups is None else "linear"]
    model = ShareBoost(rounds, alpha=alpha, checkpoint=checkpoint, **settings)
    return model.fit(columns, y, validation=validation)


def test_errors(model: ShareBoost, family: Any, images: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the test error after every round, in percent."""
    features = family.take(model.support_).transform(images)
    errors = []
    for step in model.path_:
        scores = features[:, : step.n_features] @ step.weights.T + step.intercept
        errors.append(100 * np.mean(model.classes_[np.argmax(scores, axis=1)] != y))
    return np.array(errors)


def chosen_alpha(
    family: Any, data: Any, rounds: int, alphas: list[float], kept: Path | None
) -> tuple[float, dict[float, float]]:
    """Return the ridge with the least error on the last 10 000 training images, and all errors.

    The rounds of each are kept in a folder of ``kept``.
    """
    images, y = data
    validation = np.arange(len(y)) >= len(y) - VALIDATION
    if len(alphas) == 1:
        return alphas[0], {}
    columns = columns_of(family, images)
    errors = {}
    for alpha in alphas:
        folder = kept / f"ridge-{alpha:g}" if kept else None
        model = learn(columns, y, rounds, alpha, validation, folder)
        errors[alpha] = 100 * float(model.path_[-1].validation_error or 0)
    return min(errors, key=lambda s: errors[s]), errors


def chosen_svm(V: np.ndarray, y: np.ndarray) -> tuple[tuple[float, float], list[list[Any]]]:
    """Return γ and C with the least error on the validation images, and the rows of a table."""
    rows = []
    for gamma, cost in product(GAMMAS, COSTS):
        train, validation = (
            (V[part], y[part]) for part in (slice(-VALIDATION), slice(-VALIDATION, None))
        )
        error, machines, _ = svm_error(train, validation, (gamma, cost))
        rows.append([gamma, cost, round(error, 2), machines])
    gamma, cost = min(rows, key=lambda row: row[2])[:2]
    return (gamma, cost), rows


def svm_error(train: Any, test: Any, at: tuple[float, float]) -> tuple[float, int, float]:
    """Return an SVM's test error in percent, its support vectors and its seconds."""
    from sklearn.svm import SVC

    begun = time.process_time()
    model = SVC(gamma=at[0], C=at[1], cache_size=1000).fit(*train)
    seconds = time.process_time() - begun
    return 100 * float(np.mean(model.predict(test[0]) != test[1])), len(model.support_), seconds


def curve(args: Any, data: Any, test: Any, kind: str, sizes: dict[str, Any]) -> dict[str, Any]:
    """Choose the ridge, learn from all but a few validation images, and test every round."""
    images, y = data
    rounds = args.rounds if kind == "linear" else args.gaussians
    family = KernelAnchors(kind, scaling="none", random_state=0, **sizes).fit(images)
    tried = min(args.tried, rounds)
    kept = args.checkpoint / kind if args.checkpoint else None
    alpha, errors = chosen_alpha(family, data, tried, args.alphas, kept)
    validation = np.zeros(len(y), bool)
    validation[np.random.default_rng(0).choice(len(y), len(y) // 60, replace=False)] = True
    columns = columns_of(family, images)
    begun = time.process_time()
    model = learn(columns, y, rounds, alpha, validation, kept / "final" if kept else None)
    return {
        "kind": kind,
        "sizes": sizes,
        "alpha": alpha,
        "tried": (tried, errors),
        "n_validation": int(validation.sum()),
        "train": np.array([100 * step.train_error for step in model.path_]),
        "test": test_errors(model, family, *test),
        "macs": [step.macs for step in model.path_],
        "seconds": time.process_time() - begun,
    }


def plot(path: Path, curves: list[dict[str, Any]], svm: float) -> None:
    """Draw the errors against the number of anchors."""
    plt = pyplot()

    figure, axis = plt.subplots(figsize=(7, 4.5))
    for i, curve in enumerate(curves):
        rounds = np.arange(1, len(curve["test"]) + 1)
        label = "piece-wise linear" if curve["kind"] == "linear" else "Gaussian"
        axis.plot(rounds, curve["test"], f"C{i}", label=f"{label}, test")
        axis.plot(rounds, curve["train"], f"C{i}", ls=":", label=f"{label}, training")
    axis.axhline(svm, color="k", ls="--", label="SVM, Gaussian kernel, test")
    axis.set(xlabel="anchors", ylabel="error, %", ylim=(0, 8), title="MNIST")
    axis.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    plt.close(figure)


def main() -> None:
    """Measure the SVM and the anchors, write page and picture."""
    parser = arguments(__doc__)
    parser.add_argument("--components", type=int, default=50)
    parser.add_argument("--anchors", type=int, default=1500)
    parser.add_argument("--radii", type=int, default=35)
    parser.add_argument("--rounds", type=int, default=230)
    parser.add_argument("--tried", type=int, default=230, help="rounds that choose the ridge")
    parser.add_argument("--alphas", type=float, nargs="+", default=[3e-5, 1e-4, 3e-4])
    parser.add_argument("--gaussians", type=int, default=0, help="rounds of Gaussian anchors")
    parser.add_argument("--checkpoint", type=Path, help="folder that keeps the rounds")
    parser.add_argument("--widths", type=int, default=4)
    args = parser.parse_args()
    data, test = (read(args.data / "mnist", kind) for kind in ("train", "t10k"))
    if args.quick:
        data, args.rounds, args.tried = (data[0][:12000], data[1][:12000]), 10, 5
    small = KernelAnchors("linear", 2, 2, 50, scaling="none").fit(data[0])
    V, W = small.vectors(data[0]), small.vectors(test[0])
    at, tried = chosen_svm(V, data[1])
    error, machines, _ = svm_error((V, data[1]), (W, test[1]), at)
    sizes = {"n_components": args.components, "n_anchors": args.anchors}
    curves = [curve(args, data, test, "linear", sizes | {"n_radii": args.radii})]
    if args.gaussians:
        curves.append(curve(args, data, test, "gaussian", sizes | {"n_radii": args.widths}))
    best = table(
        ["", "test error, %", "anchors or support vectors"],
        [["SVM, Gaussian kernel", f"{error:.2f}", machines]]
        + [[f"ShareBoost, {c['kind']}", f"{c['test'][-1]:.2f}", len(c["test"])] for c in curves],
    )
    args.out.mkdir(parents=True, exist_ok=True)
    plot(args.out / "anchors.png", curves, error)
    n_anchors = min(len(curves[0]["test"]), 230)
    above = curves[0]["test"][n_anchors - 1] - error
    keep_runs(
        args.out,
        "anchors",
        {"svm": {"error": error, "machines": machines, "tried": tried}, "curves": curves},
    )
    write_page(
        args.out,
        "anchors",
        best=best,
        points_above=f"{above:.2f}",
        n_anchors=n_anchors,
        n_components=args.components,
        n_validation=VALIDATION,
    )


if __name__ == "__main__":
    main()
