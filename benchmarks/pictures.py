"""ImageClassifier without an option beside peers, on the same training and test images.

    python -m benchmarks.pictures --data DIR --set digits chars74k --seeds 3 --json FILE

Without --set, those sets that the defaults were made with; benchmarks/picture_sets.py has others.
Peers choose their settings on a part of the training images, as in benchmarks.peers; those whose
packages are not installed are left out. The LeNet has as many multiply-accumulates as our
classifier of the same seed, copies deformed alike, and as many seconds for tuning and training
together. Seconds are processor time. What a stopped run kept in its file is not done again;
--page writes the page of what is there.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benchmarks.peers.networks import Network
from benchmarks.peers.peer import Effort
from benchmarks.peers.running import NETWORKS, PEERS, Peer, missing
from benchmarks.picture_sets import KNOWN, SETS, UNSEEN, for_peers, load
from scripts.reproduce.results import RESULTS, commit, pyplot, spread, table, write_page
from visionshare import ImageClassifier
from visionshare.datasets import ImageSet
from visionshare.datasets.sampling import stratified_mask
from visionshare.files.durable import write_text
from visionshare.generators.pretrained import efficientnet
from visionshare.image_classifier.augmenting import deformed
from visionshare.image_classifier.proposals import Data
from visionshare.recipes import load_recipe
from visionshare.recipes.writing import toml_text

__all__ = ["PEER_NAMES", "comparison", "main"]

OURS = "ImageClassifier"
WITH_NETWORK = "with EfficientNet-Lite0"
PEER_NAMES = ("pretrained", "network", "gradients", "trees")
Result = dict[str, Any]
LENET = "LeNet-5 at equal cost"
WHO = (OURS, WITH_NETWORK, LENET, "HOG, Gaussian SVM", "LightGBM")
# Of what our classifier takes: the LeNet's seconds of training; the others are those of tuning.
_TRAINING = 0.25


def _part(images: ImageSet, most: int | None, seed: int) -> ImageSet:
    if most is None or most >= len(images):
        return images
    return images.subset(np.flatnonzero(stratified_mask(images.labels, most / len(images), seed)))


def run_ours(train: ImageSet, test: ImageSet, seed: int, *, pretrained: bool) -> Result:
    """Return what ImageClassifier does on one thread, with or without a pretrained network."""
    begun = time.process_time()
    model = ImageClassifier(random_state=seed, n_jobs=1, pretrained=pretrained)
    model.fit(train.images, train.labels)
    seconds = time.process_time() - begun
    return {
        "error": _error(model.predict, test),
        "seconds": seconds,
        "macs": model.cost_["macs"],
        "recipe": model.recipe_,
        "chosen": str(model),
    }


def _error(predict: Callable[[np.ndarray], np.ndarray], test: ImageSet) -> float:
    parts = [predict(test.images[i : i + 1000]) for i in range(0, len(test), 1000)]
    return float(np.mean(np.concatenate(parts) != test.labels))


def run_peer(peer: Peer, train: ImageSet, test: ImageSet, effort: Effort) -> Result:
    """Return what a peer does, its settings chosen on training images."""
    begun = time.process_time()
    choice = peer.tune(train, effort) or {}
    trained = peer.learn(train, effort, choice)
    seconds = time.process_time() - begun
    return {"error": _error(trained.predict, test), "seconds": seconds, "macs": trained.macs}


def run_lenet(train: ImageSet, test: ImageSet, seed: int, ours: Result, folder: Path) -> Result:
    """Return what a LeNet does that has what ours had."""
    recipe = folder / "deformations.toml"
    write_text(recipe, _deforming(ours["recipe"], train))
    seconds = ours["seconds"]
    limits = (seconds * _TRAINING, seconds * (1 - _TRAINING))
    effort = Effort(1, False, seed, *limits, str(recipe))
    network = Network("lenet", float(ours["macs"]), True)
    return run_peer(Peer(LENET, "networks", NETWORKS, (network,)), train, test, effort)


def _deforming(recipe: str | None, train: ImageSet) -> str:
    """Return our recipe, if it deforms images; otherwise one with small deformations."""
    if recipe is not None and "[deformations]" in recipe:
        return recipe
    shape = train.images.shape[1:3]
    data = Data((*shape, 1), len(train), len(train.classes), False)
    values = {"copies": 0, **asdict(deformed(data)[0])}
    settings = [f"deformations.{k}={json.dumps(v)}" for k, v in values.items() if v is not None]
    return toml_text(load_recipe("digits", settings))


def comparison(results: Mapping[str, Result], sets: Iterable[str]) -> list[list[str]]:
    """Return a row for each set: its name, then the mean error of each classifier in percent."""
    found = []
    for name in _sets(results):
        if name.split(",")[0] not in sets:
            continue
        errors: dict[str, list[float]] = {who: [] for who in WHO}
        for about, result in results.items():
            of_set, who, _ = about.split(" | ")
            if of_set == name:
                errors[who].append(100 * result["error"])
        cells = [spread(values) if values else "–" for values in errors.values()]
        found.append([name.split(",")[0], *cells])
    return found


def draw(found: Sequence[Sequence[str]], file: Path) -> None:
    """Draw our error and the best peer's of each set, the largest error on top."""
    plot = pyplot()
    errors = np.array([[_number(cell) for cell in row[1:]] for row in found])
    order = np.argsort(errors[:, 0], kind="stable")
    figure, axes = plot.subplots(figsize=(8, 0.36 * len(found) + 0.9), layout="constrained")
    best = np.where(np.isnan(errors), np.inf, errors)[:, 2:].min(axis=1)
    for values, style, color, who in (
        (best, "s", "#8a6d3b", "best other"),
        (errors[:, 1], "D", "#2f9e6e", WITH_NETWORK),
        (errors[:, 0], "o", "#1d6fb8", OURS),
    ):
        axes.plot(values[order], range(len(found)), style, color=color, label=who, markersize=8)
    axes.set_yticks(range(len(found)), [found[i][0] for i in order])
    axes.set_xscale("log")
    axes.set_xticks([1, 2, 5, 10, 20, 50], ["1", "2", "5", "10", "20", "50"])
    axes.minorticks_off()
    axes.set_xlabel("test error, %")
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(file, dpi=110)
    plot.close(figure)


def _number(cell: str) -> float:
    return np.nan if cell == "–" else float(cell.split()[0])


def _sets(results: Mapping[str, Result]) -> list[str]:
    return list(dict.fromkeys(about.split(" | ")[0] for about in results))


def write(file: Path, out: Path) -> None:
    """Write the page of the results of a file."""
    results = json.loads(file.read_text())
    header = ["test error, %", *WHO]
    known = comparison(results, set(SETS) - set(UNSEEN))
    unseen = comparison(results, UNSEEN)
    draw([*known, *unseen], out / "own-pictures.png")
    write_page(out, "own-pictures", known=table(header, known), unseen=table(header, unseen))


def main(given: Sequence[str] | None = None) -> None:
    """Run what is asked for and not there yet, and print each result."""
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser("python -m benchmarks.pictures", None, __doc__, None, [], raw)
    parser.add_argument("--data", type=Path, required=True, help="folder with the data sets")
    parser.add_argument(
        "--set",
        nargs="*",
        choices=SETS,
        default=list(KNOWN),
        metavar="SET",
        help="default those that the defaults were made with",
    )
    parser.add_argument("--train", type=int, help="training images at most")
    parser.add_argument("--test", type=int, help="test images at most")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--json", type=Path, default=RESULTS / "own-pictures.json")
    parser.add_argument("--peers", nargs="*", choices=PEER_NAMES, default=list(PEER_NAMES))
    parser.add_argument("--page", action="store_true", help="write docs/results/own-pictures.md")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of the page")
    options = parser.parse_args(given)
    results = json.loads(options.json.read_text()) if options.json.is_file() else {}
    for seed, name in itertools.product(range(options.seeds), options.set):
        train, test = load(name, options.data)
        train, test = _part(train, options.train, 0), _part(test, options.test, 0)
        title = f"{name}, {len(train)} training and {len(test)} test images"
        for key, who, run in _runs(results, title, train, test, seed):
            about = f"{title} | {who} | {seed}"
            if about in results or key not in (None, *options.peers):
                continue
            results[about] = {**run(), "commit": commit()}
            write_text(options.json, json.dumps(results, indent=1) + "\n")
            percent, seconds = 100 * results[about]["error"], results[about]["seconds"]
            sys.stdout.write(f"{about}: {percent:.2f} %, {seconds:.0f} s\n")
            sys.stdout.flush()
    if options.page:
        write(options.json, options.out)


def _runs(
    results: Mapping[str, Result], title: str, train: ImageSet, test: ImageSet, seed: int
) -> Iterator[tuple[str | None, str, Callable[[], Result]]]:
    """Yield what is to be run with a seed: its key, its name; ours first, others depend on it."""
    yield None, OURS, lambda: run_ours(train, test, seed, pretrained=False)
    if efficientnet.is_installed():
        yield (
            PEER_NAMES[0],
            WITH_NETWORK,
            lambda: run_ours(train, test, seed, pretrained=True),
        )
    shrunk = for_peers(train), for_peers(test)
    if all(find_spec(package) for package in NETWORKS):

        def lenet() -> Result:
            ours = results[f"{title} | {OURS} | {seed}"]
            with TemporaryDirectory() as folder:
                return run_lenet(*shrunk, seed, ours, Path(folder))

        yield PEER_NAMES[1], LENET, lenet
    for key in PEER_NAMES[2:]:
        peer, effort = PEERS[key], Effort(1, False, seed)
        if not missing(peer) and (seed == 0 or peer.seeded):
            yield key, peer.name, partial(run_peer, peer, *shrunk, effort)


if __name__ == "__main__":
    main()
