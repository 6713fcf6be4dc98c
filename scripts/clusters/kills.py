"""Kills workers at random moments of a training or an extraction, and compares what comes out.

Each try runs on two worker processes; at a random moment one of them, at random, gets SIGKILL. The
result must have the bits of a run in this process. Run: ``python -m scripts.clusters.kills``.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from sklearn.datasets import load_digits

from visionshare import PatchTemplates
from visionshare.apps import extract_features
from visionshare.distributed import cluster_client
from visionshare.distributed.mapping import ClusterMap
from visionshare.recipes import load_recipe, train

__all__ = ["STAGES", "extraction", "main", "training"]

_RECIPE = ["learner.rounds=8", "store.partitions=4"]
# What a stage gives for a client, or None for this process: a hash.
Stage = Callable[[Any, Path], str]


def training(client: Any, folder: Path) -> str:
    """Return the hash of the classifier that the recipe ``digits`` learns in 8 rounds."""
    classifier = train(load_recipe("digits", _RECIPE), folder / "run", client=client).classifier
    arrays = [classifier.weights, classifier.intercept, np.array([classifier.temperature])]
    arrays += [step.weights for step in classifier.path]
    return _hash(array.tobytes() for array in arrays)


def extraction(client: Any, folder: Path) -> str:
    """Return the hash of all files of a store that is extracted from the pictures of a folder."""
    pictures = sorted(map(str, (folder.parent / "pictures").iterdir()))
    images = load_digits().images.astype(np.uint8)
    family = PatchTemplates(3, 100, 2, (2.0,), n_patches=500).fit(images)
    mapper = None if client is None else ClusterMap(client)
    extract_features(family, pictures, folder / "store", mapper=mapper)
    files = sorted(path for path in (folder / "store").rglob("*") if path.is_file())
    return _hash(path.read_bytes() for path in files if path.suffix != ".lock")


STAGES: dict[str, Stage] = {"training": training, "extraction": extraction}


def _hash(parts: Iterator[bytes]) -> str:
    found = hashlib.sha256()
    for part in parts:
        found.update(part)
    return found.hexdigest()


def _pictures(folder: Path, times: int) -> None:
    """Write each digit of scikit-learn several times, as a PNG file."""
    folder.mkdir()
    for i, image in enumerate(np.tile(load_digits().images, (times, 1, 1)).astype(np.uint8)):
        Image.fromarray(16 * image).resize((32, 32)).save(folder / f"{i:05d}.png")


@contextmanager
def _killing(client: Any, after: float, which: int) -> Iterator[list[float]]:
    """Kill a worker after some seconds of a block; give a list that has the moment then."""
    pids, moments, ended = sorted(client.run(os.getpid).values()), list[float](), threading.Event()

    def kill() -> None:
        if not ended.wait(after):
            os.kill(pids[which % len(pids)], signal.SIGKILL)
            moments.append(after)

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        yield moments
    finally:
        ended.set()
        thread.join()


def _tries(client: Any, name: str, n: int, rng: np.random.Generator, folder: Path) -> int:
    """Return how many of n tries, each with a kill, gave the right bits; print each."""
    stage, right, number, longest = STAGES[name], 0, 0, 0.0
    with tempfile.TemporaryDirectory(dir=folder) as here:
        expected = stage(None, Path(here))
    with tempfile.TemporaryDirectory(dir=folder) as here:
        begun = time.monotonic()
        assert stage(client, Path(here)) == expected, "another result without any kill"
        longest = time.monotonic() - begun
    while number < n:
        client.wait_for_workers(2, timeout=120)
        after, which = float(rng.uniform(0, longest)), int(rng.integers(2))
        with tempfile.TemporaryDirectory(dir=folder) as here:
            begun = time.monotonic()
            with _killing(client, after, which) as moments:
                found = stage(client, Path(here))
            seconds = time.monotonic() - begun
        if not moments:
            # The run was over before: it says how long a run is now.
            longest = seconds
            continue
        number, right = number + 1, right + (found == expected)
        said = "right" if found == expected else "WRONG"
        print(f"{name} {number}: killed at {after:.2f} of {seconds:.2f} s, {said}", flush=True)
    return right


def main(arguments: list[str]) -> int:
    """Run the tries and print their sums."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tries", type=int, default=50, help="of each stage")
    parser.add_argument("--stages", nargs="+", choices=STAGES, default=list(STAGES))
    parser.add_argument("--copies", type=int, default=3, help="of the 1797 digits, as pictures")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(arguments)
    rng, failed = np.random.default_rng(given.seed), 0
    with tempfile.TemporaryDirectory() as name, cluster_client(workers=2, jobs=2) as client:
        folder = Path(name)
        _pictures(folder / "pictures", given.copies)
        for stage in given.stages:
            right = _tries(client, stage, given.tries, rng, folder)
            print(f"{stage}: {right} of {given.tries} right", flush=True)
            failed += given.tries - right
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
