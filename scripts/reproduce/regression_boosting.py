"""Regression on products of inputs: boosting with and without ℓ1, lasso and others.

The setting of Fig. 5 of J. Duchi, Y. Singer, "Boosting with structural sparsity", ICML 2009: Boston
housing and Ailerons, ε-insensitive loss, products of whatever has entered.

    python -m scripts.reproduce.regression_boosting --data DIR

Machines that are in the raw runs beside the page are not trained again; with another --out all are.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.linear_model import LassoCV

from scripts.reproduce.results import (
    arguments,
    commit,
    keep_runs,
    kept_runs,
    listed,
    pyplot,
    render,
    spread,
    table,
    write_page,
)
from scripts.reproduce.uci import load
from visionshare import Pixels, StructuralBoostingRegressor
from visionshare.columns import ArrayColumns
from visionshare.generators.monomials import ProductColumns
from visionshare.machine.resources import thread_limit
from visionshare.penalties import GroupNorm

NAMES = ("housing", "ailerons")
TRAINING = {"housing": 354, "ailerons": 1500}
TESTING = {"housing": 152, "ailerons": 3000}
FOLDS, EPS, ENTRIES = 2, 0.1, 1000
# Of the booster with ℓ1: rounds at most, and candidates that enter in each.
MOST_ROUNDS, ENTERING = 100, 10
# Rounds of the sequential booster; the paper made 1000 and more.
ROUNDS = {"housing": 1000, "ailerons": 300}
ALPHAS = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
# What a further factor of a product costs.
PRICES = (1.5, 2.0, 3.0, 5.0)
SQUARES = (1e-8, 1e-7, 1e-6, 1e-5, 0.0001, 0.001, 0.01, 0.1, 1.0, 10.0, 100.0)
# λ of the smooth ℓ1 norm, and its rounds; the paper made 3000.
SMOOTH_ALPHAS, SMOOTH_ROUNDS = (0.1, 1.0), 150
# Constants of --quick.
QUICK = {
    "ALPHAS": ALPHAS[4:6], "PRICES": PRICES[:2], "SQUARES": SQUARES[::5], "SMOOTH_ROUNDS": 10,
    "ROUNDS": dict.fromkeys(NAMES, 20), "TRAINING": dict.fromkeys(NAMES, 354),
}  # fmt: skip
# Features of the paper's booster with ℓ1, at most.
FEW = 35
CLASSICAL, SMOOTH, OURS, SPARSE, LASSO, SQUARED = (
    "AdaBoost, sequential, no penalty",
    "boosting, smooth ℓ1, sequential",
    "boosting, ℓ1, totally corrective",
    f"the same, with at most {FEW} features",
    "lasso, inputs alone",
    "ε-insensitive, λ/2‖w‖², inputs alone",
)


class Outcome(NamedTuple):
    """Root mean square errors after each step, the last one's features, what ended the steps.

    The residual of the conditions of optimality at the end is a fraction of λ, nan without one.
    """

    errors: np.ndarray
    features: int
    seconds: float
    choice: str
    ended: str
    residual: float = np.nan
    commit: str = ""


class Split(NamedTuple):
    """Training and test rows; inputs into [−1, 1], targets of mean 0 and variance 1 in training."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray


def split_of(X: np.ndarray, y: np.ndarray, train: np.ndarray, test: np.ndarray) -> Split:
    """Return rows brought to the scale of the training rows."""
    low, high = X[train].min(axis=0), X[train].max(axis=0)
    Z = np.clip(2 * (X - low) / np.where(high > low, high - low, 1) - 1, -1, 1)
    t = (y - y[train].mean()) / y[train].std()
    return Split(Z[train].astype(np.float32), t[train], Z[test].astype(np.float32), t[test])


def pool_of(X: np.ndarray, price: float = 1.0) -> ProductColumns:
    """Return the inputs, and products of what enters."""
    return ProductColumns(ArrayColumns(X), Pixels().fit(X), ENTRIES, price)


def monomials(X: np.ndarray, factors: list[np.ndarray]) -> np.ndarray:
    """Return products of the inputs, (m, n)."""
    return np.column_stack([np.ones((len(X), 0)), *(X[:, f].prod(axis=1) for f in factors)])


def error(predicted: np.ndarray, y: np.ndarray) -> float:
    """Return the root mean square error."""
    return float(np.sqrt(np.mean((predicted - y) ** 2)))


def errors_of_rounds(model: Any, columns: ProductColumns, data: Split) -> np.ndarray:
    """Return the test error after each round."""
    ids = np.unique(np.concatenate([step.candidates for step in model.history_]))
    tested = monomials(data.X_test, columns.monomials(ids))
    offset, scale = columns.scaling_of(ids)
    tested = (tested - offset) * scale
    errors = []
    for step in model.history_:
        positions = np.searchsorted(ids, step.candidates)
        scores = tested[:, positions] @ step.coef[0] + step.intercept[0]
        errors.append(error(scores, data.y_test))
    return np.array(errors)


def sequential(
    data: Split, rounds: int, penalty: str | SmoothNorm = "l1", alpha: float = 1e-6
) -> Outcome:
    """Return classical boosting: one feature's update per round, no penalty to speak of."""
    begun = time.perf_counter()
    columns = pool_of(data.X)
    model = StructuralBoostingRegressor(
        corrective=False,
        penalty=penalty,
        alpha=alpha,
        # The exponential bound knows the norms of the paper alone.
        solver="adaboost" if penalty == "l1" else "gradboost",
        eps=EPS,
        rounds=rounds,
        search="products",
        scaling="none",
    ).fit(columns, data.y)
    seconds = time.perf_counter() - begun
    errors = errors_of_rounds(model, columns, data)
    return Outcome(errors, len(model.support_), seconds, "", model.stopped_by_)


@dataclass(frozen=True)
class SmoothNorm:
    """Ω(W) = Σ ln(1 + e^w) + ln(1 + e^−w): no weight becomes zero, and boosting does not stop.

    O. Dekel, S. Shalev-Shwartz, Y. Singer, "Smooth ε-insensitive regression by loss
    symmetrization", JMLR 6, 2005.
    """

    q: ClassVar[float] = float("nan")

    def norms(self, W: np.ndarray, starts: np.ndarray) -> np.ndarray:
        """Return the sum of each group."""
        return np.add.reduceat((np.logaddexp(0, W) + np.logaddexp(0, -W)).sum(axis=1), starts)

    def dual_norms(self, G: np.ndarray, starts: np.ndarray) -> np.ndarray:
        """Return the size of each group's gradient."""
        return GroupNorm(2).norms(G, starts)

    def least(self, alpha: float) -> float:
        """Return 0: the norm keeps nothing out."""
        return 0.0

    def value(self, W: np.ndarray, starts: np.ndarray) -> float:
        """Return the sum over all weights."""
        return float((np.logaddexp(0, W) + np.logaddexp(0, -W)).sum())

    def prox(self, W: np.ndarray, starts: np.ndarray, step: float | np.ndarray) -> np.ndarray:
        """Return the roots of u + step·tanh(u/2) = w, which lie between 0 and w."""
        steps = np.broadcast_to(step, len(W))[:, None]
        low, high = np.minimum(W, 0.0), np.maximum(W, 0.0)
        for _ in range(60):
            middle = (low + high) / 2
            below = middle + steps * np.tanh(middle / 2) < W
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        return np.asarray((low + high) / 2)

    def distance(
        self, W: np.ndarray, G: np.ndarray, starts: np.ndarray, alpha: float
    ) -> np.ndarray:
        """Return the gradient of the objective."""
        return np.abs(G + alpha * np.tanh(W / 2))


def smooth(data: Split, alpha: float) -> Outcome:
    """Return boosting with the smooth ℓ1 norm: one feature's update per round."""
    return sequential(data, SMOOTH_ROUNDS, SmoothNorm(), alpha)


def boosted(data: Split, choice: tuple[float, float]) -> Outcome:
    """Return totally corrective boosting with ℓ1, by alpha and the price of a factor."""
    alpha, price = choice
    begun = time.perf_counter()
    columns = pool_of(data.X, price)
    model = StructuralBoostingRegressor(
        alpha=alpha,
        eps=EPS,
        scaling="none",
        rounds=MOST_ROUNDS,
        n_entering=ENTERING,
        search="products",
        solver="newton",
        refit_tol=1e-3,
        max_iter=300,
    ).fit(columns, data.y)
    seconds = time.perf_counter() - begun
    errors = errors_of_rounds(model, columns, data)
    n, residual = len(model.support_), model.history_[-1].gap
    return Outcome(errors, n, seconds, "", model.stopped_by_, residual)


def squared(data: Split, alpha: float) -> Outcome:
    """Return the ε-insensitive loss with half the squares, on the inputs."""
    begun = time.perf_counter()
    model = StructuralBoostingRegressor(
        penalty="l2^2", alpha=alpha, eps=EPS, n_entering=1000, solver="newton", max_iter=100_000
    ).fit(data.X, data.y)
    seconds = time.perf_counter() - begun
    errors = np.array([error(model.predict(data.X_test), data.y_test)])
    return Outcome(errors, len(model.support_), seconds, "", model.stopped_by_)


class Tried(NamedTuple):
    """A setting, and its mean error in cross-validation over training rows."""

    value: Any
    error: float


def validated(
    fit: Callable[[Split, Any], Outcome], values: Sequence[Any], data: Split
) -> list[Tried]:
    """Return what cross-validation sees of each value."""
    parts = np.array_split(np.random.default_rng(0).permutation(len(data.y)), FOLDS)
    rows = [(np.setdiff1d(np.arange(len(data.y)), part), part) for part in parts]
    tried = []
    for value in values:
        runs = [fit(split_of(data.X, data.y, *fold), value) for fold in rows]
        tried.append(Tried(value, float(np.mean([run.errors[-1] for run in runs]))))
    return tried


def least(tried: Sequence[Tried]) -> Any:
    """Return the value of the least error."""
    return min(tried, key=lambda one: one.error).value


def refitted(fit: Callable[[Split, Any], Outcome], value: Any, data: Split) -> Outcome:
    """Return the fit of a value to all training rows."""
    named = " × ".join(f"{part:g}" for part in np.atleast_1d(value))
    return fit(data, value)._replace(choice=named)


def chosen(fit: Callable[[Split, Any], Outcome], values: Sequence[Any], data: Split) -> Outcome:
    """Return the fit of the value that is best in cross-validation over training rows."""
    return refitted(fit, least(validated(fit, values, data)), data)


def sparse(data: Split) -> Outcome:
    """Return the best in cross-validation of the settings whose fits have few features."""
    few = []
    for price in PRICES:
        # The smaller λ, the more features.
        for alpha in reversed(ALPHAS):
            if boosted(data, (alpha, price)).features > FEW:
                break
            few.append((alpha, price))
    return chosen(boosted, few, data)


def lasso(data: Split) -> Outcome:
    """Return scikit-learn's lasso on the inputs, λ by cross-validation."""
    begun = time.perf_counter()
    scale = data.X.std(axis=0)
    scale = np.where(scale > 0, scale, 1)
    model = LassoCV(cv=FOLDS, max_iter=100000).fit(data.X / scale, data.y)
    seconds = time.perf_counter() - begun
    errors = np.array([error(model.predict(data.X_test / scale), data.y_test)])
    return Outcome(errors, int(np.sum(model.coef_ != 0)), seconds, f"{model.alpha_:.2g}", "optimal")


Measured = dict[tuple[str, str], list[Outcome]]


def kept(out: Path) -> Measured:
    """Return the outcomes of the raw runs beside the page; none without any."""
    measured: Measured = {}
    for key, runs in (kept_runs(out, "regression_boosting") or {}).items():
        name, machine = key.split(" | ")
        found = [{**run, "errors": np.array(run["errors"])} for run in runs]
        # JSON has no nan.
        found = [{**run, "residual": run["residual"] or np.nan} for run in found]
        measured[name, machine] = [Outcome(**run) for run in found]
    return measured


def measure(options: Any, measured: Measured) -> Iterator[Outcome]:
    """Add the outcomes that are missing; yield after each machine and split."""
    for seed, name in itertools.product(range(options.seeds), NAMES):
        missing = [m for m in MACHINES if len(measured.get((name, m), ())) <= seed]
        if not missing:
            continue
        X, y, _ = load(options.data, name)
        order = np.random.default_rng(seed).permutation(len(y))
        n = TRAINING[name]
        data = split_of(X, y, order[:n], order[n : n + TESTING[name]])
        for machine in missing:
            outcome = MACHINES[machine](data, ROUNDS[name])._replace(commit=commit())
            measured.setdefault((name, machine), []).append(outcome)
            figures = outcome.errors[-1], outcome.features, outcome.seconds, outcome.choice
            print(seed, name, machine, *figures, flush=True)
            yield outcome


# By the training rows and the rounds of AdaBoost.
MACHINES: dict[str, Callable[[Split, int], Outcome]] = {
    OURS: lambda data, _: chosen(boosted, list(itertools.product(ALPHAS, PRICES)), data),
    SPARSE: lambda data, _: sparse(data),
    SMOOTH: lambda data, _: chosen(smooth, SMOOTH_ALPHAS, data),
    CLASSICAL: sequential,
    LASSO: lambda data, _: lasso(data),
    SQUARED: lambda data, _: chosen(squared, SQUARES, data),
}


def draw(measured: Measured, path: Path) -> None:
    """Draw the sequential booster's error against its rounds, and where the others end."""
    plt = pyplot()

    figure, axes = plt.subplots(1, 2, figsize=(11, 4), constrained_layout=True)
    for axis, name in zip(axes, NAMES, strict=True):
        runs = [o.errors for o in measured[name, CLASSICAL]]
        n = min(map(len, runs))
        axis.plot(np.arange(n), np.mean([r[:n] for r in runs], axis=0), "C0", label=CLASSICAL)
        for split, outcome in enumerate(measured[name, OURS]):
            label = f"{OURS}, each split until it ends" if split == 0 else None
            rounds = np.arange(len(outcome.errors))
            axis.plot(rounds, outcome.errors, "C1", lw=1, marker="*", markevery=[-1], label=label)
        for color, machine in (("C2", LASSO), ("C3", SQUARED)):
            level = np.mean([o.errors[-1] for o in measured[name, machine]])
            axis.axhline(level, color=color, ls="--", lw=1, label=machine)
        axis.set(title=name, xlabel="rounds", ylabel="test error, standard deviations", ylim=(0, 1))
    axes[0].legend(fontsize=8)
    figure.savefig(path, dpi=80)


def ahead(measured: Measured, name: str) -> int:
    """Return in how many splits ours errs less than the last round of the sequential booster."""
    pairs = zip(measured[name, OURS], measured[name, CLASSICAL], strict=True)
    return sum(bool(ours.errors[-1] < other.errors[-1]) for ours, other in pairs)


def comparison(measured: Measured, name: str) -> str:
    """Return how ours compares with the sequential booster at its best and last round."""
    boosted, classical = measured[name, OURS], measured[name, CLASSICAL]
    ours = [float(o.errors[-1]) for o in boosted]
    best = [float(o.errors.min()) for o in classical]
    seconds = [np.mean([o.seconds for o in outcomes]) for outcomes in (classical, boosted)]
    return render(
        "regression_boosting/comparison",
        name=name,
        best=spread(best, 3),
        wins=sum(a < b for a, b in zip(ours, best, strict=True)),
        ahead=ahead(measured, name),
        n_splits=len(ours),
        ratio=f"{seconds[0] / seconds[1]:.1f}",
    )


def write(options: Any, measured: Measured) -> None:
    """Write page and picture."""
    options.out.mkdir(parents=True, exist_ok=True)
    draw(measured, options.out / "regression_boosting.png")
    rows = []
    for name in NAMES:
        for machine in MACHINES:
            outcomes = measured[name, machine]
            errors = spread([o.errors[-1] for o in outcomes], 3)
            sizes = spread([o.features for o in outcomes], 0)
            seconds = spread([o.seconds for o in outcomes], 1)
            choices = ", ".join(o.choice for o in outcomes).strip(", ") or "–"
            ends = ", ".join(dict.fromkeys(o.ended for o in outcomes))
            rows.append([f"{name}: {machine}", errors, sizes, ends, seconds, choices])
    header = ["data: machine", "test error", "features", "end", "s", "chosen in each split"]
    write_page(
        options.out,
        "regression_boosting",
        ahead=sum(ahead(measured, name) for name in NAMES),
        runs=sum(len(measured[name, OURS]) for name in NAMES),
        n_splits=len(measured["housing", OURS]),
        sizes="; ".join(f"{n} {TRAINING[n]} rows train, {TESTING[n]} test" for n in NAMES),
        folds=FOLDS,
        alphas=listed(ALPHAS),
        prices=listed(PRICES),
        most_rounds=MOST_ROUNDS,
        entering=ENTERING,
        squares=listed(SQUARES),
        eps=f"{EPS:g}",
        rounds_housing=ROUNDS["housing"],
        rounds_ailerons=ROUNDS["ailerons"],
        jobs=options.jobs,
        errors=table(header, rows),
        commits=", ".join(dict.fromkeys(o.commit for runs in measured.values() for o in runs)),
        smooth_alphas=listed(SMOOTH_ALPHAS),
        smooth_rounds=SMOOTH_ROUNDS,
        few=FEW,
        comparisons="\n\n".join(comparison(measured, name) for name in NAMES),
    )


def _plain(outcome: Outcome) -> dict[str, Any]:
    """Return an outcome as JSON has it."""
    return {**outcome._asdict(), "errors": [round(float(e), 6) for e in outcome.errors]}


def main() -> None:
    """Measure all machines on all splits, keeping each, and write the page."""
    options = arguments(__doc__).parse_args()
    with thread_limit(options.jobs):
        measured = kept(options.out)
        for _ in measure(options, measured):
            raw = {" | ".join(key): [_plain(o) for o in runs] for key, runs in measured.items()}
            keep_runs(options.out, "regression_boosting", raw)
    write(options, measured)


if __name__ == "__main__":
    main()
