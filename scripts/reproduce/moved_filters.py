"""Gabor filters drawn, screened or moved before they enter, beside a selection among 3000.

Brodatz D9, D29 and D92, 16×16 patches, as in scripts.reproduce.brodatz: left halves train, right
halves test.

    python -m scripts.reproduce.moved_filters --data DIR
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from scripts.reproduce import brodatz
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
# Constants of --quick.
QUICK = {name: value for name, value in brodatz.QUICK.items() if name != "MOST"} | {"PATCHES": 100}
# Draws a round that are screened on a tenth of the patches, those scored on all, those that enter.
SCREENED, KEPT, ENTERING = 100, 10, 5
# Draws a round and steps of the best of them.
MOVING = 10, 4


def methods() -> dict[str, Callable[..., Run]]:
    """Return the methods by name; each takes a task, an alpha and a seed."""
    n, steps = MOVING
    screened = partial(learned, n=SCREENED, entering=ENTERING, search={"keep": KEPT})
    return {
        f"selected among {POOL}": selected,
        f"{SCREENED} draws, screened": screened,
        f"{DRAWS} draws": learned,
        f"{n} draws, {steps} steps": partial(learned, n=n, search={"steps": steps}),
    }


def at(run: Run, count: int) -> tuple[float, float]:
    """Return accuracy and seconds of the first round with so many features, or of the last."""
    there = np.flatnonzero(run.counts >= count)
    i = there[0] if len(there) else -1
    return float(run.accuracy[i]), float(run.seconds[i])


def ratios(pool: list[Run], drawn: list[Run]) -> list[float]:
    """Return how many times as long the pool takes, to the lower of both last accuracies."""
    common = [min(a.accuracy[-1], b.accuracy[-1]) for a, b in zip(pool, drawn, strict=True)]
    return [
        a.time_to(least) / b.time_to(least) for a, b, least in zip(pool, drawn, common, strict=True)
    ]


def main() -> None:
    """Choose each method's alpha on the left halves, measure the seeds, write the page."""
    options = arguments(__doc__).parse_args()
    files = next(iter(SETS.values()))
    plates = [plate(options.data / "brodatz" / file) for _, file in files]
    with thread_limit(1):
        # Compiled before anything is timed.
        fixed(task([np.random.default_rng(0).normal(size=(64, 64))] * 2, 20, 0), 1.0)
        runs: dict[str, list[Run]] = {}
        tried = []
        for name, method in methods().items():
            scores = chosen(plates, method, brodatz.CHOSEN_ON)
            alpha = best(scores)
            tried.append([name, *(f"{scores[a]:.2f}" for a in ALPHAS)])
            data = (task(plates, PATCHES, seed) for seed in range(options.seeds))
            runs[name] = [method(d, alpha, seed) for seed, d in enumerate(data)]
            print(name, alpha, [at(run, max(COUNTS)) for run in runs[name]], flush=True)
    write(options, tried, runs)


def write(options: Any, tried: list[list[Any]], runs: dict[str, list[Run]]) -> None:
    """Write the page, and the runs as JSON."""
    options.out.mkdir(parents=True, exist_ok=True)
    kept = {
        name: [[*map(np.ndarray.tolist, (r.counts, r.accuracy, r.seconds))] for r in found]
        for name, found in runs.items()
    }
    pool = next(iter(runs))
    rows = []
    for name, found in runs.items():
        cells = [[at(run, count) for run in found] for count in COUNTS]
        accuracies = [spread([accuracy for accuracy, _ in cell]) for cell in cells]
        rows.append([name, *accuracies, spread([seconds for _, seconds in cells[-1]], 1)])
    keep_runs(options.out, "moved_filters", kept)
    write_page(
        options.out,
        "moved_filters",
        patches=PATCHES,
        last_seed=options.seeds - 1,
        pool=POOL,
        results=table(["method", *map(str, COUNTS), "seconds"], rows),
        screened=SCREENED,
        kept=KEPT,
        entering=ENTERING,
        ratios=spread(ratios(runs[pool], runs[f"{SCREENED} draws, screened"]), 1),
        tried=table(["method", *(f"λ = {a:g}" for a in ALPHAS)], tried),
    )


if __name__ == "__main__":
    main()
