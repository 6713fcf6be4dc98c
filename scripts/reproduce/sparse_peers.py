"""Few inputs, by learners of other libraries beside ShareBoost: error, inputs, seconds.

scikit-learn's forward selection, skglm's ℓ2,1 least squares and LightGBM on tables of the UCI
repository: the same examples, the same number of inputs, as many settings to choose from. What
sparse_peers.json of --out has is not done again.

    python -m scripts.reproduce.sparse_peers --data DIR
"""

from __future__ import annotations

import itertools
import json
import time
import warnings
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_selection import SequentialFeatureSelector
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, train_test_split

from scripts.reproduce.results import arguments, keep_runs, pyplot, spread, table, write_page
from scripts.reproduce.uci import load, standardized
from visionshare import ShareBoost
from visionshare.machine.resources import thread_limit

NAMES = ("landsat", "letter", "optdigits", "pendigits", "texture")
BUDGETS = (3, 5, 10)
TRAINING, TESTS, FOLDS = 1000, 2000, 3
ALPHAS = (1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2)
COSTS, LEAVES = (0.1, 1.0, 10.0, 100.0, 1e3, 1e4), (2, 3, 7, 15, 31, 63)
TREES = {"n_estimators": 100, "learning_rate": 0.1, "min_child_samples": 5, "verbose": -1}

# Inputs (m, d) and classes (m,).
Examples = tuple[np.ndarray, np.ndarray]
# Which inputs a fitted method reads, and its predictions.
Predictor = tuple[np.ndarray, Callable[[np.ndarray], np.ndarray]]


# Set, method, number of inputs and seed of a run.
Key = tuple[str, str, int, int]


class Run(NamedTuple):
    """One method on one set with one budget and seed."""

    table: str
    method: str
    budget: int
    seed: int
    setting: float
    inputs: int
    error: float
    seconds: float


def shareboost(train: Examples, budget: int, alpha: float) -> Predictor:
    """Return ShareBoost, one input a round."""
    model = ShareBoost(budget, alpha=alpha, criterion="orthogonal").fit(*train)
    return model.support_, model.predict


def forward(train: Examples, budget: int, cost: float) -> Predictor:
    """Return scikit-learn's forward selection by the accuracy of a logistic regression."""
    regression = LogisticRegression(C=cost, max_iter=300, tol=1e-3)
    chooser = SequentialFeatureSelector(regression, n_features_to_select=budget, cv=2)
    return _refitted(train, np.flatnonzero(chooser.fit(*train).get_support()), cost)


def multitask(train: Examples, budget: int, cost: float) -> Predictor:
    """Return the inputs at the start of skglm's ℓ2,1 path of one-hot targets, refitted."""
    from skglm import MultiTaskLasso

    X, y = train
    Y = np.eye(y.max() + 1)[y]
    largest = np.linalg.norm(X.T @ (Y - Y.mean(axis=0)), axis=1).max() / len(X)
    chosen = np.empty(0, np.int64)
    # Inputs that are nearly the same enter close to one another: a fine start of the path.
    steps = np.concatenate([np.geomspace(0.9999, 0.96, 30), np.geomspace(0.95, 0.005, 60)])
    for fraction in steps:
        model = MultiTaskLasso(alpha=fraction * largest).fit(X, Y)
        found = np.flatnonzero(np.linalg.norm(model.coef_, axis=0))
        if len(found) > budget:
            break
        chosen = found
    return _refitted(train, chosen, cost)


def trees(train: Examples, budget: int, leaves: float) -> Predictor:
    """Return LightGBM of the inputs that gained most when it had all of them."""
    from lightgbm import LGBMClassifier

    X, y = train
    settings = {**TREES, "num_leaves": int(leaves), "n_jobs": 1, "importance_type": "gain"}
    gains = LGBMClassifier(**settings).fit(X, y).feature_importances_
    chosen = np.sort(np.argsort(-gains, kind="stable")[:budget])
    model = LGBMClassifier(**settings).fit(X[:, chosen], y)
    # The booster itself knows no names of columns, and warns of none.
    booster = model.booster_
    return chosen, lambda Z: np.argmax(booster.predict(Z[:, chosen]), axis=1)


def _refitted(train: Examples, chosen: np.ndarray, cost: float) -> Predictor:
    """Return a logistic regression of some inputs."""
    X, y = train
    model = LogisticRegression(C=cost, max_iter=1000).fit(X[:, chosen], y)
    return chosen, lambda Z: model.predict(Z[:, chosen])


METHODS: dict[str, tuple[Callable[[Examples, int, float], Predictor], tuple[float, ...]]] = {
    "ShareBoost": (shareboost, ALPHAS),
    "forward selection (scikit-learn)": (forward, COSTS),
    "ℓ2,1 least squares (skglm), refitted": (multitask, COSTS),
    "boosted trees (LightGBM), by gain": (trees, LEAVES),
}
# Constants of --quick.
QUICK = {"METHODS": {name: (fit, tried[2:4]) for name, (fit, tried) in METHODS.items()}}


def error(predictor: Predictor, test: Examples) -> float:
    """Return the test error in percent."""
    return 100 * float(np.mean(predictor[1](test[0]) != test[1]))


def chosen(method: str, train: Examples, budget: int) -> float:
    """Return the setting of the least error by cross-validation."""
    fit, settings = METHODS[method]
    errors = dict.fromkeys(settings, 0.0)
    X, y = train
    for part, out in StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(X, y):
        for setting in settings:
            predictor = fit((X[part], y[part]), budget, setting)
            errors[setting] += error(predictor, (X[out], y[out])) / FOLDS
    return min(errors, key=lambda setting: errors[setting])


def split(data: Any, name: str, seed: int) -> tuple[Examples, Examples]:
    """Return training and test examples; inputs to variance 1 by the training examples."""
    X, y, official = load(data, name)
    rows = np.arange(len(y)) if official is None else np.flatnonzero(official)
    train, rest = train_test_split(rows, train_size=TRAINING, stratify=y[rows], random_state=seed)
    test = rest if official is None else np.flatnonzero(~official)
    test = np.random.default_rng(seed).permutation(test)[:TESTS]
    X = standardized(X, train)
    return (X[train], y[train]), (X[test], y[test])


def kept(file: Path) -> dict[Key, Run]:
    """Return the runs that are there."""
    if not file.is_file():
        return {}
    rows = json.loads(file.read_text(encoding="utf-8"))["runs"]
    return {run[:4]: run for run in (Run(**row) for row in rows)}


def missing_runs(options: Any, done: Collection[Key]) -> Iterator[Run]:
    """Yield every method on every set, budget and seed, but what is done."""
    names = options.sets[:1] if options.quick else options.sets
    for name, seed, budget in itertools.product(names, range(options.seeds), BUDGETS):
        train, test = split(options.data, name, seed)
        for method, (fit, _) in METHODS.items():
            if (name, method, budget, seed) in done:
                continue
            setting = chosen(method, train, budget)
            begun = time.process_time()
            predictor = fit(train, budget, setting)
            seconds = time.process_time() - begun
            wrong, n = error(predictor, test), len(predictor[0])
            run = Run(name, method, budget, seed, setting, n, wrong, seconds)
            print(*run, flush=True)
            yield run


def cells(found: list[Run]) -> dict[tuple[str, int], dict[str, tuple[float, float]]]:
    """Return mean error and mean seconds of each method, by set and number of inputs."""
    means: dict[tuple[str, int], dict[str, tuple[float, float]]] = {}
    for name, budget in dict.fromkeys((run.table, run.budget) for run in found):
        some = [run for run in found if (run.table, run.budget) == (name, budget)]
        means[name, budget] = {
            method: (
                float(np.mean([run.error for run in some if run.method == method])),
                float(np.mean([run.seconds for run in some if run.method == method])),
            )
            for method in METHODS
        }
    return means


def finding(found: list[Run]) -> tuple[str, str]:
    """Return how often ShareBoost errs less than each other method, and how many times as fast."""
    means = list(cells(found).values())
    ours, *others = METHODS
    ahead, faster = [], []
    for other in others:
        less = sum(cell[ours][0] < cell[other][0] for cell in means)
        points = np.mean([cell[other][0] - cell[ours][0] for cell in means])
        times = np.exp(np.mean([np.log(cell[other][1] / cell[ours][1]) for cell in means]))
        ahead.append(f"{other} in {less} of {len(means)} ({points:+.1f} points on average)")
        faster.append(f"{times:.1f}")
    return ", ".join(ahead), ", ".join(faster)


def draw(found: list[Run], file: Any) -> None:
    """Draw test error against the number of inputs, a set a panel."""
    means = cells(found)
    names = list(dict.fromkeys(name for name, _ in means))
    plt = pyplot()
    figure, axes = plt.subplots(
        1, len(names), figsize=(2.6 * len(names), 3.2), squeeze=False, layout="constrained"
    )
    for axis, name in zip(axes[0], names, strict=True):
        for method in METHODS:
            points = [(budget, means[name, budget][method][0]) for budget in BUDGETS]
            axis.plot(*zip(*points, strict=True), marker="o", label=method)
        axis.set(title=name, xlabel="inputs", ylim=(0, None), xticks=BUDGETS)
    axes[0, 0].set_ylabel("test error in %")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    figure.savefig(file, dpi=110)
    plt.close(figure)


def errors(found: list[Run], budget: int) -> str:
    """Return a table of errors and seconds: sets a row, methods a column."""
    rows = []
    for name in dict.fromkeys(run.table for run in found):
        columns = []
        for method in METHODS:
            some = [r for r in found if (r.table, r.method, r.budget) == (name, method, budget)]
            seconds = np.mean([r.seconds for r in some])
            few = np.mean([r.inputs for r in some])
            read = "" if few == budget else f"; {few:.1f} inputs"
            columns.append(f"{spread([r.error for r in some], 1)} ({seconds:.2f} s{read})")
        rows.append([name, *columns])
    return table(["set", *METHODS], rows)


def main() -> None:
    """Measure all, write page and runs."""
    parser = arguments(__doc__)
    parser.add_argument("--sets", nargs="+", choices=NAMES, default=list(NAMES), help="all")
    parser.set_defaults(seeds=3)
    options = parser.parse_args()
    done = kept(options.out / "sparse_peers.json")
    with thread_limit(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for run in missing_runs(options, set(done)):
            done[run[:4]] = run
            keep_runs(options.out, "sparse_peers", list(done.values()))
    found = [run for run in done.values() if run.table in options.sets]
    draw(found, options.out / "sparse_peers.png")
    ahead, faster = finding(found)
    write_page(
        options.out,
        "sparse_peers",
        ahead=ahead,
        faster=faster,
        n_train=TRAINING,
        n_tests=TESTS,
        folds=FOLDS,
        last_seed=options.seeds - 1,
        alphas=", ".join(f"{a:g}" for a in ALPHAS),
        costs=", ".join(f"{c:g}" for c in COSTS),
        leaves=", ".join(map(str, LEAVES)),
        n_trees=TREES["n_estimators"],
        three=errors(found, BUDGETS[0]),
        ten=errors(found, BUDGETS[2]),
    )


if __name__ == "__main__":
    main()
