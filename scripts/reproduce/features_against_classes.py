"""How many features a number of classes needs: ShareBoost against one class at a time.

Figure 2 of S. Shalev-Shwartz, Y. Wexler, A. Shashua, "ShareBoost: Efficient multiclass learning
with feature sharing", NIPS 2011, on digits and capitals of computer fonts (Chars74K).

    python -m scripts.reproduce.features_against_classes --data DIR
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedKFold

from scripts.reproduce.results import (
    arguments,
    deviation,
    keep_runs,
    pyplot,
    spread,
    stopwatch,
    table,
    write_page,
)  # fmt: skip
from visionshare import OneAgainstRest, PatchTemplates, ShareBoost
from visionshare.columns import ArrayColumns
from visionshare.machine.resources import thread_limit

FILE = "englishfnt_34_gray28.npz"
COUNTS = (2, 4, 8, 12, 17, 22, 28, 34)
TARGETS = (0.20, 0.08)
TRAINED, TESTED = 150, 200
TEMPLATES = 60
ALPHAS = (1e-5, 1e-4, 1e-3, 1e-2)
CHOSEN_ON, FOLDS = 17, 3
SHARED, APART = "ShareBoost", "one against the rest"
# Constants of --quick.
QUICK = {"COUNTS": (2, 4, 8), "TARGETS": (0.2, 0.15), "TRAINED": 60, "TEMPLATES": 20,
         "ALPHAS": ALPHAS[1:3], "CHOSEN_ON": 8}  # fmt: skip
# Features together, and features of each class.
ROUNDS = {SHARED: 60, APART: 20}
ROUNDS_OF_CHOICE = {SHARED: 30, APART: 8}


@dataclass(frozen=True)
class Part:
    """Features (m, d) and classes (m,) in a seed's order: the first k are those below k."""

    X: np.ndarray
    y: np.ndarray

    def first(self, k: int) -> Part:
        """Return the examples of the first k classes."""
        return Part(self.X[self.y < k], self.y[self.y < k])


def read(data: Path) -> tuple[np.ndarray, np.ndarray]:
    """Return images and classes from 0."""
    with np.load(data / "chars74k" / FILE) as arrays:
        return arrays["images"], np.unique(arrays["sample"], return_inverse=True)[1]


def rows_of(y: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return training rows, test rows and each class's position in the seed's order.

    The test rows are the same for every seed; the training rows are drawn among the others.
    """
    fixed, rng = np.random.default_rng(0), np.random.default_rng(seed)
    train, test = [], []
    for c in range(y.max() + 1):
        rows = fixed.permutation(np.flatnonzero(y == c))
        test.append(rows[:TESTED])
        train.append(rng.permutation(rows[TESTED:])[:TRAINED])
    return np.concatenate(train), np.concatenate(test), rng.permutation(y.max() + 1)


def made(images: np.ndarray, y: np.ndarray, seed: int) -> tuple[Part, Part, str]:
    """Return training and test part as features of one pool, and what the pool is."""
    train, test, position = rows_of(y, seed)
    family = PatchTemplates(n_templates=TEMPLATES, random_state=seed).fit(images[train])
    parts = [Part(family.transform(images[rows]), position[y[rows]]) for rows in (train, test)]
    return parts[0], parts[1], f"{family.n_features_}"


def learner(name: str, rounds: int, alpha: float) -> Any:
    """Return one of the two learners."""
    if name == SHARED:
        return ShareBoost(rounds, alpha=alpha)
    return OneAgainstRest(rounds, ShareBoost(alpha=alpha))


def path(model: Any, train: Part, test: Part) -> list[tuple[int, float]]:
    """Return features and test error after each round."""
    model.fit(ArrayColumns(train.X), train.y)
    features = test.X[:, model.support_]
    points = []
    for step in model.path_:
        n = step.n_features
        guess = np.argmax(features[:, :n] @ step.weights.T + step.intercept, axis=1)
        points.append((n, float(np.mean(guess != test.y))))
    return points


def choose(name: str, train: Part) -> float:
    """Return the ridge λ of the least error, averaged over rounds and folds."""
    part, errors = train.first(CHOSEN_ON), dict.fromkeys(ALPHAS, 0.0)
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=0)
    for fold in folds.split(part.X, part.y):
        for alpha in ALPHAS:
            model = learner(name, ROUNDS_OF_CHOICE[name], alpha)
            points = path(model, *(Part(part.X[rows], part.y[rows]) for rows in fold))
            errors[alpha] += float(np.mean([error for _, error in points])) / FOLDS
    print(name, "chosen by cross-validation:", errors, flush=True)
    return min(errors, key=lambda alpha: errors[alpha])


def needed(points: list[tuple[int, float]], target: float) -> float:
    """Return the features of the first round that reaches an error, infinity if none does."""
    return next((float(n) for n, error in points if error <= target), np.inf)


Needs = dict[tuple[str, float, int], list[float]]


def measure(
    images: np.ndarray, y: np.ndarray, seed: int, alphas: dict[str, float], measured: Needs
) -> str:
    """Add what both learners need on one seed; return what the pool is."""
    train, test, pool = made(images, y, seed)
    if not alphas:
        alphas.update({name: choose(name, train) for name in ROUNDS})
    for k in COUNTS:
        for name, rounds in ROUNDS.items():
            with stopwatch() as seconds:
                points = path(learner(name, rounds, alphas[name]), train.first(k), test.first(k))
            needs = [needed(points, target) for target in TARGETS]
            for target, n in zip(TARGETS, needs, strict=True):
                measured.setdefault((name, target, k), []).append(n)
            print(seed, k, name, needs, points[-1], f"{seconds[0]:.0f} s", flush=True)
    return pool


def cell(values: list[float]) -> str:
    """Return mean ± deviation, or how often the error was not reached."""
    missed = int(np.isinf(values).sum())
    return spread(values, 1) if not missed else f"not reached ({missed} of {len(values)})"


def draw(measured: Needs, path: Path) -> None:
    """Draw features against classes; where a seed does not reach the error there is no point."""
    plt = pyplot()

    figure, axis = plt.subplots(figsize=(6, 4.2), constrained_layout=True)
    for name, style in ((SHARED, "o--"), (APART, "s-")):
        for color, target in zip(("C0", "C2"), TARGETS, strict=True):
            needs = [(k, measured[name, target, k]) for k in COUNTS]
            reached = [(k, v) for k, v in needs if np.isfinite(v).all()]
            x, means = [k for k, _ in reached], [np.mean(v) for _, v in reached]
            deviations, label = [deviation(v) for _, v in reached], f"{name}, {target:.0%}"
            axis.errorbar(x, means, deviations, fmt=style, color=color, label=label)
    axis.set(xlabel="classes", ylabel="features", title="features that reach a test error")
    axis.legend()
    figure.savefig(path, dpi=80)


def write(options: Any, measured: Needs, alphas: dict[str, float], pool: str) -> None:
    """Write page and picture of the seeds that are complete."""
    options.out.mkdir(parents=True, exist_ok=True)
    draw(measured, options.out / "features_against_classes.png")
    header = ["classes", *(f"{name}, {t:.0%}" for t in TARGETS for name in ROUNDS)]
    rows = [[k, *(cell(measured[name, t, k]) for t in TARGETS for name in ROUNDS)] for k in COUNTS]
    keep_runs(options.out, "features_against_classes", {"needs": measured, "alphas": alphas})
    write_page(
        options.out,
        "features_against_classes",
        n_classes=COUNTS[-1],
        n_train=TRAINED,
        n_test=TESTED,
        last_seed=len(next(iter(measured.values()))) - 1,
        n_templates=TEMPLATES,
        pool=pool,
        rounds_shared=ROUNDS[SHARED],
        rounds_apart=ROUNDS[APART],
        folds=FOLDS,
        chosen_on=CHOSEN_ON,
        alpha_shared=f"{alphas[SHARED]:g}",
        alpha_apart=f"{alphas[APART]:g}",
        jobs=options.jobs,
        features=table(header, rows),
    )


def main() -> None:
    """Measure all seeds, and write the page after each."""
    options = arguments(__doc__).parse_args()
    images, y = read(options.data)
    measured: Needs = {}
    alphas: dict[str, float] = {}
    with thread_limit(options.jobs):
        for seed in range(options.seeds):
            pool = measure(images, y, seed, alphas, measured)
            write(options, measured, alphas, pool)


if __name__ == "__main__":
    main()
