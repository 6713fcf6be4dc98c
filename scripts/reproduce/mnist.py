"""MNIST: the paper's table 1, and beyond it; every pipeline with several seeds.

Shalev-Shwartz, Wexler and Shashua, "ShareBoost: Efficient multiclass learning with feature
sharing", §7.4 and table 1.

Each run is a folder under --runs, made by `visionshare train`; what is there is not run again, so
that a measurement of hours can be stopped, and the page is written from what is there:

    python -m scripts.reproduce.mnist --data DIR --jobs 2 --seeds 3
    python -m scripts.reproduce.mnist --data DIR --jobs 2 --seeds 3 --dataset fashion-mnist
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from scripts.reproduce.results import arguments, keep_runs, spread, table, write_page

# Settings of --quick.
FEW = ("data.limit=1000", "learner.rounds=10")
PIPELINES = ("mnist", "mnist-266", "mnist-deformed", "mnist-compact")

# The data sets that the recipes are read on; each has a page.
DATASETS = ("mnist", "fashion-mnist")


def run(pipeline: str, settings: Sequence[str], folder: Path, options: Any) -> dict[str, Any]:
    """Return the figures of a run, which is made where its folder is not there yet."""
    if figures_of(folder) is None:
        command = [sys.executable, "-m", "visionshare.cli", "train", pipeline, "--out", str(folder)]
        command += ["--data", str(options.data), "--jobs", str(options.jobs), "--resume"]
        for setting in settings:
            command += ["--set", setting]
        print(" ".join(command[2:]), flush=True)
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return figures_of(folder) or {}


def row(pipeline: str, runs: Sequence[dict[str, Any]]) -> list[Any]:
    """Return a pipeline's row of the main table."""
    errors = [100 * r["test_error_rate"] for r in runs]
    seconds = [f"{k} {np.mean([r['seconds'][k] for r in runs]):.0f}" for k in stages(runs)]
    return [
        f"`{pipeline}`",
        spread(errors) + (f" ({', '.join(f'{e:.2f}' for e in errors)})" if len(runs) > 1 else ""),
        f"{max(r['features'] for r in runs):,}",
        f"{max(r['macs'] for r in runs):,}",
        f"{runs[0]['train_images']:,}",
        ", ".join(seconds),
    ]


def stages(runs: Sequence[dict[str, Any]]) -> list[str]:
    """Return the stages that take a second or more."""
    return [k for k in runs[0]["seconds"] if np.mean([r["seconds"][k] for r in runs]) >= 1]


def figures_of(folder: Path) -> dict[str, Any] | None:
    """Return the figures of a run; None where it did not end."""
    file = folder / "metrics.json"
    return json.loads(file.read_text(encoding="utf-8")) if file.is_file() else None


def runs_of(folder: Path, pipelines: Sequence[str]) -> dict[str, dict[str, dict[str, Any]]]:
    """Return the figures of the runs that are there, by pipeline and by folder."""
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for pipeline in pipelines:
        folders = sorted(folder.glob(f"{pipeline}-[0-9]"))
        runs = {one.name: figures for one in folders if (figures := figures_of(one)) is not None}
        found |= {pipeline: runs} if runs else {}
    return found


def write(options: Any) -> None:
    """Write the page of what is there."""
    original = options.dataset == "mnist"
    header = ["pipeline", "test error, %", "features", "multiply-accumulates"]
    header += ["training images", "seconds by stage"]
    runs = runs_of(options.runs, PIPELINES)
    pipelines = table(header, [row(name, list(found.values())) for name, found in runs.items()])
    figures = {name: one for found in runs.values() for name, one in found.items()}
    keep_runs(options.out, options.dataset, figures)
    if not original:
        write_page(options.out, "fashion-mnist", pipelines=pipelines, remark=options.remark)
        return
    write_page(options.out, "mnist", pipelines=pipelines, remark=options.remark)


def main() -> None:
    """Run what is missing and write the page."""
    parser = arguments(__doc__)
    parser.add_argument("--dataset", choices=DATASETS, default="mnist", help="default mnist")
    parser.add_argument("--runs", type=Path, help="folder of runs (default out/DATASET-runs)")
    parser.add_argument("--pipelines", nargs="*", default=PIPELINES, choices=PIPELINES)
    parser.add_argument("--remark", default="", help="how the runs were made, for the page")
    options = parser.parse_args()
    options.runs = options.runs or Path(f"out/{options.dataset}-runs")
    for pipeline in options.pipelines:
        for seed in range(options.seeds):
            settings = [f"seed={seed}", f"data.source={options.dataset}"]
            settings += FEW if options.quick else ()
            run(pipeline, settings, options.runs / f"{pipeline}-{seed}", options)
    write(options)


if __name__ == "__main__":
    main()
