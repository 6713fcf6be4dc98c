"""How time and memory grow from 60 000 to 360 000 images: 305 rounds among 16 000 features.

Two runs of `visionshare train mnist-266` with the screened search, one with five deformed copies of
each image; what is there under --runs is not run again. Writes docs/results/scaling.md:

    python -m scripts.reproduce.scaling --data DIR --jobs 2
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from scripts.reproduce.mnist import run
from scripts.reproduce.results import arguments, table, write_page

COPIES = 5
STAGES = ("data", "features", "columns", "learning")
TIMES, MEMORY = 2.0, 12.0


def settings(quick: bool) -> list[str]:
    """Return what both runs change of the pipeline."""
    held = ["learner.rounds=305", "learner.search=screened"]
    small = ["data.limit=2000", "features.parameters.n_templates=100"]
    return [*held, *small] if quick else held


def parts(one: dict[str, Any], six: dict[str, Any]) -> list[str]:
    """Return the parts of the page."""

    def seconds(found: dict[str, Any], stage: str) -> float:
        return float(found["seconds"][stage])

    def row(stage: str) -> list[Any]:
        few, many = seconds(one, stage), seconds(six, stage)
        return [stage, f"{few:.0f}", f"{many:.0f}", f"{many / max(few, 0.1):.1f}"]

    rows = [row(stage) for stage in STAGES]
    whole = [sum(seconds(r, s) for s in STAGES) for r in (one, six)]
    rows.append(["all", *(f"{w:.0f}" for w in whole), f"{whole[1] / whole[0]:.1f}"])
    memory = [r["peak_memory"] / 2**30 for r in (one, six)]
    rows.append(["peak memory, GiB", *(f"{m:.1f}" for m in memory), f"{memory[1] / memory[0]:.1f}"])
    share = whole[1] / (6 * whole[0])
    header = ["", *(f"{r['train_images']:,} images" for r in (one, six)), "ratio"]
    return [
        "305 rounds of `mnist-266` with the screened search (`--set learner.search=screened`), on "
        "the training images and on those with five deformed copies of each. Seconds by stage:",
        table(header, rows),
        f"Six times the images take {share:.2f} of six times the time (asked at most {TIMES:.0f}), "
        f"with {memory[1]:.1f} GiB (asked at most {MEMORY:.0f}). What the system caches of the "
        "column file is not counted: it gives that back.",
    ]


def main() -> None:
    """Run what is missing and write the page."""
    parser = arguments(__doc__ or "")
    parser.add_argument("--runs", type=Path, default=Path("out/scaling"), help="folder of runs")
    options = parser.parse_args()
    held = settings(options.quick)
    copies = [f"deformations.copies={COPIES}"]
    one, six = (
        run(
            "mnist-266", [*held, *more], options.runs / f"{name}{'-quick' * options.quick}", options
        )
        for name, more in (("originals", []), ("with-copies", copies))
    )
    write_page(options.out, "scaling", "Six times the images", parts(one, six))


if __name__ == "__main__":
    main()
