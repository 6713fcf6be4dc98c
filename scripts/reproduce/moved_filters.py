"""Gabor filters that take steps uphill before they enter, beside draws alone and a fixed pool.

Brodatz D9, D29 and D92, 16×16 patches, as in scripts.reproduce.brodatz: left halves train, right
halves test.

    python -m scripts.reproduce.moved_filters --data DIR
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from scripts.reproduce.brodatz import (
    ALPHAS,
    COUNTS,
    DRAWS,
    POOL,
    SETS,
    Run,
    best,
    chosen,
    fixed,
    learned,
    plate,
    selected,
    task,
)
from scripts.reproduce.results import arguments, keep_runs, spread, table, write_page
from visionshare.machine.resources import thread_limit

PATCHES = 500
# Draws a round and steps of the best of them.
MOVING = ((20, 2), (10, 4))


def methods() -> dict[str, Callable[..., Run]]:
    """Return the methods by name; each takes a task, an alpha and a seed."""
    return {
        f"selected among {POOL}": selected,
        f"{DRAWS} draws": learned,
        **{f"{n} draws, {s} steps": partial(learned, n=n, search={"steps": s}) for n, s in MOVING},
    }


def reached_for_good(run: Run, accuracy: float) -> float:
    """Return the seconds from which on no round is below an accuracy; infinite if the last is."""
    below = np.flatnonzero(run.accuracy < accuracy)
    first = below[-1] + 1 if len(below) else 0
    return float(run.seconds[first]) if first < len(run.seconds) else np.inf


def _mean_seconds(seconds: list[float]) -> str:
    """Return the mean of those that are known, and how many these are."""
    known = [s for s in seconds if np.isfinite(s)]
    mean = f"{np.mean(known):.1f}" if known else "–"
    return f"{mean} ({len(known)} of {len(seconds)})"


def at(run: Run, count: int) -> tuple[float, float]:
    """Return accuracy and seconds of the first round with so many features, or of the last."""
    there = np.flatnonzero(run.counts >= count)
    i = there[0] if len(there) else -1
    return float(run.accuracy[i]), float(run.seconds[i])


def main() -> None:
    """Choose each method's alpha on the left halves, measure the seeds, write the page."""
    options = arguments(__doc__).parse_args()
    files = next(iter(SETS.values()))
    plates = [plate(options.data / "brodatz" / file) for _, file in files]
    n = 100 if options.quick else PATCHES
    with thread_limit(1):
        # Compiled before anything is timed.
        fixed(task([np.random.default_rng(0).normal(size=(64, 64))] * 2, 20, 0), 1.0)
        runs: dict[str, list[Run]] = {}
        tried = []
        for name, method in methods().items():
            scores = chosen(plates, method, 60 if options.quick else 100)
            alpha = best(scores)
            tried.append([name, *(f"{scores[a]:.2f}" for a in ALPHAS)])
            data = (task(plates, n, seed) for seed in range(options.seeds))
            runs[name] = [method(d, alpha, seed) for seed, d in enumerate(data)]
            print(name, alpha, [at(run, max(COUNTS)) for run in runs[name]], flush=True)
    write(options, n, tried, runs)


def write(options: Any, n: int, tried: list[list[Any]], runs: dict[str, list[Run]]) -> None:
    """Write the page, and the runs as JSON."""
    options.out.mkdir(parents=True, exist_ok=True)
    kept = {
        name: [[*map(np.ndarray.tolist, (r.counts, r.accuracy, r.seconds))] for r in found]
        for name, found in runs.items()
    }
    pool = next(iter(runs))
    finals = [float(run.accuracy[-1]) for run in runs[pool]]
    rows, until = [], []
    for name, found in runs.items():
        cells = [[at(run, count) for run in found] for count in COUNTS]
        accuracies = [spread([accuracy for accuracy, _ in cell]) for cell in cells]
        rows.append([name, *accuracies, f"{np.mean([s for _, s in cells[-1]]):.1f}"])
        pairs = list(zip(found, finals, strict=True))
        crossings = [
            [crossing(*pair) for pair in pairs] for crossing in (Run.time_to, reached_for_good)
        ]
        until.append([name, *map(_mean_seconds, crossings)])
    keep_runs(options.out, "moved_filters", kept)
    write_page(
        options.out,
        "moved_filters",
        patches=n,
        last_seed=options.seeds - 1,
        pool=POOL,
        results=table(["method", *map(str, COUNTS), "seconds"], rows),
        until=table(["method", "first", "for good"], until),
        tried=table(["method", *(f"λ = {a:g}" for a in ALPHAS)], tried),
    )


if __name__ == "__main__":
    main()
