"""All pages of docs/results that scripts.reproduce makes, in one run at one commit.

    python -m scripts.reproduce.all --data DIR --quick     # one seed of small parts
    python -m scripts.reproduce.all --data DIR             # all seeds

Peers need `pip install -e '.[dev,benchmarks]'`. Pages, raw runs and logs are in out/pages-COMMIT. A
run that is stopped goes on: pages that are there stay. What each page took is printed, and kept in
all.json. Comparisons with other classifiers are pages of benchmarks.peers, benchmarks.pictures and
benchmarks.edge.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

from scripts.reproduce.results import arguments, commit, stopwatch, table
from visionshare.files.durable import write_text


class Page(NamedTuple):
    """A script and its options; hours of all seeds on one core, by the seconds of the raw runs."""

    module: str
    hours: float
    seeds: int = 5
    options: tuple[str, ...] = ()
    quick: tuple[str, ...] = ()
    keeps_runs: bool = False
    reads_data: bool = True

    @property
    def name(self) -> str:
        """The script, and the set that it is run on."""
        return "-".join([self.module, *self.options[1:2]])


FEW_IMAGES = ("--images", "1000", "--rounds", "6", "--templates", "20", "--copies", "1")
FEW_PIPELINES = ("--pipelines", "mnist-266")
FEW_LAYERS = ("--pipelines", "mnist-200k", "cifar10-500k")
PAGES = (
    # ShareBoost
    Page("synthetic_sharing", 0.3),
    Page("features_against_classes", 1),
    Page("error_against_sparsity", 1, 3),
    Page("mnist_steps", 14, 3, (), FEW_IMAGES, keeps_runs=True),
    Page("mnist", 3, 3, ("--dataset", "mnist"), FEW_PIPELINES, keeps_runs=True),
    Page("mnist", 1, 1, ("--dataset", "fashion-mnist"), FEW_PIPELINES, keeps_runs=True),
    Page("anchors", 2, 3, keeps_runs=True),
    # Boosting with structural sparsity
    Page("regression_boosting", 1, 3),
    Page("text_boosting", 0.4, 3),
    Page("coverage", 0.5),
    Page("kernel_hypotheses", 3, 3, keeps_runs=True),
    # Infinitely many features
    Page("solvers", 0.5),
    Page("brodatz", 3, keeps_runs=True),
    Page("moved_filters", 0.1),
    Page("kernels", 2, quick=("--long", "0")),
    Page("adult_examples", 0.5),
    Page("moved_draws", 1),
    Page("support_vectors", 0.5, 5, ("--set", "adult")),
    Page("support_vectors", 0.5, 5, ("--set", "spambase")),
    # GreedyTL
    Page("transfer", 0.5, 10),
    Page("transfer_network", 1, 10, keeps_runs=True),
    # Sparsifiability
    Page("sparsification", 0.2),
    # The library
    Page("sparse_peers", 0.2, 3),
    Page("screening", 0.2),
    Page("scaling", 1.5, keeps_runs=True),
    Page("layers", 3, 3, (), FEW_LAYERS, keeps_runs=True),
    Page("mosaics", 0.2),
    Page("ocr", 0.5),
    Page("exports", 0.1),
    Page("extraction", 1.2, keeps_runs=True, reads_data=False),
    Page("reliability", 1, keeps_runs=True, reads_data=False),
)


def command_of(page: Page, options: argparse.Namespace) -> list[str]:
    """Return the command that makes a page."""
    command = [sys.executable, "-m", f"scripts.reproduce.{page.module}", *page.options]
    command += ["--out", str(options.out)]
    if page.reads_data:
        command += ["--data", str(options.data), "--jobs", str(options.jobs)]
        command += ["--seeds", str(page.seeds)]
    if page.keeps_runs:
        command += ["--runs", str(options.out / "runs" / page.name)]
    return [*command, *page.quick, "--quick"] if options.quick else command


def make(page: Page, options: argparse.Namespace) -> dict[str, Any]:
    """Make a page and return how its script ended, with the seconds that it took."""
    log = options.out / "logs" / f"{page.name}.txt"
    log.parent.mkdir(parents=True, exist_ok=True)
    command = command_of(page, options)
    with log.open("w") as file, stopwatch() as seconds, stopwatch(_of_children) as processor:
        ended = subprocess.run(command, stdout=file, stderr=subprocess.STDOUT)
    return {
        "seconds": round(seconds[0]),
        "processor_seconds": round(processor[0]),
        "failed": ended.returncode != 0,
    }


def _of_children() -> float:
    """Return the seconds of a processor that commands have taken so far; 0 on Windows."""
    return os.times().children_user + os.times().children_system


def main() -> None:
    """Make the pages that are missing; end with an error where one failed."""
    hours = sum(page.hours for page in PAGES)
    parser = arguments(f"{__doc__}\nAll seeds take about {hours:.0f} hours on one core.")
    names = [page.name for page in PAGES]
    parser.add_argument("--only", nargs="+", choices=names, default=names, help="these pages")
    parser.set_defaults(out=None)
    options = parser.parse_args()
    options.out = options.out or Path("out") / f"pages-{commit()}{'-quick' * options.quick}"
    kept = options.out / "all.json"
    done: dict[str, Any] = json.loads(kept.read_text("utf-8")) if kept.is_file() else {}
    for page in PAGES:
        if page.name in options.only and done.get(page.name, {"failed": True})["failed"]:
            print(page.name, flush=True)
            done[page.name] = make(page, options)
            write_text(kept, json.dumps(done, indent=1) + "\n")
    rows = [
        [name, one["seconds"], one["processor_seconds"], "failed" if one["failed"] else ""]
        for name, one in done.items()
    ]
    rows.append(["all", *(sum(row[i] for row in rows) for i in (1, 2)), ""])
    print(table(["page", "seconds", "processor seconds", ""], rows))
    if any(one["failed"] for one in done.values()):
        raise SystemExit(f"some pages failed: their logs are in {options.out / 'logs'}")


if __name__ == "__main__":
    main()
