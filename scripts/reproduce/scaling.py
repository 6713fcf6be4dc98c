"""How time and memory grow from 60 000 to 360 000 images: 305 rounds among 16 000 features.

Two runs of `visionshare train mnist-266` with the screened search, one with five deformed copies of
each image; what is there under --runs is not run again. Writes docs/results/scaling.md:

    python -m scripts.reproduce.scaling --data DIR --jobs 2
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from scripts.reproduce.mnist import run
from scripts.reproduce.results import arguments, keep_runs, table, write_page

COPIES = 5
STAGES = ("data", "features", "columns", "learning")
GIB = 2**30


def settings(quick: bool) -> list[str]:
    """Return what both runs change of the pipeline."""
    both = ["learner.rounds=305", "learner.search=screened"]
    small = ["learner.rounds=20", "data.limit=2000", "features.parameters.n_templates=100"]
    return [*both, *small] if quick else both


def stages(one: dict[str, Any], six: dict[str, Any]) -> tuple[str, float]:
    """Return the table of seconds by stage and of memory, and the ratio of all seconds."""
    rows = []
    whole = [0.0, 0.0]
    for stage in STAGES:
        few, many = (float(run["seconds"][stage]) for run in (one, six))
        rows.append([stage, f"{few:.0f}", f"{many:.0f}", f"{many / max(few, 0.1):.1f}"])
        whole = [whole[0] + few, whole[1] + many]
    rows.append(["all", *(f"{w:.0f}" for w in whole), f"{whole[1] / whole[0]:.1f}"])
    memory = [run["peak_memory"] / GIB for run in (one, six)]
    rows.append(["peak memory, GiB", *(f"{m:.1f}" for m in memory), f"{memory[1] / memory[0]:.1f}"])
    header = ["", *(f"{run['train_images']:,} images" for run in (one, six)), "ratio"]
    return table(header, rows), whole[1] / whole[0]


def main() -> None:
    """Run what is missing and write the page."""
    parser = arguments(__doc__)
    parser.add_argument("--runs", type=Path, default=Path("out/scaling"), help="folder of runs")
    parser.add_argument("--remark", default="", help="how the runs were made, for the page")
    options = parser.parse_args()
    both = settings(options.quick)
    copies = [f"deformations.copies={COPIES}"]
    one, six = (
        run(
            "mnist-266", [*both, *more], options.runs / f"{name}{'-quick' * options.quick}", options
        )
        for name, more in (("originals", []), ("with-copies", copies))
    )
    by_stage, ratio = stages(one, six)
    keep_runs(options.out, "scaling", {"originals": one, "with copies": six})
    write_page(
        options.out,
        "scaling",
        stages=by_stage,
        ratio=f"{ratio / 6:.2f}",
        memory=f"{six['peak_memory'] / GIB:.1f}",
        remark=options.remark,
    )


if __name__ == "__main__":
    main()
