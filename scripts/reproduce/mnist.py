"""MNIST: the paper's table 1, and beyond it; every pipeline with several seeds.

Shalev-Shwartz, Wexler and Shashua, "ShareBoost: Efficient multiclass learning with feature
sharing", §7.4 and table 1.

Each run is a folder under --runs, made by `visionshare train`; what is there is not run again, so
that a measurement of hours can be stopped, and the page is written from what is there:

    python -m scripts.reproduce.mnist --data DIR --jobs 2 --seeds 3
    python -m scripts.reproduce.mnist --data DIR --jobs 2 --trials     # on validation images
    python -m scripts.reproduce.mnist --data DIR --jobs 2 --seeds 3 --dataset fashion-mnist
"""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from scripts.reproduce.mnist_trials import HELD_OUT, KEYS, TRIED, folder_of, settings_of
from scripts.reproduce.results import arguments, keep_runs, spread, table, write_page

# Settings of --quick.
FEW = ("data.limit=1000", "learner.rounds=10")
PIPELINES = ("mnist", "mnist-266", "mnist-deformed", "mnist-compact")

# The data sets that the recipes are read on; each has a page.
DATASETS = ("mnist", "fashion-mnist")


def run(pipeline: str, settings: Sequence[str], folder: Path, options: Any) -> dict[str, Any]:
    """Return the figures of a run, which is made where its folder is not there yet."""
    figures = folder / "metrics.json"
    if not figures.is_file():
        command = [sys.executable, "-m", "visionshare.cli", "train", pipeline, "--out", str(folder)]
        command += ["--data", str(options.data), "--jobs", str(options.jobs), "--resume"]
        for setting in settings:
            command += ["--set", setting]
        print(" ".join(command[2:]), flush=True)
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    metrics: dict[str, Any] = json.loads(figures.read_text())
    return metrics


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
        f"{max(r['peak_memory'] for r in runs) / 2**30:.1f}",
    ]


def stages(runs: Sequence[dict[str, Any]]) -> list[str]:
    """Return the stages that take a second or more."""
    return [k for k in runs[0]["seconds"] if np.mean([r["seconds"][k] for r in runs]) >= 1]


def measured(options: Any) -> list[list[Any]]:
    """Return the rows of the pipelines whose runs are there."""
    rows = []
    for pipeline in PIPELINES:
        folders = sorted(options.runs.glob(f"{pipeline}-[0-9]"))
        runs = [json.loads((f / "metrics.json").read_text()) for f in folders if finished(f)]
        rows += [row(pipeline, runs)] if runs else []
    return rows


def figures_of_runs(runs: Path) -> dict[str, Any]:
    """Return the figures of the pipelines' runs that are there, by folder."""
    folders = [f for pipeline in PIPELINES for f in sorted(runs.glob(f"{pipeline}-[0-9]"))]
    return {f.name: json.loads((f / "metrics.json").read_text()) for f in folders if finished(f)}


def finished(folder: Path) -> bool:
    """Return whether a run wrote its figures."""
    return (folder / "metrics.json").is_file()


def write_trials(options: Any) -> None:
    """Write ``mnist-trials.csv``, the settings and errors of the trials; nothing without any."""
    rows = []
    for pipeline, tried in TRIED.items():
        for trial in tried:
            folder = folder_of(options.runs, pipeline, trial)
            if finished(folder):
                found = json.loads((folder / "metrics.json").read_text())
                error = f"{100 * found['test_error_rate']:.2f}"
                rows.append([pipeline, *(trial.get(key, "") for key in KEYS), error, found["macs"]])
    if rows:
        header = ["pipeline", *KEYS, "validation error, %", "multiply-accumulates"]
        with (options.out / "mnist-trials.csv").open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows([header, *rows])


def write(options: Any) -> None:
    """Write the page of what is there."""
    original = options.dataset == "mnist"
    header = ["pipeline", "test error, %", "features", "multiply-accumulates"]
    header += ["training images", "seconds by stage", "peak memory, GiB"]
    pipelines = table(header, measured(options))
    keep_runs(options.out, options.dataset, figures_of_runs(options.runs))
    if not original:
        write_page(options.out, "fashion-mnist", pipelines=pipelines, remark=options.remark)
        return
    write_trials(options)
    write_page(
        options.out,
        "mnist",
        pipelines=pipelines,
        remark=options.remark,
        held_out=HELD_OUT,
    )


def main() -> None:
    """Run what is missing and write the page."""
    parser = arguments(__doc__)
    parser.add_argument("--dataset", choices=DATASETS, default="mnist", help="default mnist")
    parser.add_argument("--runs", type=Path, help="folder of runs (default out/DATASET-runs)")
    parser.add_argument("--pipelines", nargs="*", default=PIPELINES, choices=PIPELINES)
    parser.add_argument(
        "--trials", action="store_true", help="settings on validation images instead"
    )
    parser.add_argument("--remark", default="", help="how the runs were made, for the page")
    options = parser.parse_args()
    options.runs = options.runs or Path(f"out/{options.dataset}-runs")
    if options.trials and options.dataset != "mnist":
        parser.error("--trials choose settings on mnist alone")
    for pipeline in options.pipelines:
        if options.trials:
            for trial in TRIED.get(pipeline, []):
                folder = folder_of(options.runs, pipeline, trial)
                run(pipeline, settings_of(trial), folder, options)
        else:
            for seed in range(options.seeds):
                settings = [f"seed={seed}", f"data.source={options.dataset}"]
                settings += FEW if options.quick else ()
                run(pipeline, settings, options.runs / f"{pipeline}-{seed}", options)
    write(options)


if __name__ == "__main__":
    main()
