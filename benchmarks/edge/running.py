"""The command: contenders, one after the other, on every core."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.edge import networks
from benchmarks.edge.brought import brought
from benchmarks.edge.contender import Contender
from benchmarks.edge.emlearn_trees import SIZES, available, learn_trees
from benchmarks.edge.native import native_labels
from benchmarks.edge.ours import our_contenders
from benchmarks.edge.page import write
from visionshare.export.targets import OPTIMIZATIONS, find_target, measure

__all__ = ["main", "measured"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, keep the figures in a file of JSON, and write the page of all files beside it."""
    parser = argparse.ArgumentParser(prog="benchmarks.edge", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with data sets")
    parser.add_argument("--set", default="mnist", help="a name of the catalog")
    parser.add_argument("--ours", type=Path, nargs="*", default=[], help="classifier files")
    parser.add_argument("--peer-c", type=Path, nargs="*", default=[], help="folders of C")
    parser.add_argument("--no-trees", action="store_true", help="leave emlearn out")
    parser.add_argument("--networks", type=float, help="seconds to train each network of int8")
    parser.add_argument("--recipe", default="mnist-quick", help="whose deformations they see")
    parser.add_argument("--seed", type=int, default=0, help="of the networks")
    parser.add_argument("--targets", nargs="*", default=["cortex-m0plus", "cortex-m4"])
    parser.add_argument("--optimize", choices=OPTIMIZATIONS, default="speed")
    parser.add_argument("--count", type=int, default=100, help="images on each core")
    parser.add_argument("--json", type=Path, required=True, help="file for the figures")
    parser.add_argument("--out", type=Path, help="folder for a page of all files beside --json")
    options = parser.parse_args(arguments)
    rows = []
    for contender in _contenders(options):
        rows.append(measured(contender, options.targets, options.optimize, options.count))
        print(json.dumps(rows[-1]), flush=True)
    run = {
        "set": options.set, "optimize": OPTIMIZATIONS[options.optimize], "count": options.count,
        "compiler": f"ziglang {version('ziglang')} and unicorn {version('unicorn')}", "rows": rows,
    }  # fmt: skip
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps(run, indent=1) + "\n", encoding="utf-8")
    if options.out is not None:
        runs = [
            json.loads(file.read_text(encoding="utf-8"))
            for file in sorted(options.json.parent.glob("*.json"), reverse=True)
        ]
        write(options.out, runs)


def _contenders(options: argparse.Namespace) -> Iterator[Contender]:
    for path in options.ours:
        yield from our_contenders(path, options.set, options.data)
    for folder in options.peer_c:
        yield brought(folder, options.set, options.data)
    if options.networks is not None:
        if not networks.available():
            raise ImportError("networks need torch, onnxruntime and emx-onnx-cgen")
        for network in networks.NETWORKS:
            yield networks.learn_network(
                options.set, options.data, network, options.networks, options.recipe, options.seed
            )
    if available() and not options.no_trees:
        for n_trees, n_leaves in SIZES:
            yield learn_trees(options.set, options.data, n_trees, n_leaves)


def measured(
    contender: Contender, targets: Sequence[str], optimize: str, count: int
) -> dict[str, Any]:
    """Return the figures of a contender: its error, and what it takes on each core.

    Raises
    ------
    RuntimeError
        If a core gives an image another label than this machine.
    """
    labels = native_labels(contender.sources, contender.images)
    chosen = np.linspace(0, len(labels) - 1, min(count, len(labels))).astype(np.int64)
    cores = {}
    for name in targets:
        found = measure(contender.sources, find_target(name), contender.images[chosen], optimize)
        if not np.array_equal(found.labels, labels[chosen]):
            raise RuntimeError(f"{contender.name}: {name} and this machine differ")
        cores[name] = found.figures.as_dict()
    return {
        "name": contender.name, "error": 100 * float(np.mean(labels != contender.labels)),
        "images": len(labels), "macs": contender.macs, "seconds": contender.seconds,
        "cores": cores,
    }  # fmt: skip
