"""ImageClassifier without an option beside peers, on the same training and test images.

    python -m benchmarks.pictures --data DIR --set digits chars74k --seeds 3 --json FILE

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
from collections.abc import Callable, Iterator, Mapping, Sequence
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
from scripts.reproduce.results import RESULTS, spread, table, write_page
from visionshare import ImageClassifier
from visionshare.datasets import Cut, ImageSet, Preprocessing, load_images
from visionshare.datasets.sampling import stratified_mask
from visionshare.durable import write_text
from visionshare.image_classifier.augmenting import deformed
from visionshare.image_classifier.proposals import Data
from visionshare.recipes import load_recipe
from visionshare.recipes.design.writing import toml_text

__all__ = ["PEER_NAMES", "SETS", "load", "main", "rows"]

SETS = ("digits", "fashion-mnist", "cifar10", "chars74k", "brodatz", "mnist")
OURS = "ImageClassifier"
PEER_NAMES = ("network", "gradients", "trees")
Result = dict[str, Any]
LENET = "LeNet-5 of as many multiply-accumulates"
# Of what our classifier takes: the LeNet's seconds of training; the others are those of tuning.
_TRAINING = 0.25
# Sides of the peers' images where a set has none of its own, and patches of each texture.
_SIDE, _PATCHES, _TEST_PART = 32, 200, 0.25


def load(name: str, data: Path) -> tuple[ImageSet, ImageSet]:
    """Return training and test images of a set.

    Chars74K has no split: a fourth of each class tests. Of textures the left halves train and the
    right ones test.
    """
    if name == "chars74k":
        images = load_characters(data / "chars74k" / "englishimg_good36_gray64.npz")
        testing = stratified_mask(images.labels, _TEST_PART, 0)
        return images.subset(np.flatnonzero(~testing)), images.subset(np.flatnonzero(testing))
    if name == "brodatz":
        folder, cut = data / "brodatz" / "usc-sipi", Cut(_SIDE, _PATCHES, 0)
        parts = [load_images(folder, split, cut=cut) for split in ("train", "test")]
        # Larger scans of two of the textures are left out.
        classes = [c for c in parts[0].classes if c.startswith("1.1.")]
        return parts[0].of_classes(classes), parts[1].of_classes(classes)
    mode = "color" if name == "cifar10" else "gray"
    return load_images(name, "train", data, mode=mode), load_images(name, "test", data, mode=mode)


def load_characters(file: Path) -> ImageSet:
    """Return the characters of a file, as images of 32 × 32 pixels."""
    with np.load(file) as arrays:
        pictures, samples = arrays["images"], arrays["sample"]
    steps = Preprocessing()
    images = np.stack([steps.apply(picture, (_SIDE, _SIDE)) for picture in pictures])
    classes, labels = np.unique(samples, return_inverse=True)
    return ImageSet(images, labels.astype(np.int64), tuple(map(str, classes)), "chars74k")


def _part(images: ImageSet, most: int | None, seed: int) -> ImageSet:
    if most is None or most >= len(images):
        return images
    return images.subset(np.flatnonzero(stratified_mask(images.labels, most / len(images), seed)))


def run_ours(train: ImageSet, test: ImageSet, seed: int) -> Result:
    """Return what ImageClassifier does on one thread."""
    begun = time.process_time()
    model = ImageClassifier(random_state=seed, n_jobs=1).fit(train.images, train.labels)
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


def rows(results: Mapping[str, Result], name: str) -> list[list[str]]:
    """Return the rows of the table of a set: classifier, errors in percent, cost, seconds."""
    found: dict[str, list[Result]] = {}
    for about, result in results.items():
        of_set, who, _ = about.split(" | ")
        if of_set == name:
            found.setdefault(who, []).append(result)
    return [
        [
            who,
            spread([100 * run["error"] for run in runs]),
            "–" if runs[0]["macs"] is None else f"{np.mean([run['macs'] for run in runs]):,.0f}",
            f"{np.mean([run['seconds'] for run in runs]):.0f}",
            str(len(runs)),
        ]
        for who, runs in found.items()
    ]


def write(file: Path, out: Path) -> None:
    """Write the page of the results of a file."""
    results = json.loads(file.read_text())
    header = ["", "test error, %", "multiply-accumulates", "seconds", "seeds"]
    names = list(dict.fromkeys(about.split(" | ")[0] for about in results))
    parts = [f"## {name}\n\n{table(header, rows(results, name))}" for name in names]
    write_page(out, "own-pictures", tables="\n\n".join(parts))


def main(given: Sequence[str] | None = None) -> None:
    """Run what is asked for and not there yet, and print each result."""
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser("python -m benchmarks.pictures", None, __doc__, None, [], raw)
    parser.add_argument("--data", type=Path, required=True, help="folder with the data sets")
    parser.add_argument("--set", nargs="*", choices=SETS, default=list(SETS[:5]))
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
            results[about] = run()
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
    yield None, OURS, lambda: run_ours(train, test, seed)
    if all(find_spec(package) for package in NETWORKS):

        def lenet() -> Result:
            ours = results[f"{title} | {OURS} | {seed}"]
            with TemporaryDirectory() as folder:
                return run_lenet(train, test, seed, ours, Path(folder))

        yield PEER_NAMES[0], LENET, lenet
    for key in PEER_NAMES[1:]:
        peer, effort = PEERS[key], Effort(1, False, seed)
        if not missing(peer) and (seed == 0 or peer.seeded):
            yield key, peer.name, partial(run_peer, peer, train, test, effort)


if __name__ == "__main__":
    main()
