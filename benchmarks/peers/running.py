"""Trains the peers one after another, times all of them in turn and writes page and picture."""

from __future__ import annotations

import argparse
import importlib
import itertools
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.architectures import KINDS
from benchmarks.peers import page
from benchmarks.peers.logic_gates import GateNetwork
from benchmarks.peers.networks import Network
from benchmarks.peers.ours import WAYS, name_of, ours, read, seed_of
from benchmarks.peers.peer import Choice, Effort, Trained, processor_stopwatch
from benchmarks.peers.plot import OURS
from benchmarks.peers.record import Record, Run
from benchmarks.peers.timing import BATCH, microseconds, threads
from scripts.reproduce.results import RESULTS, commit
from visionshare import CompactClassifier
from visionshare.datasets import ImageSet, load_images
from visionshare.errors import ExportError, InputError, VisionshareError
from visionshare.files.fingerprints import file_digest
from visionshare.machine.resources import resolve_jobs
from visionshare.recipes import load_recipe

__all__ = ["BUDGETS", "PEERS", "Peer", "main", "missing"]

# The data sets, and the recipe of each whose deformations the networks see: one of ours.
_RECIPES = {
    "mnist": "mnist-quick",
    "fashion-mnist": "fashion-400k",
    "cifar10": "cifar10-500k",
    "digits": "mnist-quick",
}
SETS = tuple(_RECIPES)
QUICK, ROUNDS, QUICK_ROUNDS = 1000, 5, 2
# Multiply-accumulates, in millions.
BUDGETS = (0.1, 0.2, 0.4, 1.0)
NETWORKS = ("torch", "onnx", "onnxruntime")
Predictor = Callable[[np.ndarray], np.ndarray]


class Peer(NamedTuple):
    """A peer of the table.

    Attributes
    ----------
    name : str
    module : str
        Of this folder: with a function ``learn``, and ``tune`` where there is something to choose.
    packages : tuple of str
        That it needs.
    arguments : tuple
        That both functions take after all others.
    seeded : bool
        Whether another seed gives another classifier.
    color : bool
        Whether it takes images of three channels.
    group : str
        Whom it is drawn with and shares chosen settings with; its name when empty.
    predicts_alone : bool
        Whether what it learned predicts without its packages.
    """

    name: str
    module: str
    packages: tuple[str, ...] = ()
    arguments: tuple[Any, ...] = ()
    seeded: bool = True
    color: bool = True
    group: str = ""
    predicts_alone: bool = False

    def tune(self, train: ImageSet, effort: Effort) -> Choice | None:
        """Choose its settings; its packages are imported here and not before."""
        tune = getattr(self._module, "tune", None)
        return None if tune is None else tune(train, effort, *self.arguments)

    def learn(self, train: ImageSet, effort: Effort, choice: Choice) -> Trained:
        """Train it with the settings that were chosen."""
        trained: Trained = self._module.learn(train, effort, choice, *self.arguments)
        return trained

    def untrained(self, train: ImageSet) -> Predictor | None:
        """Return what takes as long as if it had been trained; None where that depends on it."""
        make = getattr(self._module, "untrained", None)
        return None if make is None or missing(self) else make(train, *self.arguments)

    @property
    def _module(self) -> Any:
        return importlib.import_module(f"benchmarks.peers.{self.module}")


def _networks() -> dict[str, Peer]:
    """Return the deformed networks: each kind within each budget."""
    found = {}
    kinds = [(key, kind) for key, kind in KINDS.items() if kind.of_any_width]
    for (key, kind), budget in itertools.product(kinds, BUDGETS):
        network = Network(key, 1e6 * budget, True)
        name, group = f"{kind.name}, {budget:g} M, deformed", f"{kind.name}, deformed"
        found[f"{key}-{budget:g}"] = Peer(name, "networks", NETWORKS, (network,), group=group)
    return found


def _logic_gates() -> dict[str, Peer]:
    """Return the two networks of gates of difflogic's authors, with and without deformations."""
    found = {}
    for (width, temperature), deformed in itertools.product(((8000, 10.0), (64000, 30.0)), (0, 1)):
        network = GateNetwork(width, 6, temperature, bool(deformed))
        key, name = f"gates-{6 * width // 1000}k", f"logic gates, {6 * width:,}"
        if deformed:
            key, name = f"{key}-deformed", f"{name}, deformed"
        packages = ("difflogic", "torch")
        found[key] = Peer(
            name, "logic_gates", packages, (network,), color=False, predicts_alone=True
        )
    return found


PEERS = {
    **_networks(),
    "lenet": Peer("LeNet-5", "networks", NETWORKS, (Network("lenet", None, False),)),
    "resnet8": Peer("ResNet8, deformed", "networks", NETWORKS, (Network("resnet8", None, True),)),
    "gradients": Peer("HOG, Gaussian SVM", "oriented_gradients", seeded=False),
    "svm": Peer("Gaussian SVM", "svm", seeded=False),
    "trees": Peer("LightGBM", "boosted_trees", ("lightgbm",)),
    "neighbors": Peer("3 nearest neighbors", "neighbors", seeded=False),
    "convolutions": Peer("random convolutions, ridge", "random_convolutions", color=False),
    "scattering": Peer("scattering, ridge", "scattering", ("kymatio",), seeded=False, color=False),
    "tsetlin": Peer("Tsetlin machine", "tsetlin", ("tmu",), color=False),
    **_logic_gates(),
}


def missing(peer: Peer) -> list[str]:
    """Return the packages that a peer needs and that are not installed."""
    return [name for name in peer.packages if find_spec(name) is None]


def _errors(predict: Predictor, test: ImageSet) -> int:
    with threads(1):
        parts = [predict(test.images[i : i + BATCH]) for i in range(0, len(test), BATCH)]
    return int(np.sum(np.concatenate(parts) != test.labels))


class Work:
    """A record that grows: peers and ours are measured on one pair of training and test images."""

    def __init__(self, record: Record, train: ImageSet, test: ImageSet) -> None:
        self.record, self.train, self.test = record, train, test
        self.left_out: list[str] = []
        self.predictors: dict[str, Predictor] = {}

    def add_ours(
        self, file: Path, classifier: CompactClassifier, way: str, times_only: bool = False
    ) -> None:
        """Evaluate one of ours, if its file was not evaluated before, or its times alone count."""
        name, digest = f"{OURS}, {name_of(file)}, {way}", file_digest(file)
        done = self.record.has(name, seed_of(file), digest)
        done = done or (times_only and name in [entry.name for entry in self.record.entries()])
        if done and name in self.predictors:
            return
        try:
            trained = ours(file, classifier, way, self.test)
        except ExportError as error:
            self.left_out.append(f"{name} is left out: {error}")
            return
        self.predictors.setdefault(name, trained.predict)
        if not done:
            run = Run.of(trained, _errors(trained.predict, self.test), digest)
            self._keep(name, f"{OURS}, {way}", seed_of(file), run)

    def add_peers(self, peers: Sequence[Peer], effort: Effort, seeds: int) -> None:
        """Tune and train peers with the seeds that are not there yet.

        All have their first seed before one has a second: what is stopped has a row of each.
        """
        here = [peer for peer in peers if self._possible(peer, seeds)]
        for seed, peer in itertools.product(range(seeds), here):
            if self._wants(peer, seed):
                self._add_run(peer, effort._replace(seed=seed))
        for peer in here:
            model = self.record.model(peer.name) or peer.untrained(self.train)
            if model is not None:
                self.predictors[peer.name] = model

    def _wants(self, peer: Peer, seed: int) -> bool:
        return (peer.seeded or seed == 0) and not self.record.has(peer.name, seed)

    def _possible(self, peer: Peer, seeds: int) -> bool:
        """Return whether a peer can be trained or timed here; if not, note why."""
        if lacking := missing(peer):
            wanted = any(self._wants(peer, seed) for seed in range(seeds))
            if wanted:
                self.left_out.append(f"{peer.name} is left out: no {', '.join(lacking)} here.")
            if wanted or not peer.predicts_alone:
                return False
        if not peer.color and self.train.images.ndim > 3:
            self.left_out.append(f"{peer.name} is left out: it takes images of one channel.")
            return False
        return True

    def _add_run(self, peer: Peer, effort: Effort) -> None:
        trained = peer.learn(self.train, effort, self._choice(peer, effort))
        if effort.seed == 0:
            self.record.keep_model(peer.name, trained.predict)
        run = Run.of(trained, _errors(trained.predict, self.test))
        self._keep(peer.name, peer.group or peer.name, effort.seed, run)

    def _choice(self, peer: Peer, effort: Effort) -> Choice:
        """Return the settings of a peer's group, chosen now or before."""
        group = peer.group or peer.name
        found = self.record.choice(group)
        if found is not None:
            return found
        with processor_stopwatch() as seconds:
            chosen = peer.tune(self.train, effort)
        if chosen is None:
            return {}
        self.record.keep_choice(group, chosen, seconds[0])
        return chosen

    def _keep(self, name: str, group: str, seed: int, run: Run) -> None:
        self.record.keep_run(name, group, seed, run)
        error = f"{100 * run.errors / len(self.test):.2f} %"
        print(name, f"seed {seed}", error, run.seconds, run.settings, flush=True)


def _arguments(given: Sequence[str] | None, peers: Mapping[str, Peer]) -> argparse.Namespace:
    raw = argparse.RawDescriptionHelpFormatter
    program = "python -m benchmarks.peers"
    parser = argparse.ArgumentParser(program, None, __doc__, formatter_class=raw)
    parser.add_argument("--data", type=Path, help="folder with the data sets")
    parser.add_argument("--set", choices=SETS, default="mnist", help="default mnist")
    parser.add_argument("--ours", type=Path, nargs="*", default=[], help="classifier files")
    parser.add_argument("--peers", nargs="*", choices=peers, default=list(peers), help="all")
    parser.add_argument("--seeds", type=int, default=3, help="trainings of each (default 3)")
    parser.add_argument("--seconds", type=float, default=60.0, help="of a network's training")
    parser.add_argument("--tuning", type=float, help="seconds (default 3 times those of training)")
    parser.add_argument("--recipe", help="whose [deformations] are used (default: by the set)")
    parser.add_argument("--json", type=Path, help="results, kept (default out/peers/SET.json)")
    parser.add_argument("--jobs", type=int, default=-1, help="threads of training (default all)")
    parser.add_argument("--times-only", action="store_true", help="errors of ours stay as they are")
    parser.add_argument("--quick", action="store_true", help="a small part, to see it run")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of page and picture")
    parser.add_argument("--page", help="its name (default peers, or peers-SET)")
    return parser.parse_args(given)


def _effort(options: argparse.Namespace) -> Effort:
    for name in ("seconds", "tuning", "seeds"):
        value = getattr(options, name)
        if value is not None and not (np.isfinite(value) and value > 0):
            raise InputError(name, value, "a number above 0")
    tuning = 3 * options.seconds if options.tuning is None else options.tuning
    jobs = resolve_jobs(options.jobs, "jobs")
    recipe = _RECIPES[options.set] if options.recipe is None else options.recipe
    return Effort(jobs, options.quick, 0, options.seconds, tuning, recipe)


def _conditions(
    name: str, effort: Effort, train: ImageSet, test: ImageSet
) -> dict[str, float | bool | str | dict[str, float | str]]:
    """Return what must be the same for measurements to stand in one record."""
    recipe = load_recipe(effort.recipe)
    if recipe.deformations is None:
        raise InputError("recipe", effort.recipe, "a recipe with [deformations]")
    return {
        "set": name,
        "training images": len(train),
        "test images": len(test),
        "threads": effort.jobs,
        "seconds": effort.seconds,
        "tuning": effort.tuning,
        "recipe": recipe.name,
        "deformations": {k: v for k, v in recipe.deformations.as_arguments().items() if v},
        "quick": effort.quick,
    }


def _measure(options: argparse.Namespace, peers: Mapping[str, Peer]) -> None:
    effort = _effort(options)
    train, test = (load_images(options.set, split, options.data) for split in ("train", "test"))
    if options.quick:
        order = np.random.default_rng(0).permutation(len(train))
        train, test = train.subset(order[:QUICK]), test.subset(slice(QUICK))
    classifiers = {(name_of(f), seed_of(f)): (f, read(f, test)) for f in options.ours}
    if len(classifiers) < len(options.ours):
        raise InputError("ours", [str(file) for file in options.ours], "files of different names")
    file = options.json or Path("out") / "peers" / f"{options.set}.json"
    record = Record(file, _conditions(options.set, effort, train, test))
    work = Work(record, train, test)
    for (path, classifier), way in itertools.product(classifiers.values(), WAYS):
        work.add_ours(path, classifier, way, options.times_only)
    work.add_peers([peers[key] for key in options.peers], effort, options.seeds)
    rounds = QUICK_ROUNDS if effort.quick else ROUNDS
    machine = page.machine_values()
    record.keep_times(microseconds(work.predictors, test.images, rounds), machine["processor"])
    record.keep_machine(machine)
    page.write(options.out, record, work.left_out, rounds, options.page)


def main(given: Sequence[str] | None = None, peers: Mapping[str, Peer] = PEERS) -> None:
    """Read the command line, measure ``peers`` and write page and picture."""
    # Read before training: a commit that is made meanwhile is not the code that runs.
    commit()
    try:
        _measure(_arguments(given, peers), peers)
    except VisionshareError as error:
        sys.exit(f"benchmarks.peers: {error}")
