"""Three Brodatz textures from 16×16 patches: learned, selected and fixed Gabor filters.

Rakotomamonjy, Flamary and Yger, "Learning with infinitely many features", §6.2 and figure 2.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from scripts.reproduce import brodatz_page
from scripts.reproduce.results import arguments
from visionshare import GaborBank, GroupFeatureClassifier, ShareBoost
from visionshare.columns import ArrayColumns, Columns
from visionshare.files.durable import write_text
from visionshare.generators.draws import Draws
from visionshare.store import DrawnColumns

_logger = logging.getLogger(__name__)

SETS = {
    "one digitization": (
        ("D9", "usc-sipi/1.1.01.tiff"),
        ("D29", "usc-sipi/1.1.07.tiff"),
        ("D92", "usc-sipi/1.1.11.tiff"),
    ),
    "two digitizations": (
        ("D2", "randen/D2.png"),
        ("D29", "usc-sipi/1.1.07.tiff"),
        ("D92", "usc-sipi/1.1.11.tiff"),
    ),
}
SIDE = 16
TEST = 5000
COUNTS = (10, 20, 40, 81)
ALPHAS = (0.0125, 0.05, 0.2, 1.0)
MOST = 243
POOL = 3000
DRAWS = 59
MANY = 500
FOLDS = 3
# Patches of a class that choose λ, and those of the main tables.
CHOSEN_ON, PATCHES = 100, 500
# Patches of a class in further runs, and seeds of so many; those of the first set alone.
SIZES, MOST_PATCHES = {100: 5, 2000: 5}, {10_000: 1}
# Duality gaps, as fractions of the objective, that end further runs; one seed of the first set. At
# λ = 0.05, the best by a tenth of a point, no gap is as small before other limits end the rounds.
GAPS, GAPS_ALPHA = (0.1, 0.0), 0.2
# Values of each parameter of further grids.
GRIDS = (2, 4, 5)
# Constants of --quick.
QUICK = {
    "TEST": 500, "COUNTS": (10, 20), "ALPHAS": ALPHAS[1:3], "MOST": 40, "POOL": 300,
    "CHOSEN_ON": 60, "PATCHES": 200, "SIZES": {}, "MOST_PATCHES": {}, "GAPS": (0.1,),
    "GRIDS": (2,),
}  # fmt: skip
# The refit is ten times as exact as what a violator has to exceed: otherwise filters that left
# come back.
LEARNER: dict[str, Any] = {
    "solver": "newton",
    "refit_tol": 1e-3,
    "tol": 1e-2,
    "max_iter": 1000,
    "patience": 3,
}


@dataclass(frozen=True)
class Task:
    """Patches (m, 16, 16) that train and test, and their textures' numbers."""

    train: np.ndarray
    y: np.ndarray
    test: np.ndarray
    y_test: np.ndarray


@dataclass(frozen=True)
class Run:
    """A learner's rounds: features, accuracy on the test part in percent, seconds so far."""

    counts: np.ndarray
    accuracy: np.ndarray
    seconds: np.ndarray

    def at(self, count: int) -> float:
        """Return the accuracy after the last round with at most so many features."""
        return float(self.accuracy[np.flatnonzero(self.counts <= count)[-1]])

    def time_to(self, accuracy: float) -> float:
        """Return the seconds at which an accuracy is first reached; infinity where it is not."""
        reached = np.flatnonzero(self.accuracy >= accuracy)
        return float(self.seconds[reached[0]]) if len(reached) else np.inf


def plate(path: Path) -> np.ndarray:
    """Return a plate with mean 0 and variance 1 on its left half, float32."""
    gray = np.asarray(Image.open(path), np.float32)
    left = gray[:, : gray.shape[1] // 2]
    return (gray - left.mean()) / left.std()


def patches(image: np.ndarray, first: int, last: int, n: int, rng: Any) -> np.ndarray:
    """Return n patches drawn evenly from the columns first … last − 1 of a plate."""
    y = rng.integers(0, image.shape[0] - SIDE + 1, n)
    x = rng.integers(first, last - SIDE + 1, n)
    return np.lib.stride_tricks.sliding_window_view(image, (SIDE, SIDE))[y, x]


def task(plates: Sequence[np.ndarray], n: int, seed: int) -> Task:
    """Return n training patches per class from left halves, test patches from right halves."""
    rng = np.random.default_rng(seed)
    halves = [(p, p.shape[1] // 2) for p in plates]
    train = [patches(p, 0, half, n, rng) for p, half in halves]
    test = [patches(p, half, p.shape[1], TEST, rng) for p, half in halves]
    y, y_test = (np.repeat(np.arange(len(plates)), k) for k in (n, TEST))
    return Task(np.concatenate(train), y, np.concatenate(test), y_test)


def folds(plates: Sequence[np.ndarray], n: int) -> list[Task]:
    """Return tasks within the left halves: each third of the columns is the validation part once.

    Patches drawn at random would overlap between training and validation.
    """
    tasks = []
    for fold in range(FOLDS):
        rng = np.random.default_rng([n, fold])
        blocks = [
            [
                patches(p, b * p.shape[1] // 2 // FOLDS, (b + 1) * p.shape[1] // 2 // FOLDS, n, rng)
                for b in range(FOLDS)
            ]
            for p in plates
        ]
        train = [b for thirds in blocks for i, b in enumerate(thirds) if i != fold]
        test = [thirds[fold] for thirds in blocks]
        classes = np.arange(len(plates))
        y, y_test = np.repeat(classes, (FOLDS - 1) * n), np.repeat(classes, n)
        tasks.append(Task(np.concatenate(train), y, np.concatenate(test), y_test))
    return tasks


def rounds_of(
    model: GroupFeatureClassifier, columns: Columns, family: Any, data: Task, before: float
) -> Run:
    """Return the learner's rounds; ``before`` is the time spent on features in advance."""
    history = model.history_
    ids = np.unique(np.concatenate([h.candidates for h in history])).astype(np.int64)
    features = family.take(ids).transform(data.test)
    right = []
    for h in history:
        coef, intercept = columns.unscaled(h.coef, h.intercept, h.candidates)
        scores = features[:, np.searchsorted(ids, h.candidates)] @ coef.T + intercept
        right.append(100 * np.mean(np.argmax(scores, axis=1) == data.y_test))
    seconds = before + model.busy_ * np.cumsum([h.seconds for h in history])
    return Run(np.array([len(h.candidates) for h in history]), np.array(right), seconds)


def _fitted(columns: Columns, y: np.ndarray, **settings: Any) -> Any:
    """Fit; ``busy_`` is the fraction of the time that this process had a processor."""
    wall, busy = time.perf_counter(), time.process_time()
    model = GroupFeatureClassifier(**LEARNER, **settings).fit(columns, y)
    wall, busy = time.perf_counter() - wall, time.process_time() - busy
    model.busy_ = min(1.0, busy / wall)
    return model


def learned(
    data: Task,
    alpha: float,
    seed: int = 0,
    n: int = DRAWS,
    most: int = max(COUNTS),
    entering: int = 1,
    search: dict[str, Any] | None = None,
    gap_tol: float = 0.0,
    **bank: Any,
) -> Run:
    """Learn the filters' parameters: n fresh draws per round, up to ``most`` features.

    In a round so many of the draws enter; ``search`` may screen the draws and move the best, and a
    duality gap of ``gap_tol`` ends the rounds.
    """
    family = Draws(GaborBank(**bank).fit(data.train), n, 5 * most, seed)
    columns = DrawnColumns(family, data.train)
    model = _fitted(
        columns,
        data.y,
        alpha=alpha,
        search="sampled",
        search_options=search,
        n_entering=entering,
        gap_tol=gap_tol,
        max_features=most,
        rounds=3 * most // 2,
    )
    # The draws as they are after their steps.
    return rounds_of(model, columns, columns.draws, data, 0.0)


def _evaluated(family: GaborBank, data: Task) -> tuple[ArrayColumns, float]:
    begun = time.process_time()
    columns = ArrayColumns.from_family(family, data.train)
    return columns, time.process_time() - begun


def fixed(data: Task, alpha: float, seed: int = 0, values: int = 3) -> Run:
    """Use a grid of parameters; the penalty may leave filters out, no others are tried."""
    family = GaborBank(values=values).fit(data.train)
    columns, before = _evaluated(family, data)
    model = _fitted(columns, data.y, alpha=alpha, rounds=2 * family.n_features_)
    return rounds_of(model, columns, family, data, before)


def selected(
    data: Task, alpha: float, seed: int = 0, most: int = max(COUNTS), gap_tol: float = 0.0
) -> Run:
    """Evaluate many drawn filters in advance and generate columns among them."""
    family = GaborBank(n_filters=POOL, random_state=seed + 1000).fit(data.train)
    columns, before = _evaluated(family, data)
    limits = {"max_features": most, "rounds": 3 * most // 2, "gap_tol": gap_tol}
    model = _fitted(columns, data.y, alpha=alpha, **limits)
    return rounds_of(model, columns, family, data, before)


def one_pass(data: Task, alpha: float, seed: int = 0, **bank: Any) -> Run:
    """Evaluate the same filters and solve the problem of all of them at once, as the paper did."""
    from visionshare.learners.task_targets import class_targets
    from visionshare.losses import make_task_loss
    from visionshare.penalties import GroupNorm
    from visionshare.solvers import Admm, TaskProblem

    family = GaborBank(n_filters=POOL, random_state=seed + 1000, **bank).fit(data.train)
    columns, before = _evaluated(family, data)
    begun = time.process_time()
    columns.fit_scaling("unit_norm")
    targets = class_targets(data.y, np.ones(len(data.y)), len(set(data.y)))
    loss, norm = make_task_loss("squared_hinge"), GroupNorm(2.0)
    problem = TaskProblem(targets.tasks, loss, norm, alpha)
    problem.append(columns.columns_of(np.arange(POOL))[:, targets.order], [1] * POOL)
    start = problem.empty().padded(POOL)
    solution = Admm(problem).solve(start, LEARNER["refit_tol"], LEARNER["max_iter"])
    seconds = before + time.process_time() - begun
    used = np.flatnonzero(np.abs(solution.weights.W).sum(axis=1))
    chosen = solution.weights.kept(used)
    coef, intercept = columns.unscaled(chosen.whole.T, chosen.b, used)
    scores = family.take(used).transform(data.test) @ coef.T + intercept
    right = 100 * np.mean(np.argmax(scores, axis=1) == data.y_test)
    return Run(np.array([len(used)]), np.array([right]), np.array([seconds]))


def shareboost(data: Task, seed: int = 0) -> Run:
    """Learn with ShareBoost's loss and search instead; ridge 1e-4, as everywhere else."""
    family = Draws(GaborBank().fit(data.train), DRAWS, MOST, seed)
    columns = DrawnColumns(family, data.train)
    begun = time.process_time()
    model = ShareBoost(MOST, search="sampled").fit(columns, data.y)
    busy = (time.process_time() - begun) / model.path_[-1].seconds
    features = family.take(model.support_).transform(data.test)
    scores = [features[:, : s.n_features] @ s.weights.T + s.intercept for s in model.path_]
    right = [100 * np.mean(np.argmax(z, axis=1) == data.y_test) for z in scores]
    counts = np.array([s.n_features for s in model.path_])
    seconds = min(1.0, busy) * np.array([s.seconds for s in model.path_])
    return Run(counts, np.array(right), seconds)


def chosen(plates: Sequence[np.ndarray], method: Callable[..., Run], n: int) -> dict[float, float]:
    """Return the accuracy of each alpha in cross-validation on the left halves."""
    tasks = folds(plates, n)
    return {
        alpha: float(np.mean([method(data, alpha).at(max(COUNTS)) for data in tasks]))
        for alpha in ALPHAS
    }


def best(scores: dict[float, float]) -> float:
    """Return the alpha of the best score."""
    return max(scores, key=lambda alpha: scores[alpha])


def as_values(measured: dict[str, Any]) -> dict[str, Any]:
    """Return what an experiment found as JSON can hold it."""

    def values(part: Any) -> Any:
        if isinstance(part, Run):
            return [part.counts.tolist(), part.accuracy.tolist(), part.seconds.tolist()]
        if isinstance(part, dict):
            return {str(key): values(value) for key, value in part.items()}
        return [values(value) for value in part] if isinstance(part, list) else part

    return {key: values(value) for key, value in measured.items()}


def from_values(stored: dict[str, Any]) -> dict[str, Any]:
    """Return what :func:`as_values` was given."""

    def runs(values: list[Any]) -> list[Run]:
        return [Run(*map(np.array, value)) for value in values]

    def named(values: dict[str, Any]) -> dict[str, list[Run]]:
        return {name: runs(value) for name, value in values.items()}

    scores = {
        name: {float(s): accuracy for s, accuracy in value.items()}
        for name, value in stored["scores"].items()
    }
    return {
        "scores": scores,
        "n": stored["n"],
        "runs": named(stored["runs"]),
        "grids": {int(k): runs(value) for k, value in stored["grids"].items()},
        "sizes": {int(n): named(value) for n, value in stored["sizes"].items()},
        "gaps": {float(g): named(value) for g, value in stored.get("gaps", {}).items()},
    }


def experiment(plates: Sequence[np.ndarray], args: Any, whole: bool) -> dict[str, Any]:
    """Return alphas and runs of one set of plates; ``whole`` with all variants."""
    begun = time.perf_counter()
    scores = {f.__name__: chosen(plates, f, CHOSEN_ON) for f in (learned, fixed)}
    _logger.info("%s after %.0f s", scores, time.perf_counter() - begun)
    drawn, grid = (best(scores[name]) for name in ("learned", "fixed"))
    n = PATCHES
    data = [task(plates, n, seed) for seed in range(args.seeds)]
    seeds = list(enumerate(data))
    runs = {
        "learned": [learned(d, drawn, s, most=MOST) for s, d in seeds],
        "selected": [selected(d, drawn, s, most=MOST) for s, d in seeds],
        "fixed": [fixed(d, grid, s) for s, d in seeds],
        "selected, one solve": [one_pass(d, drawn, s) for s, d in seeds],
    }
    _logger.info("main methods after %.0f s", time.perf_counter() - begun)
    grids = {}
    if whole:
        runs[f"learned, {MANY} draws"] = [learned(d, drawn, s, n=MANY) for s, d in seeds]
        runs["learned, maximum"] = [
            learned(d, drawn, s, most=MOST, pooling="max") for s, d in seeds
        ]
        runs["selected, maximum, one solve"] = [
            one_pass(d, drawn, s, pooling="max") for s, d in seeds
        ]
        runs["ShareBoost"] = [shareboost(d, s) for s, d in seeds]
        grids = {k**4: [fixed(d, grid, values=k) for d in data] for k in GRIDS}
    _logger.info("all methods after %.0f s", time.perf_counter() - begun)
    sizes = {n: {name: runs[name] for name in ("learned", "selected", "fixed")}}
    return {"scores": scores, "n": n, "runs": runs, "grids": grids, "sizes": sizes}


def of_sizes(
    plates: Sequence[np.ndarray], results: dict[str, Any], sizes: dict[int, int], most: int
) -> None:
    """Add runs with fewer and with more patches, those that are missing."""
    drawn, grid = (best(results["scores"][name]) for name in ("learned", "fixed"))
    for size, seeds in sizes.items():
        if size in results["sizes"]:
            continue
        parts = [task(plates, size, seed) for seed in range(min(seeds, most))]
        results["sizes"][size] = {
            f.__name__: [f(data, alpha, seed) for seed, data in enumerate(parts)]
            for f, alpha in ((fixed, grid), (selected, drawn), (learned, drawn))
        }


def of_gaps(plates: Sequence[np.ndarray], results: dict[str, Any]) -> None:
    """Add runs that end by the duality gap, those that are missing."""
    for gap_tol in GAPS:
        if gap_tol in results["gaps"]:
            continue
        data = task(plates, PATCHES, 0)
        results["gaps"][gap_tol] = {
            f.__name__: [f(data, GAPS_ALPHA, most=MOST, gap_tol=gap_tol)]
            for f in (selected, learned)
        }


def main() -> None:
    """Run both sets of plates and write the page."""
    parser = arguments(__doc__)
    parser.add_argument(
        "--runs", type=Path, default=Path("out/brodatz"),
        help="folder that keeps each set of plates; what is there is not run again",
    )  # fmt: skip
    args = parser.parse_args()
    logging.basicConfig()
    _logger.setLevel(logging.INFO)
    # Compiled before anything is timed.
    fixed(task([np.random.default_rng(0).normal(size=(64, 64))] * 2, 20, 0), 1.0)
    measured: dict[str, Any] = {}
    for name, files in SETS.items():
        kept = args.runs / f"{name.replace(' ', '-')}.json"
        plates = [plate(args.data / "brodatz" / file) for _, file in files]
        if not kept.is_file():
            values = as_values(experiment(plates, args, whole=not measured))
            write_text(kept, json.dumps(values))
        measured[name] = from_values(json.loads(kept.read_text()))
        sizes = SIZES if len(measured) > 1 else SIZES | MOST_PATCHES
        of_sizes(plates, measured[name], sizes, args.seeds)
        if len(measured) == 1:
            of_gaps(plates, measured[name])
        write_text(kept, json.dumps(as_values(measured[name])))
        settings = {"draws": DRAWS, "pool": POOL, "counts": COUNTS, "alpha": GAPS_ALPHA}
        brodatz_page.write(args.out, measured, settings)


if __name__ == "__main__":
    main()
