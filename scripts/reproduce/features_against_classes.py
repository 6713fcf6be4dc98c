"""How many features a number of classes needs: ShareBoost against one class at a time.

Figure 2 of S. Shalev-Shwartz, Y. Wexler, A. Shashua, "ShareBoost: Efficient multiclass learning
with feature sharing", NIPS 2011, on digits and capitals: fonts and photographs (Chars74K).

    python -m scripts.reproduce.features_against_classes --data DIR

Seeds of a set that are in the raw runs beside the page are not run again; with another --out all
are.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.model_selection import StratifiedKFold

from scripts.reproduce.results import (
    arguments,
    commit,
    deviation,
    keep_runs,
    kept_runs,
    pyplot,
    render,
    spread,
    stopwatch,
    table,
    write_page,
)  # fmt: skip
from visionshare import OneAgainstRest, PatchTemplates, ShareBoost
from visionshare.columns import ArrayColumns
from visionshare.machine.resources import thread_limit


class Setting(NamedTuple):
    """Images of digits and capitals; numbers of classes, targets, images of a class at most."""

    name: str
    title: str
    file: str
    counts: tuple[int, ...]
    targets: tuple[float, float]
    trained: int
    tested: int
    # Pixels of a side that become one.
    shrunk: int = 1


# Of photographs some classes have 32 alone.
SETTINGS = (
    Setting(
        "fonts", "Computer fonts", "englishfnt_34_gray28.npz",
        (2, 4, 8, 12, 17, 22, 28, 34), (0.20, 0.08), 150, 200,
    ),
    Setting(
        "photographs", "Photographs", "englishimg_good36_gray64.npz",
        (2, 4, 8, 12, 18, 24, 30, 36), (0.40, 0.25), 100, 50, shrunk=2,
    ),
)  # fmt: skip
TEMPLATES = 60
ALPHAS = (1e-5, 1e-4, 1e-3, 1e-2)
CHOSEN_ON, FOLDS = 17, 3
SHARED, APART = "ShareBoost", "one against the rest"
# Constants of --quick.
QUICK = {
    "SETTINGS": [s._replace(counts=s.counts[:3], trained=40) for s in SETTINGS],
    "TEMPLATES": 20, "ALPHAS": ALPHAS[1:3], "CHOSEN_ON": 8,
}  # fmt: skip
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


def read(data: Path, setting: Setting) -> tuple[np.ndarray, np.ndarray]:
    """Return images and classes from 0."""
    with np.load(data / "chars74k" / setting.file) as arrays:
        images, y = arrays["images"], np.unique(arrays["sample"], return_inverse=True)[1]
    m, side, n = len(images), images.shape[1] // setting.shrunk, setting.shrunk
    means = images.reshape(m, side, n, side, n).mean(axis=(2, 4))
    return np.rint(means).astype(np.uint8), y


def rows_of(
    y: np.ndarray, setting: Setting, seed: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return training rows, test rows and each class's position in the seed's order.

    The test rows, a third of a class at most, are the same for every seed; the training rows are
    drawn among the others.
    """
    fixed, rng = np.random.default_rng(0), np.random.default_rng(seed)
    train, test = [], []
    for c in range(y.max() + 1):
        rows = fixed.permutation(np.flatnonzero(y == c))
        n_test = min(setting.tested, len(rows) // 3)
        test.append(rows[:n_test])
        train.append(rng.permutation(rows[n_test:])[: setting.trained])
    return np.concatenate(train), np.concatenate(test), rng.permutation(y.max() + 1)


def made(images: np.ndarray, y: np.ndarray, setting: Setting, seed: int) -> tuple[Part, Part, int]:
    """Return training and test part as features of one pool, and how many these are."""
    train, test, position = rows_of(y, setting, seed)
    family = PatchTemplates(n_templates=TEMPLATES, random_state=seed).fit(images[train])
    parts = [Part(family.transform(images[rows]), position[y[rows]]) for rows in (train, test)]
    return parts[0], parts[1], family.n_features_


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


class Measured(NamedTuple):
    """What both learners need, by learner, target and classes, a value a seed; their ridges."""

    needs: dict[str, list[float]]
    alphas: dict[str, float]
    pool: int
    commit: str

    def at(self, name: str, target: float, k: int) -> np.ndarray:
        """Return the features that a learner needs; infinity where it does not reach an error."""
        return np.array(self.needs[_key(name, target, k)], np.float64)


def _key(name: str, target: float, k: int) -> str:
    return f"{name} | {target} | {k}"


def measure(
    data: Path, setting: Setting, seeds: int, before: Measured | None
) -> Iterator[Measured]:
    """Yield what was needed so far, after each seed that is missing; at least once."""
    done = 0 if before is None else len(next(iter(before.needs.values())))
    if before is not None:
        yield before
    images, y = read(data, setting)
    for seed in range(done, seeds):
        train, test, pool = made(images, y, setting, seed)
        if before is None:
            alphas = {name: choose(name, train) for name in ROUNDS}
            before = Measured({}, alphas, pool, commit())
        for k, (name, rounds) in itertools.product(setting.counts, ROUNDS.items()):
            with stopwatch() as seconds:
                model = learner(name, rounds, before.alphas[name])
                points = path(model, train.first(k), test.first(k))
            needs = [needed(points, target) for target in setting.targets]
            for target, n in zip(setting.targets, needs, strict=True):
                before.needs.setdefault(_key(name, target, k), []).append(n)
            print(seed, k, name, needs, points[-1], f"{seconds[0]:.0f} s", flush=True)
        yield before


def cell(values: np.ndarray) -> str:
    """Return mean ± deviation, or how often the error was not reached."""
    missed = int(np.isinf(values).sum())
    return spread(values, 1) if not missed else f"not reached ({missed} of {len(values)})"


def draw(measured: dict[str, Measured], path: Path) -> None:
    """Draw features against classes; where a seed does not reach the error there is no point."""
    plt = pyplot()

    figure, axes = plt.subplots(
        1, len(measured), figsize=(5.5 * len(measured), 4), constrained_layout=True, squeeze=False
    )
    for axis, setting in zip(axes[0], SETTINGS, strict=False):
        for name, style in ((SHARED, "o--"), (APART, "s-")):
            for color, target in zip(("C0", "C2"), setting.targets, strict=True):
                needs = {k: measured[setting.name].at(name, target, k) for k in setting.counts}
                reached = {k: values for k, values in needs.items() if np.isfinite(values).all()}
                means = [values.mean() for values in reached.values()]
                deviations = [deviation(values) for values in reached.values()]
                label = f"{name}, {target:.0%}"
                axis.errorbar(list(reached), means, deviations, fmt=style, color=color, label=label)
        axis.set(xlabel="classes", ylabel="features that reach a test error", title=setting.title)
        axis.legend()
    figure.savefig(path, dpi=80)
    plt.close(figure)


def described(setting: Setting, measured: Measured) -> str:
    """Return the part of the page about a set."""
    header = ["classes", *(f"{name}, {t:.0%}" for t in setting.targets for name in ROUNDS)]
    rows = [
        [k, *(cell(measured.at(name, t, k)) for t in setting.targets for name in ROUNDS)]
        for k in dict.fromkeys((*setting.counts[1:4:2], *setting.counts[-2:]))
    ]
    return render(
        "features_against_classes/set",
        title=setting.title,
        features=table(header, rows),
        n_classes=setting.counts[-1],
        n_train=setting.trained,
        n_test=setting.tested,
        pool=f"{measured.pool:,}",
        last_seed=len(next(iter(measured.needs.values()))) - 1,
        alpha_shared=f"{measured.alphas[SHARED]:g}",
        alpha_apart=f"{measured.alphas[APART]:g}",
        commit=measured.commit,
    )


def write(options: Any, measured: dict[str, Measured]) -> None:
    """Write page and picture of the seeds that are complete."""
    options.out.mkdir(parents=True, exist_ok=True)
    draw(measured, options.out / "features_against_classes.png")
    keep_runs(options.out, "features_against_classes", measured)
    write_page(
        options.out,
        "features_against_classes",
        sets="\n\n".join(
            described(setting, measured[setting.name])
            for setting in SETTINGS
            if setting.name in measured
        ),
        n_templates=TEMPLATES,
        rounds_shared=ROUNDS[SHARED],
        rounds_apart=ROUNDS[APART],
        folds=FOLDS,
        chosen_on=CHOSEN_ON,
        jobs=options.jobs,
    )


def kept(out: Path) -> dict[str, Measured]:
    """Return what the raw runs beside the page have; JSON has no infinity."""
    runs = kept_runs(out, "features_against_classes") or {}
    for one in runs.values():
        for values in one["needs"].values():
            values[:] = [np.inf if value is None else value for value in values]
    return {name: Measured(**one) for name, one in runs.items()}


def main() -> None:
    """Measure the seeds that are missing, and write the page after each."""
    options = arguments(__doc__).parse_args()
    measured = kept(options.out)
    with thread_limit(options.jobs):
        for setting in SETTINGS:
            before = measured.get(setting.name)
            for found in measure(options.data, setting, options.seeds, before):
                measured[setting.name] = found
                write(options, measured)


if __name__ == "__main__":
    main()
