"""Trains the peers one after another, times all of them in turn and writes the page."""

from __future__ import annotations

import argparse
import importlib
import itertools
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.peers.ours import WAYS, name_of, ours, read
from benchmarks.peers.peer import Effort, Trained
from benchmarks.peers.timing import BATCH, microseconds, threads
from scripts.reproduce.results import RESULTS, table, write_page
from visionshare.datasets import ImageSet, load_images
from visionshare.errors import ExportError, InputError, VisionshareError
from visionshare.resources import resolve_jobs

__all__ = ["PEERS", "Peer", "main", "missing"]

DATASETS = ("mnist", "fashion-mnist", "digits")
QUICK, ROUNDS, QUICK_ROUNDS = 1000, 5, 2


class Peer(NamedTuple):
    """Its name in the table, the module of this folder that learns, the packages that it needs."""

    name: str
    module: str
    packages: tuple[str, ...] = ()

    def learn(self, train: ImageSet, effort: Effort) -> Trained:
        """Train it; its packages are imported here and not before."""
        module = importlib.import_module(f"benchmarks.peers.{self.module}")
        trained: Trained = module.learn(train, effort)
        return trained


PEERS = {
    "lenet": Peer("LeNet-5", "lenet", ("torch", "onnx", "onnxruntime")),
    "svm": Peer("Gaussian SVM", "svm"),
    "trees": Peer("LightGBM", "boosted_trees", ("lightgbm",)),
    "neighbors": Peer("3 nearest neighbors", "neighbors"),
    "convolutions": Peer("random convolutions, ridge", "random_convolutions"),
}


class Row(NamedTuple):
    """A trained peer and its errors on the test images."""

    trained: Trained
    errors: int


def missing(peer: Peer) -> list[str]:
    """Return the packages that a peer needs and that are not installed."""
    return [name for name in peer.packages if find_spec(name) is None]


def _errors(predict: Callable[[np.ndarray], np.ndarray], test: ImageSet) -> int:
    with threads(1):
        parts = [predict(test.images[i : i + BATCH]) for i in range(0, len(test), BATCH)]
    return int(np.sum(np.concatenate(parts) != test.labels))


def _processor() -> str:
    """Return the name of the processor, where the system says it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return "unknown"
    return next(
        (x.split(":", 1)[1].strip() for x in lines if x.startswith("model name")), "unknown"
    )


def _write_page(
    options: argparse.Namespace,
    rows: dict[str, Row],
    left_out: Sequence[str],
    train: ImageSet,
    test: ImageSet,
    effort: Effort,
) -> None:
    """Time all that was trained and write the page."""
    predictors = {name: row.trained.predict for name, row in rows.items()}
    rounds = QUICK_ROUNDS if effort.quick else ROUNDS
    timed = microseconds(predictors, test.images, rounds)
    cells = []
    for name, (trained, errors) in rows.items():
        seconds = "–" if trained.seconds is None else f"{trained.seconds:.1f}"
        tuning = f"{trained.tuning:.0f}" if trained.tuning else "–"
        cells.append([name, seconds, tuning, f"{100 * errors / len(test):.2f}", trained.cost])
        cells[-1] += [f"{timed[name].single:.1f}", f"{timed[name].batch:.1f}"]
    header = ["classifier", "training, s", "tuning, s", "error, %"]
    header += ["multiply-accumulates per image", "µs per image, one at a time"]
    header += [f"µs per image, batches of {min(BATCH, len(test))}"]
    packages = ["numpy", "scipy", "scikit-learn", "numba", "onnxruntime"]
    installed = [name for name in packages if find_spec(_module(name))]
    settings = [f"- **{name}**: {row.trained.settings}" for name, row in rows.items()]
    write_page(
        options.out,
        "peers",
        "peers" if options.dataset == "mnist" else f"peers-{options.dataset}",
        data_set=train.name,
        quick="A quick run, to see it work." if effort.quick else "",
        n_train=len(train),
        n_test=len(test),
        figures=table(header, cells),
        left_out="\n\n".join(left_out),
        jobs=effort.jobs,
        rounds=rounds,
        settings="\n".join(line.replace("\n", " ") for line in settings),
        processor=_processor(),
        versions=", ".join(f"{name} {version(name)}" for name in installed),
    )


def _module(distribution: str) -> str:
    return {"scikit-learn": "sklearn"}.get(distribution, distribution)


def _arguments(given: Sequence[str] | None, peers: Mapping[str, Peer]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__)
    parser.add_argument("--data", type=Path, help="folder with the data sets")
    parser.add_argument("--dataset", choices=DATASETS, default="mnist", help="default mnist")
    parser.add_argument("--ours", type=Path, nargs="*", default=[], help="classifier files")
    parser.add_argument("--peers", nargs="*", choices=peers, default=list(peers), help="all")
    parser.add_argument("--jobs", type=int, default=-1, help="threads of training (default all)")
    parser.add_argument("--quick", action="store_true", help="a small part, to see it run")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of the page")
    return parser.parse_args(given)


def _measure(options: argparse.Namespace, peers: Mapping[str, Peer]) -> None:
    train, test = (load_images(options.dataset, s, options.data) for s in ("train", "test"))
    effort = Effort(resolve_jobs(options.jobs, "jobs"), options.quick)
    if options.quick:
        order = np.random.default_rng(0).permutation(len(train))
        train, test = train.subset(order[:QUICK]), test.subset(slice(QUICK))
    classifiers = {name_of(file): (file, read(file, test)) for file in options.ours}
    if len(classifiers) < len(options.ours):
        raise InputError("ours", sorted(map(name_of, options.ours)), "files of different names")
    rows: dict[str, Row] = {}
    left_out = []

    def add(name: str, trained: Trained) -> None:
        rows[name] = Row(trained, _errors(trained.predict, test))
        error = f"{100 * rows[name].errors / len(test):.2f} %"
        print(name, error, trained.seconds, trained.tuning, trained.settings, flush=True)

    for (name, (file, classifier)), way in itertools.product(classifiers.items(), WAYS):
        try:
            add(f"visionshare, {name}, {way}", ours(file, classifier, way, test))
        except ExportError as error:
            left_out.append(f"{name} in {way} is left out: {error}")
    for peer in (peers[key] for key in options.peers):
        if lacking := missing(peer):
            left_out.append(f"{peer.name} is left out: no {', '.join(lacking)} here.")
        else:
            add(peer.name, peer.learn(train, effort))
    unasked = ", ".join(peer.name for key, peer in peers.items() if key not in options.peers)
    left_out += [f"Not asked for: {unasked}."] if unasked else []
    _write_page(options, rows, left_out, train, test, effort)


def main(given: Sequence[str] | None = None, peers: Mapping[str, Peer] = PEERS) -> None:
    """Read the command line, measure ``peers`` and write the page."""
    try:
        _measure(_arguments(given, peers), peers)
    except VisionshareError as error:
        sys.exit(f"benchmarks.peers: {error}")
