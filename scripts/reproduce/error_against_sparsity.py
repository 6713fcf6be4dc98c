"""ShareBoost against mixed norms and JointBoost: test error against the number of features.

Figure 3 of S. Shalev-Shwartz, Y. Wexler, A. Shashua, "ShareBoost: Efficient multiclass learning
with feature sharing", NIPS 2011: products of pairs of the inputs of StatLog (LandSat), Pendigits
and Isolet against ‖W‖_{∞,1} and ‖W‖_{2,1}, and stumps against JointBoost.

    python -m scripts.reproduce.error_against_sparsity --data DIR
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedKFold, train_test_split

from scripts.reproduce.results import arguments, keep_runs, pyplot, spread, table, write_page
from scripts.reproduce.uci import load
from visionshare import JointBoost, MixedNormClassifier, Products, ShareBoost, Stumps
from visionshare.columns import ArrayColumns, Columns
from visionshare.generators.stumps import StumpColumns
from visionshare.learners import regularization_path
from visionshare.machine.resources import thread_limit

NAMES = {"landsat": "StatLog (LandSat)", "pendigits": "Pendigits", "isolet": "Isolet"}
# Features of ShareBoost with products at most: fractions of the pool that the figure shows.
ROUNDS = {"landsat": 105, "pendigits": 60, "isolet": 30}
SHOWN = {
    "landsat": (5, 10, 20, 35, 70, 105),
    "pendigits": (5, 8, 15, 30, 45, 60),
    "isolet": (5, 10, 15, 20, 25, 30),
}
STUMPS, SHOWN_STUMPS = 100, (5, 10, 20, 40, 70, 100)
ALPHAS = (1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1)
FOLDS = 3
# Of λ_max: the alphas of the mixed norms. The first features enter within a few percent of it.
HALF, LEAST = 0.5, 0.005
SHARES = (*np.geomspace(1, HALF, 24, endpoint=False), *np.geomspace(HALF, LEAST, 21))
# Isolet has 191 270 products: a random part of so many chooses its ridge; and 600 000 thresholds.
MANY = 10_000
FOLDS_OF_ISOLET, THRESHOLDS_OF_ISOLET, TEST_SHARE = 2, 60, 1 / 3
# Constants of --quick.
QUICK = {
    "NAMES": {"pendigits": NAMES["pendigits"]}, "ROUNDS": {"pendigits": 12}, "STUMPS": 20,
    "ALPHAS": ALPHAS[:2], "FOLDS": 2, "SHARES": SHARES[::6],
}  # fmt: skip
SHARE, REFIT = "ShareBoost", ", refitted weights"
INF, TWO = "‖W‖ ∞,1", "‖W‖ 2,1"
STUMP, JOINT = "ShareBoost, stumps", "JointBoost"
PRODUCTS = (SHARE, INF, TWO, INF + REFIT, TWO + REFIT)


@dataclass(frozen=True)
class Curve:
    """Test error and seconds of training until so many features, ascending."""

    sizes: np.ndarray
    errors: np.ndarray
    seconds: np.ndarray

    def at(self, size: int) -> tuple[float, float]:
        """Return error and seconds of the largest classifier of at most ``size`` features."""
        index = int(np.searchsorted(self.sizes, size, side="right")) - 1
        if index < 0:
            return float("nan"), float("nan")
        return float(self.errors[index]), float(self.seconds[index])


def curve(points: list[tuple[int, float, float]]) -> Curve:
    """Return points (size, error, seconds) as a curve; of one size the last counts."""
    last = {size: (error, seconds) for size, error, seconds in points}
    sizes = np.array(sorted(last))
    values = np.array([last[s] for s in sizes]).reshape(-1, 2)
    return Curve(sizes, values[:, 0], values[:, 1])


def error(scores: np.ndarray, y: np.ndarray) -> float:
    """Return the fraction of examples whose class is another."""
    return float(np.mean(np.argmax(scores, axis=1) != y))


def path_errors(model: Any, features: np.ndarray, y: np.ndarray) -> list[tuple[int, float, float]]:
    """Return size, error and seconds after each round, of ``features`` (m, n_support)."""
    return [
        (s.n_features, error(features[:, : s.n_features] @ s.weights.T + s.intercept, y), s.seconds)
        for s in model.path_
    ]


Maker = Callable[[np.ndarray], tuple[Any, Columns]]


def of_products(X: np.ndarray) -> tuple[Any, Columns]:
    """Return inputs and all products of pairs, and their columns."""
    family = Products().fit(X)
    return family, ArrayColumns.from_family(family, X)


def of_some_products(X: np.ndarray) -> tuple[Any, Columns]:
    """Return a random part of them where they are many."""
    family = Products().fit(X)
    if family.n_features_ > MANY:
        drawn = np.random.default_rng(0).choice(family.n_features_, MANY, replace=False)
        family = family.take(np.sort(drawn))
    return family, ArrayColumns.from_family(family, X)


def of_stumps(thresholds: int | None) -> Maker:
    """Return the maker of stumps with so many thresholds per input, all for None."""

    def made(X: np.ndarray) -> tuple[Any, Columns]:
        family = Stumps(thresholds).fit(X)
        return family, StumpColumns(family, X)

    return made


def choose(X: np.ndarray, y: np.ndarray, maker: Maker, rounds: int, search: str) -> float:
    """Return the ridge λ of the least error, averaged over all rounds and folds."""
    folds = FOLDS_OF_ISOLET if X.shape[1] > 100 else FOLDS
    measured = dict.fromkeys(ALPHAS, 0.0)
    for part, out in StratifiedKFold(folds, shuffle=True, random_state=0).split(X, y):
        family, columns = maker(X[part])
        for alpha in measured:
            model = ShareBoost(rounds, alpha=alpha, search=search).fit(columns, y[part])
            points = path_errors(model, family.transform(X[out], model.support_), y[out])
            measured[alpha] += float(np.mean([e for _, e, _ in points])) / folds
    print("  chosen by cross-validation:", measured, flush=True)
    return min(measured, key=lambda s: measured[s])


def shareboost(
    made: tuple[Any, Columns], train: Any, test: Any, rounds: int, search: str, alpha: float
) -> Curve:
    """Return the curve of one run."""
    family, columns = made
    model = ShareBoost(rounds, alpha=alpha, search=search).fit(columns, train[1])
    return curve(path_errors(model, family.transform(test[0], model.support_), test[1]))


def mixed_norm(
    made: tuple[Any, Columns], train: Any, test: Any, most: int, q: float, alpha: float
) -> tuple[Curve, Curve]:
    """Return the curves of the whole path: of the norm's weights, and with refitted weights.

    Refitted weights of each support are those of ShareBoost's own objective.
    """
    family, columns = made
    learner = MixedNormClassifier(
        q, scaling="unit_variance", n_entering=100, refit_tol=1e-3, calibrate=False
    )
    begun, spent = time.perf_counter(), 0.0
    plain, refitted = [], []
    largest = learner.alpha_max(columns, train[1])
    alphas = [largest * share for share in SHARES]
    for model in regularization_path(learner, columns, train[1], alphas=alphas):
        spent += time.perf_counter() - begun
        size = len(model.support_)
        if size:
            tested = family.transform(test[0], model.support_)
            plain.append((size, error(tested @ model.coef_.T + model.intercept_, test[1]), spent))
            chosen = ArrayColumns(family.transform(train[0], model.support_))
            refit = ShareBoost(size, alpha=alpha).fit(chosen, train[1])
            tested = tested[:, refit.support_]
            refitted.append(
                (size, error(tested @ refit.coef_.T + refit.intercept_, test[1]), spent)
            )
            print(f"  q={q} λ={model.alpha:.3g}", *plain[-1], refitted[-1][1], flush=True)
        if size > most:
            break
        begun = time.perf_counter()
    return curve(plain), curve(refitted)


def jointboost(made: tuple[Any, Columns], train: Any, test: Any, stumps: int) -> Curve:
    """Return the curve of one run, which ends with so many different stumps or a little more."""
    family, columns = made
    # Its kernels are compiled before its seconds count, as those of the others were.
    JointBoost(1).fit(columns, train[1])
    model = JointBoost(2 * stumps).fit(columns, train[1])
    return curve(path_errors(model, family.transform(test[0], model.support_), test[1]))


def splits(X: np.ndarray, y: np.ndarray, train: np.ndarray | None, seeds: int) -> Iterator[Any]:
    """Yield training and test parts: the official ones, else a random one for each seed."""
    if train is not None:
        yield (X[train], y[train]), (X[~train], y[~train])
        return
    for seed in range(seeds):
        X_train, X_test, y_train, y_test = train_test_split(
            X, y, test_size=TEST_SHARE, stratify=y, random_state=seed
        )
        yield (X_train, y_train), (X_test, y_test)


def measure(options: Any, name: str, chosen: list[list[Any]]) -> Iterator[dict[str, list[Curve]]]:
    """Yield, after each split, the curves of every method; note the settings that were chosen."""
    X, y, official = load(options.data, name)
    rounds, stumps = ROUNDS[name], STUMPS
    measured: dict[str, list[Curve]] = {}
    stump_maker = of_stumps(THRESHOLDS_OF_ISOLET if name == "isolet" else None)
    for number, (train, test) in enumerate(splits(X, y, official, options.seeds)):
        print(NAMES[name], number, flush=True)
        alpha = choose(train[0], train[1], of_some_products, rounds, "exhaustive")
        made = of_products(train[0])
        curves = {SHARE: shareboost(made, train, test, rounds, "exhaustive", alpha)}
        for q, label in ((np.inf, INF), (2.0, TWO)):
            pair = mixed_norm(made, train, test, rounds, q, alpha)
            curves[label], curves[label + REFIT] = pair
        pool = made[1].shape[1]
        made = stump_maker(train[0])
        ridge = choose(train[0], train[1], stump_maker, stumps, "stumps")
        curves[STUMP] = shareboost(made, train, test, stumps, "stumps", ridge)
        curves[JOINT] = jointboost(made, train, test, stumps)
        split = "official" if official is not None else f"seed {number}"
        examples = f"{len(train[1])} / {len(test[1])}"
        pools = [f"{pool}", f"{made[1].shape[1]}"]
        chosen.append([NAMES[name], split, examples, *pools, f"{alpha:g}", f"{ridge:g}"])
        for label, curve_ in curves.items():
            measured.setdefault(label, []).append(curve_)
        yield measured


def cell(curves: list[Curve], size: int) -> str:
    """Return the error in percent at so many features at most, over all splits."""
    errors = [100 * c.at(size)[0] for c in curves]
    if not np.isfinite(errors).all():
        return "–"
    return spread(errors, 1)


def seconds(curves: list[Curve], size: int) -> str:
    """Return the seconds of training until so many features."""
    mean = float(np.mean([c.at(size)[1] for c in curves]))
    return f"{mean:.2g}" if np.isfinite(mean) else "–"


def tables(measured: dict[str, dict[str, list[Curve]]]) -> list[str]:
    """Return a heading and two tables for each data set."""
    parts = []
    for name, curves in measured.items():
        for labels, sizes in ((PRODUCTS, SHOWN[name]), ((STUMP, JOINT), SHOWN_STUMPS)):
            shown = sizes[1::2]
            header = [NAMES[name] + ", features", *map(str, shown), f"training, s, to {sizes[3]}"]
            rows = [
                [label, *(cell(curves[label], s) for s in shown), seconds(curves[label], sizes[3])]
                for label in labels
            ]
            parts.append(table(header, rows))
    return parts


def comparison(measured: dict[str, dict[str, list[Curve]]]) -> str:
    """Return at how many numbers of features ShareBoost's error is the lower one."""
    rivals = dict.fromkeys(PRODUCTS[1:], SHARE) | {JOINT: STUMP}
    lines = []
    for rival, ours in rivals.items():
        lower, shown = 0, 0
        for name, curves in measured.items():
            for size in SHOWN_STUMPS if ours == STUMP else SHOWN[name]:
                both = [np.mean([c.at(size)[0] for c in curves[label]]) for label in (ours, rival)]
                if np.isfinite(both).all():
                    shown, lower = shown + 1, lower + int(both[0] < both[1])
        lines.append(f"- {ours} against {rival}: lower in {lower} of {shown}.")
    return "\n".join(lines)


def draw(measured: dict[str, dict[str, list[Curve]]], path: Path) -> None:
    """Draw error against features, products above and stumps below."""
    plt = pyplot()

    figure, axes = plt.subplots(
        2, len(measured), figsize=(4.2 * len(measured), 7), constrained_layout=True, squeeze=False
    )
    for column, (name, curves) in enumerate(measured.items()):
        for row, labels in enumerate((PRODUCTS, (STUMP, JOINT))):
            axis, most = axes[row, column], ROUNDS[name] if row == 0 else STUMPS
            grid = np.arange(1, most + 1)
            for label in labels:
                style = "--" if REFIT in label else "-"
                values = np.array([[c.at(int(n))[0] for n in grid] for c in curves[label]])
                color = (
                    f"C{[SHARE, INF, TWO].index(label.removesuffix(REFIT))}"
                    if row == 0
                    else ("C0" if label == STUMP else "C3")
                )
                axis.plot(grid, 100 * values.mean(axis=0), style, color=color, label=label)
            axis.set(xlabel="features" if row == 0 else "stumps", ylabel="test error, %")
            axis.set_title(NAMES[name])
            # Errors of the first features would hide the rest.
            axis.set_ylim(0, 60)
    for row in range(2):
        axes[row, 0].legend(fontsize=8)
    figure.savefig(path, dpi=80)


def write(options: Any, measured: dict[str, Any], chosen: list[list[Any]]) -> None:
    """Write page and picture of the data sets that are complete."""
    options.out.mkdir(parents=True, exist_ok=True)
    draw(measured, options.out / "error_against_sparsity.png")
    header = ["data", "split", "train / test", "products", "stumps"]
    header += ["ridge λ, products", "ridge λ, stumps"]
    keep_runs(options.out, "error_against_sparsity", {"paths": measured, "chosen": chosen})
    write_page(
        options.out,
        "error_against_sparsity",
        n_alphas=len(SHARES),
        least=f"{LEAST:g}",
        folds=FOLDS,
        folds_of_isolet=FOLDS_OF_ISOLET,
        thresholds_of_isolet=THRESHOLDS_OF_ISOLET,
        jobs=options.jobs,
        tables="\n\n".join(tables(measured)),
        comparison=comparison(measured),
    )


def main() -> None:
    """Measure all data sets, and write the page after each split."""
    options = arguments(__doc__).parse_args()
    measured: dict[str, Any] = {}
    chosen: list[list[Any]] = []
    with thread_limit(options.jobs):
        for name in NAMES:
            for curves in measure(options, name, chosen):
                measured[name] = curves
                write(options, measured, chosen)


if __name__ == "__main__":
    main()
