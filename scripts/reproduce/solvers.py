"""ADMM against FISTA on the restricted master problem: seconds to the same objective.

The setting of Table 3 of A. Rakotomamonjy, R. Flamary, F. Yger, "Learning with infinitely many
features", Machine Learning 91, 2013: wine and the six views of mfeat side by side, one against
all, squared hinge, ℓ1 penalty, random 95 % of the examples.

    python -m scripts.reproduce.solvers --data DIR
"""

from __future__ import annotations

import itertools
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from scripts.reproduce.results import (
    arguments,
    commit,
    keep_runs,
    pyplot,
    render,
    spread,
    stopwatch,
    table,
    write_page,
)
from scripts.reproduce.uci import load
from visionshare.learners.task_targets import class_targets
from visionshare.losses import make_task_loss
from visionshare.machine.resources import thread_limit
from visionshare.penalties import GroupNorm
from visionshare.solvers import Fista, Solver, TaskProblem, TaskSolution, TaskWeights
from visionshare.solvers.admm import Admm
from visionshare.solvers.newton import Newton

NEAR = 1e-4
FRACTION = 0.95
# The paper's protocol: both stop at approximate KKT conditions, here of λ, or after so many
# iterations. Seconds and objectives are those of its table 3.
STOP, MOST = 0.01, 3000
PRINTED = {5.0: ("0.09", "0.33", 43.98), 0.1: ("0.50", "13.08", 2.14)}
RAW, STANDARD, UNIT = "raw", "standardized", "unit norm"
SCALINGS = (RAW, STANDARD, UNIT)
ALPHAS = {"wine": (5.0, 0.1), "mfeat": (5.0, 1.0)}
ITERATIONS = {"wine": 10000, "mfeat": 1200}
LONGER = {"wine": 3, "mfeat": 1}
ADMM, ADMM_PUBLISHED = "ADMM", "ADMM, as published"
RESTART, PUBLISHED = "FISTA, restart", "FISTA, as published"
NEWTON = "Newton"
SOLVERS = (ADMM, RESTART, PUBLISHED, ADMM_PUBLISHED, NEWTON)


class _Recorder:
    """Weights of some iterations and when they were there; nothing is evaluated while it runs."""

    def __init__(self) -> None:
        self.begun = time.perf_counter()
        self.seen, self.following = 0, 1
        self.recorded: list[tuple[float, TaskWeights]] = []

    def note(self, weights: TaskWeights) -> None:
        """Record the weights, if this iteration is one of those that are recorded."""
        self.seen += 1
        if self.seen >= self.following:
            self.recorded.append((time.perf_counter() - self.begun, weights))
            self.following = max(self.seen + 1, int(self.seen * 1.05))


class _WatchedAdmm(Admm):
    recorder: _Recorder

    def _copies(
        self, weights: TaskWeights, u: TaskWeights, nu: TaskWeights
    ) -> tuple[TaskWeights, TaskWeights]:
        copies = super()._copies(weights, u, nu)
        self.recorder.note(TaskWeights(copies[0].W, copies[0].shared, weights.b))
        return copies


class _WatchedFista(Fista):
    recorder: _Recorder

    def _step(self, *arguments: Any) -> tuple[TaskWeights, np.ndarray]:
        step = super()._step(*arguments)
        self.recorder.note(step[0])
        return step


class _WatchedNewton(Newton):
    recorder: _Recorder

    def _steps(self, *arguments: Any) -> tuple[TaskWeights, int]:
        steps = super()._steps(*arguments)
        self.recorder.note(steps[0])
        return steps


@dataclass(frozen=True)
class Run:
    """Objectives against seconds of one solver on one problem."""

    seconds: np.ndarray
    values: np.ndarray
    iterations: int
    kkt: float

    def reached(self, value: float) -> float:
        """Return the seconds until the objective was at most ``value``; infinite if never."""
        below = np.flatnonzero(self.values <= value)
        return float(self.seconds[below[0]]) if len(below) else np.inf


def scaled(X: np.ndarray, how: str) -> np.ndarray:
    """Return features unscaled, of mean 0 and variance 1, or of norm 1."""
    if how == STANDARD:
        X = X - X.mean(axis=0)
    size = {RAW: np.ones(X.shape[1]), STANDARD: X.std(axis=0), UNIT: np.linalg.norm(X, axis=0)}[how]
    return X / np.where(size > 0, size, 1)


def problem_of(X: np.ndarray, y: np.ndarray, alpha: float) -> TaskProblem:
    """Return the problem of all columns: one task per class."""
    k = int(y.max()) + 1
    targets = class_targets(y, np.ones(len(y)), k)
    loss = make_task_loss("squared_hinge")
    problem = TaskProblem(targets.tasks, loss, GroupNorm(1), alpha)
    for column in X.T:
        problem.append(column[None])
    return problem


def watched(problem: TaskProblem, name: str, recorder: _Recorder) -> Solver:
    """Return one of SOLVERS, whose weights are recorded."""
    if name in (ADMM, ADMM_PUBLISHED):
        admm = _WatchedAdmm(problem, as_published=name == ADMM_PUBLISHED)
        admm.recorder = recorder
        return admm
    if name == NEWTON:
        newton, proximal = _WatchedNewton(problem), _WatchedFista(problem)
        newton.recorder = proximal.recorder = recorder
        newton._proximal = proximal
        return newton
    fista = _WatchedFista(problem, as_published=name == PUBLISHED)
    fista.recorder = recorder
    return fista


def run_of(problem: TaskProblem, name: str, iterations: int) -> Run:
    """Return how one solver's objective fell, from weights of zero."""
    recorder = _Recorder()
    solver = watched(problem, name, recorder)
    solution = solver.solve(problem.empty().padded(problem.n), 1e-8, iterations)
    values = np.array([problem.examine(weights)[0] for _, weights in recorder.recorded])
    seconds = np.array([at for at, _ in recorder.recorded])
    return Run(seconds, np.minimum.accumulate(values), solution.iterations, solution.kkt)


def runs_of(
    X: np.ndarray, y: np.ndarray, name: str, seeds: int, quick: bool
) -> dict[tuple[str, float], list[dict[str, Run]]]:
    """Return the runs of every solver, for each scaling and alpha, a list entry a seed."""
    measured: dict[tuple[str, float], list[dict[str, Run]]] = {}
    iterations, longer = ITERATIONS[name] // (20 if quick else 1), LONGER[name]
    for seed in range(seeds):
        rows = np.random.default_rng(seed).permutation(len(y))[: int(FRACTION * len(y))]
        for how in SCALINGS:
            part = scaled(X[rows], how)
            for alpha in ALPHAS[name]:
                problem = problem_of(part, y[rows], alpha)
                # Where ADMM arrives late, the others are to have as much time.
                counts = {s: iterations * (1 if "ADMM" in s else longer) for s in SOLVERS}
                runs = {s: run_of(problem, s, count) for s, count in counts.items()}
                measured.setdefault((how, alpha), []).append(runs)
                print(name, seed, how, alpha, {k: r.values[-1] for k, r in runs.items()})
    return measured


def protocol(X: np.ndarray, y: np.ndarray, seeds: int) -> list[list[Any]]:
    """Return iterations, seconds and objectives on wine by the paper's rule of stopping."""
    rows = []
    for how, (alpha, printed) in itertools.product((STANDARD, UNIT), PRINTED.items()):
        solved: dict[str, list[tuple[float, TaskSolution]]] = {}
        for seed in range(seeds):
            chosen = np.random.default_rng(seed).permutation(len(y))[: int(FRACTION * len(y))]
            problem = problem_of(scaled(X[chosen], how), y[chosen], alpha)
            for name in SOLVERS[:-1]:
                solver = watched(problem, name, _Recorder())
                with stopwatch(time.process_time) as seconds:
                    solution = solver.solve(problem.empty().padded(problem.n), STOP * alpha, MOST)
                solved.setdefault(name, []).append((seconds[0], solution))
        cells = [
            f"{np.mean([s.iterations for _, s in runs]):.0f}; "
            f"{spread([seconds for seconds, _ in runs], 3)} s"
            for runs in solved.values()
        ]
        value = np.mean([solution.value for _, solution in solved[ADMM]])
        admm, fista, objective = printed
        printed_there = f"{admm} and {fista} s; {objective}"
        rows.append([f"{how}, λ = {alpha:g}", *cells, f"{value:.2f}", printed_there])
    return rows


def protocol_part(X: np.ndarray, y: np.ndarray, seeds: int) -> str:
    """Return the part of the page that follows the paper's protocol."""
    header = ["wine", *SOLVERS[:-1], "objective", "the paper's ADMM, FISTA; objective"]
    # A column per setting.
    first, *rows = zip(header, *protocol(X, y, seeds), strict=True)
    return render(
        "solvers/protocol",
        stop=f"{STOP:g}",
        most=MOST,
        last_seed=seeds - 1,
        rows=table(first, rows),
        commit=commit(),
    )


def _seconds(values: list[float]) -> str:
    reached = [v for v in values if np.isfinite(v)]
    missed = len(values) - len(reached)
    text = spread(reached, 3) if reached else "never"
    return text if not missed or not reached else f"{text} ({missed} of {len(values)} never)"


def times_of(runs: list[dict[str, Run]]) -> dict[str, list[float]]:
    """Return each solver's seconds to near the best objective of a seed; infinite if never."""
    bests = [min(run.values[-1] for run in seed.values()) for seed in runs]
    return {
        solver: [seed[solver].reached(b * (1 + NEAR)) for seed, b in zip(runs, bests, strict=True)]
        for solver in SOLVERS
    }


def answers(settings: list[list[dict[str, Run]]]) -> str:
    """Return in how many settings ADMM is at least twice as fast."""
    lines = []
    for solver in (RESTART, PUBLISHED):
        twice = 0
        for runs in settings:
            times = times_of(runs)
            # A solver that never arrives took its whole run at least.
            ends = [seed[solver].seconds[-1] for seed in runs]
            twice += np.mean(np.minimum(times[solver], ends)) >= 2 * np.mean(times[ADMM])
        lines.append(f"- Against {solver}: in {twice} of {len(settings)} settings.")
    return "\n".join(lines)


def draw(measured: dict[str, dict[tuple[str, float], list[dict[str, Run]]]], path: Path) -> None:
    """Draw the gap to the best objective against seconds, first seed."""
    plt = pyplot()

    panels = [
        (n, key, runs[0]) for n, by_setting in measured.items() for key, runs in by_setting.items()
    ]
    figure, axes = plt.subplots(4, 3, figsize=(11, 12), constrained_layout=True)
    columns = {how: i for i, how in enumerate(SCALINGS)}
    for n, (how, alpha), runs in panels:
        row = 2 * list(ALPHAS).index(n) + ALPHAS[n].index(alpha)
        axis, best = axes[row, columns[how]], min(run.values[-1] for run in runs.values())
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
    options = arguments(__doc__).parse_args()
    measured, seeds = {}, options.seeds
    with thread_limit(options.jobs):
        for name in ALPHAS:
            X, y, _ = load(options.data, name)
            measured[name] = runs_of(X, y, name, seeds, options.quick)
    settings = {
        f"{name}, {how}, λ = {alpha:g}": runs
        for name, by_setting in measured.items()
        for (how, alpha), runs in by_setting.items()
    }
    rows = [[name, *map(_seconds, times_of(runs).values())] for name, runs in settings.items()]
    options.out.mkdir(parents=True, exist_ok=True)
    draw(measured, options.out / "solvers.png")
    keep_runs(options.out, "solvers", measured)
    write_page(
        options.out,
        "solvers",
        fraction=f"{FRACTION:.0%}",
        last_seed=seeds - 1,
        jobs=options.jobs,
        iterations_wine=ITERATIONS["wine"],
        longer_wine=LONGER["wine"],
        iterations_mfeat=ITERATIONS["mfeat"],
        near=f"{NEAR:g}",
        answers=answers(list(settings.values())),
        times=table(["seconds", *SOLVERS], rows),
        protocol=protocol_part(*load(options.data, "wine")[:2], seeds),
    )


if __name__ == "__main__":
    main()
