"""The command: contenders, one after the other, on every core."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks.edge import networks
from benchmarks.edge.agreement import agreement
from benchmarks.edge.apart import learned_apart
from benchmarks.edge.brought import brought
from benchmarks.edge.contender import Contender
from benchmarks.edge.emlearn_trees import SIZES, available, learn_trees
from benchmarks.edge.ours import our_contenders
from benchmarks.edge.page import write
from benchmarks.edge.rows import kept_and_new, measured, of_seeds
from benchmarks.edge.tflite import tflite_row
from visionshare.export.targets import OPTIMIZATIONS

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, keep the figures in a file of JSON, and write the page of all files beside it.

    Rows of the file that are not measured anew stay.
    """
    options = _options(arguments)
    rows: list[dict[str, Any]] = []
    for contender in _contenders(options):
        for optimize in options.optimize:
            rows.append(measured(contender, options.targets, optimize, options.count))
            print(json.dumps(rows[-1]), flush=True)
    micro = (options.tflm, options.targets, options.count)
    rows += [tflite_row(file, options.set, options.data, *micro) for file in options.tflite]
    _store(options, of_seeds(rows), [])
    for path in options.agree:
        found = agreement(
            path, options.set, options.data, options.agree_targets, options.agree_emulated
        )
        print(json.dumps(found), flush=True)
        _store(options, [], [found])
    if options.out is not None:
        runs = [
            json.loads(file.read_text(encoding="utf-8"))
            for file in sorted(options.json.parent.glob("*.json"), reverse=True)
        ]
        write(options.out, runs)


def _store(
    options: argparse.Namespace, rows: list[dict[str, Any]], agreed: list[dict[str, Any]]
) -> None:
    """Write new entries into the file, beside those that it has."""
    before = json.loads(options.json.read_text("utf-8")) if options.json.is_file() else {}
    run = {
        "set": options.set,
        "compiler": f"ziglang {version('ziglang')} and unicorn {version('unicorn')}",
        "rows": kept_and_new(before.get("rows", []), rows, "name", "optimize"),
        "agreement": kept_and_new(before.get("agreement", []), agreed, "name"),
    }
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps(run, indent=1) + "\n", encoding="utf-8")


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="benchmarks.edge", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with data sets")
    parser.add_argument("--set", default="mnist", help="a name of the catalog")
    parser.add_argument(
        "--ours", type=Path, nargs="*", default=[],
        help="classifier files; those of one pipeline, of several seeds, share a row",
    )  # fmt: skip
    parser.add_argument("--peer-c", type=Path, nargs="*", default=[], help="folders of C")
    parser.add_argument(
        "--tflite", type=Path, nargs="*", default=[],
        help="models of int8 for TensorFlow Lite Micro: errors by LiteRT's reference kernels",
    )  # fmt: skip
    parser.add_argument("--tflm", type=Path, help="folder of tflite-micro, see tflm.py")
    parser.add_argument("--no-trees", action="store_true", help="leave emlearn out")
    parser.add_argument("--networks", type=float, help="seconds to train each network of int8")
    parser.add_argument("--recipe", default="mnist-quick", help="whose deformations they see")
    parser.add_argument("--seeds", type=int, nargs="*", default=[0], help="of the networks")
    parser.add_argument("--targets", nargs="*", default=["cortex-m0plus", "cortex-m4"])
    parser.add_argument("--optimize", nargs="*", choices=OPTIMIZATIONS, default=["size"])
    parser.add_argument("--count", type=int, default=100, help="images on each core")
    parser.add_argument(
        "--agree", type=Path, nargs="*", default=[],
        help="classifier files of whole numbers, whose scores are compared everywhere",
    )  # fmt: skip
    parser.add_argument("--agree-targets", nargs="*", default=["cortex-m0plus", "cortex-m4"])
    parser.add_argument(
        "--agree-emulated", type=int, default=10_000, help="images on each core for --agree"
    )
    parser.add_argument("--json", type=Path, required=True, help="file for the figures")
    parser.add_argument("--out", type=Path, help="folder for a page of all files beside --json")
    return parser.parse_args(arguments)


def _contenders(options: argparse.Namespace) -> Iterator[Contender]:
    for path in options.ours:
        yield from our_contenders(path, options.set, options.data)
    for folder in options.peer_c:
        yield brought(folder, options.set, options.data)
    if options.networks is not None:
        if not networks.available():
            raise ImportError("networks need torch, onnxruntime and emx-onnx-cgen")
        for network in networks.NETWORKS:
            for seed in options.seeds:
                yield learned_apart(
                    networks.learn_network,
                    options.set, options.data, network, options.networks, options.recipe, seed,
                )  # fmt: skip
    if available() and not options.no_trees:
        for n_trees, n_leaves in SIZES:
            yield learned_apart(learn_trees, options.set, options.data, n_trees, n_leaves)
