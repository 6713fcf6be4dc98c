"""ADMM against FISTA on the restricted master problem: seconds to the same objective.

The setting of Table 3 of A. Rakotomamonjy, R. Flamary, F. Yger, "Learning with infinitely many
features", Machine Learning 91, 2013: wine and the six views of mfeat side by side, one against
all, squared hinge, ℓ1 penalty, random 95 % of the examples.

    python -m scripts.reproduce.solvers --data DIR
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from scripts.reproduce.results import arguments, spread, table, write_page
from scripts.reproduce.uci import load
from visionshare.learners.task_targets import class_targets
from visionshare.losses import make_task_loss
from visionshare.penalties import GroupNorm
from visionshare.resources import thread_limit
from visionshare.solvers import Fista, TaskProblem, TaskWeights
from visionshare.solvers.admm import Admm
from visionshare.solvers.newton import Newton

NEAR = 1e-4
SHARE = 0.95
RAW, STANDARD, UNIT = "as they are", "standardized", "unit norm"
SCALINGS = (RAW, STANDARD, UNIT)
ALPHAS = {"wine": (5.0, 0.1), "mfeat": (5.0, 1.0)}
ITERATIONS = {"wine": 10000, "mfeat": 1200}
# Where ADMM arrives late, FISTA is to have as much time.
LONGER = {"wine": 3, "mfeat": 1}
ADMM, RESTART, PUBLISHED = "ADMM", "FISTA, restart", "FISTA, as published"
NEWTON = "Newton"
SOLVERS = (ADMM, RESTART, PUBLISHED, NEWTON)


class _Recorder:
    """Weights of some iterations and when they were there; nothing is evaluated while it runs."""

    def __init__(self) -> None:
        self.begun = time.perf_counter()
        self.seen, self.wanted = 0, 1
        self.kept: list[tuple[float, TaskWeights]] = []

    def note(self, weights: TaskWeights) -> None:
        """Keep the weights, if this iteration is one of those that are kept."""
        self.seen += 1
        if self.seen >= self.wanted:
            self.kept.append((time.perf_counter() - self.begun, weights))
            self.wanted = max(self.seen + 1, int(self.seen * 1.05))


class _WatchedAdmm(Admm):
    recorder: _Recorder

    def _copies(
        self, weights: TaskWeights, u: TaskWeights, nu: TaskWeights
    ) -> tuple[TaskWeights, TaskWeights]:
        found = super()._copies(weights, u, nu)
        self.recorder.note(TaskWeights(found[0].W, found[0].shared, weights.b))
        return found


class _WatchedFista(Fista):
    recorder: _Recorder

    def _step(self, *arguments: Any) -> tuple[TaskWeights, list[np.ndarray]]:
        found = super()._step(*arguments)
        self.recorder.note(found[0])
        return found


class _WatchedNewton(Newton):
    recorder: _Recorder

    def _steps(self, *arguments: Any) -> tuple[TaskWeights, int]:
        found = super()._steps(*arguments)
        self.recorder.note(found[0])
        return found


@dataclass(frozen=True)
class Run:
    """Objectives against seconds of one solver on one problem."""

    seconds: np.ndarray
    values: np.ndarray
    iterations: int
    kkt: float

    def reached(self, value: float) -> float:
        """Return the seconds until the objective was at most ``value``, nan if it never was."""
        below = np.flatnonzero(self.values <= value)
        return float(self.seconds[below[0]]) if len(below) else float("nan")


def scaled(X: np.ndarray, how: str) -> np.ndarray:
    """Return features as they are, of mean 0 and variance 1, or of norm 1."""
    if how == STANDARD:
        X = X - X.mean(axis=0)
    size = {RAW: np.ones(X.shape[1]), STANDARD: X.std(axis=0), UNIT: np.linalg.norm(X, axis=0)}[how]
    return X / np.where(size > 0, size, 1)


def problem_of(X: np.ndarray, y: np.ndarray, alpha: float) -> TaskProblem:
    """Return the solver of all columns: one task a class."""
    k = int(y.max()) + 1
    targets = class_targets(y, k, np.ones(len(y)), None, 0)
    loss = make_task_loss("squared_hinge")
    problem = TaskProblem(targets.blocks, k, loss, GroupNorm(1), alpha)
    for column in X.T:
        problem.append(column[None])
    return problem


def run_of(problem: TaskProblem, solver: str, iterations: int) -> Run:
    """Return how one solver's objective fell, from weights of zero."""
    recorder = _Recorder()
    if solver == ADMM:
        solver: Any = _WatchedAdmm(problem)
    elif solver == NEWTON:
        solver = _WatchedNewton(problem)
        solver._proximal = _WatchedFista(problem)
        solver._proximal.recorder = recorder
    else:
        solver = _WatchedFista(problem, as_published=solver == PUBLISHED)
    solver.recorder = recorder
    found = solver.solve(problem.empty().padded(problem.n), 1e-8, iterations)
    values = np.array([problem.examine(weights)[0] for _, weights in recorder.kept])
    seconds = np.array([at for at, _ in recorder.kept])
    return Run(seconds, np.minimum.accumulate(values), found.iterations, found.kkt)


def runs_of(
    X: np.ndarray, y: np.ndarray, name: str, seeds: int, quick: bool
) -> dict[tuple[str, float], list[dict[str, Run]]]:
    """Return the runs of every solver, for each scaling and alpha, a list entry a seed."""
    found: dict[tuple[str, float], list[dict[str, Run]]] = {}
    iterations, longer = ITERATIONS[name] // (20 if quick else 1), LONGER[name]
    for seed in range(seeds):
        rows = np.random.default_rng(seed).permutation(len(y))[: int(SHARE * len(y))]
        for how in SCALINGS:
            part = scaled(X[rows], how)
            for alpha in ALPHAS[name]:
                problem = problem_of(part, y[rows], alpha)
                runs = {
                    solver: run_of(problem, solver, iterations * (1 if solver == ADMM else longer))
                    for solver in SOLVERS
                }
                found.setdefault((how, alpha), []).append(runs)
                print(name, seed, how, alpha, {k: r.values[-1] for k, r in runs.items()})
    return found


def _seconds(values: list[float]) -> str:
    reached = [v for v in values if np.isfinite(v)]
    missed = len(values) - len(reached)
    text = spread(reached, 3) if reached else "never"
    return text if not missed or not reached else f"{text} ({missed} of {len(values)} never)"


def _ratio(first: list[float], others: list[float], ends: list[float]) -> str:
    """Return the mean ratio of times; where the second never arrived, more than its whole run."""
    never = any(not np.isfinite(b) for b in others)
    shares = [
        (b if np.isfinite(b) else end) / a
        for a, b, end in zip(first, others, ends, strict=True)
        if np.isfinite(a)
    ]
    return "–" if not shares else ("> " if never else "") + f"{np.mean(shares):.1f}"


def rows_of(name: str, found: dict[tuple[str, float], list[dict[str, Run]]]) -> list[list[Any]]:
    """Return the table's rows of one data set."""
    rows = []
    for (how, alpha), seeds in found.items():
        bests = [min(run.values[-1] for run in runs.values()) for runs in seeds]
        times = {
            s: [r[s].reached(b * (1 + NEAR)) for r, b in zip(seeds, bests, strict=True)]
            for s in SOLVERS
        }
        ratios = [
            _ratio(times[ADMM], times[s], [r[s].seconds[-1] for r in seeds]) for s in SOLVERS[1:]
        ]
        finals = [spread([r[s].values[-1] for r in seeds], 3) for s in SOLVERS]
        row = [name, how, f"{alpha:g}", *(_seconds(times[s]) for s in SOLVERS), *ratios, *finals]
        rows.append(row)
    return rows


def answers(rows: list[list[Any]]) -> str:
    """Return in how many settings ADMM is at least twice as fast, and where it is not."""
    lines = ["**Asked**: ADMM at least twice as fast as FISTA to the same objective."]
    for i, solver in enumerate((RESTART, PUBLISHED)):
        cells = [(row, row[3 + len(SOLVERS) + i]) for row in rows]
        twice = [
            cell.strip("> ") not in ("–", "") and float(cell.strip("> ")) >= 2 for _, cell in cells
        ]
        others = [
            f"{row[0]} {row[1]}, λ {row[2]}: {cell}"
            for (row, cell), fast in zip(cells, twice, strict=True)
            if not fast
        ]
        rest = f"; not in {'; '.join(others)}" if others else ""
        lines.append(f"- Against {solver}: in {sum(twice)} of {len(rows)} settings{rest}.")
    return "\n".join(lines)


def draw(found: dict[str, dict[tuple[str, float], list[dict[str, Run]]]], path: Path) -> None:
    """Draw the gap to the best objective against seconds, first seed."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    panels = [(n, key, runs[0]) for n, held in found.items() for key, runs in held.items()]
    figure, axes = plt.subplots(4, 3, figsize=(11, 12), constrained_layout=True)
    places = {how: i for i, how in enumerate(SCALINGS)}
    for n, (how, alpha), runs in panels:
        row = 2 * list(ALPHAS).index(n) + ALPHAS[n].index(alpha)
        axis, best = axes[row, places[how]], min(run.values[-1] for run in runs.values())
        for solver, run in runs.items():
            axis.loglog(run.seconds, np.maximum(run.values / best - 1, 1e-9), label=solver)
        axis.axhline(NEAR, color="0.7", lw=0.8)
        axis.set_title(f"{n}, {how}, λ = {alpha:g}", fontsize=9)
    axes[0, 0].legend(fontsize=8)
    figure.supxlabel("seconds")
    figure.supylabel("gap to the best objective, relative")
    figure.savefig(path, dpi=80)


def main() -> None:
    """Run all solvers on both data sets and write the page."""
    options = arguments(__doc__.splitlines()[0]).parse_args()
    found = {}
    with thread_limit(options.jobs):
        for name in ALPHAS:
            X, y, _ = load(options.data, name)
            found[name] = runs_of(X, y, name, options.seeds, options.quick)
    header = ["data", "features", "λ", *(f"s, {s}" for s in SOLVERS)]
    header += [f"{s} / ADMM" for s in SOLVERS[1:]] + [f"objective, {s}" for s in SOLVERS]
    rows = [row for name, held in found.items() for row in rows_of(name, held)]
    options.out.mkdir(parents=True, exist_ok=True)
    draw(found, options.out / "solvers.png")
    settings = (
        f"One against all, squared hinge, ℓ1 penalty, random {SHARE:.0%} of the examples. "
        f"Seeds: 0 to {options.seeds - 1}; {options.jobs} thread. Every solver "
        f"starts from weights of zero and makes {ITERATIONS['wine']} (wine; FISTA and Newton "
        f"{LONGER['wine']} times as many) or {ITERATIONS['mfeat']} (mfeat) iterations, or stops at "
        "a KKT residual of 1e-8. Times are seconds until the objective is within "
        f"{NEAR:g}, relative, of the lowest that any of them "
        "reached; weights are kept while a solver runs and their objectives are computed "
        "afterwards, outside its time. Objectives are the lowest of each run. A ratio with > "
        "counts the whole run of a solver that did not arrive."
    )
    parts = [settings, answers(rows), table(header, rows)]
    parts += ["![gap against seconds](solvers.png)", _REMARKS]
    write_page(options.out, "solvers", "ADMM against FISTA on the restricted solver", parts)


_REMARKS = (
    "The paper (Table 3) reports FISTA against ADMM: wine 0.33 s against 0.09 s (λ = 5) and "
    "13.08 s against 0.50 s (λ = 0.1); mfeat 785 s against 207 s (λ = 5) and 1239 s against "
    "1379 s (λ = 1, where FISTA stopped early with a worse objective), at objectives of 44.0, "
    "2.14, 206 and 52.2: those of standardized features here are the nearest. Newton is this "
    "library's default. Where a curve above drops straight down at its end, the lowest objective "
    "is that run's own last one: no solver has arrived at the optimum, and the time is the length "
    "of the run."
)


if __name__ == "__main__":
    main()
