"""ImageClassifier without an option beside peers, on the same training and test images.

    python -m benchmarks.pictures --data DIR --set digits chars74k --train 2000 --json FILE

Peers choose their settings on a part of the training images, as in benchmarks.peers; those whose
packages are not installed are left out. What a stopped run kept in its file is not done again.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.peers.peer import Effort
from benchmarks.peers.running import PEERS, missing
from visionshare import ImageClassifier
from visionshare.datasets import Cut, ImageSet, Preprocessing, load_images
from visionshare.datasets.sampling import stratified_mask
from visionshare.durable import write_text
from visionshare.resources import resolve_jobs

__all__ = ["SETS", "load", "main"]

SETS = ("digits", "fashion-mnist", "cifar10", "chars74k", "brodatz", "mnist")
OURS = "ImageClassifier"
_PEERS = ("gradients", "trees", "lenet")
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


def run_ours(train: ImageSet, test: ImageSet, seed: int, jobs: int, budget: Any) -> dict[str, Any]:
    """Return what ImageClassifier does."""
    begun = time.perf_counter()
    model = ImageClassifier(random_state=seed, n_jobs=jobs, budget=budget)
    model.fit(train.images, train.labels)
    seconds = time.perf_counter() - begun
    wrong = float(np.mean(model.predict(test.images) != test.labels))
    chosen = (model.recipe_ or "").splitlines()[:1]
    return {"error": wrong, "seconds": seconds, **model.cost_, "chosen": chosen}


def run_peer(key: str, train: ImageSet, test: ImageSet, effort: Effort) -> dict[str, Any]:
    """Return what a peer does, its settings chosen on training images."""
    peer = PEERS[key]
    begun = time.perf_counter()
    choice = peer.tune(train, effort) or {}
    trained = peer.learn(train, effort, choice)
    seconds = time.perf_counter() - begun
    wrong = float(np.mean(trained.predict(test.images) != test.labels))
    return {"error": wrong, "seconds": seconds, "macs": trained.macs, "bytes": trained.n_bytes}


def main(given: Sequence[str] | None = None) -> None:
    """Run what is asked for and not there yet, and print a table."""
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser("python -m benchmarks.pictures", None, __doc__, None, [], raw)
    parser.add_argument("--data", type=Path, required=True, help="folder with the data sets")
    parser.add_argument("--set", nargs="*", choices=SETS, default=list(SETS[:5]))
    parser.add_argument("--train", type=int, help="training images at most")
    parser.add_argument("--test", type=int, help="test images at most")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--budget", type=float, help="multiply-accumulates of ours")
    parser.add_argument("--peers", nargs="*", choices=PEERS, default=list(_PEERS))
    parser.add_argument("--json", type=Path, default=Path("out/pictures.json"))
    parser.add_argument("--seconds", type=float, default=60.0, help="of a network's training")
    parser.add_argument("--jobs", type=int, default=-1)
    options = parser.parse_args(given)
    jobs, file = resolve_jobs(options.jobs, "jobs"), options.json
    results = json.loads(file.read_text()) if file.is_file() else {}
    effort = Effort(jobs, False, 0, options.seconds, 3 * options.seconds)
    peers = [key for key in options.peers if not missing(PEERS[key])]
    for name in options.set:
        train, test = load(name, options.data)
        train, test = _part(train, options.train, 0), _part(test, options.test, 0)
        for seed in range(options.seeds):
            for key in (OURS, *peers):
                about = f"{name}, {len(train)} images, {key}, seed {seed}"
                if about in results:
                    continue
                if key == OURS:
                    results[about] = run_ours(train, test, seed, jobs, options.budget)
                else:
                    results[about] = run_peer(key, train, test, effort._replace(seed=seed))
                write_text(file, json.dumps(results, indent=1) + "\n")
                percent, seconds = 100 * results[about]["error"], results[about]["seconds"]
                sys.stdout.write(f"{about}: {percent:.2f} %, {seconds:.0f} s\n")
                sys.stdout.flush()


if __name__ == "__main__":
    main()
