"""Kills workers at random moments of a training or an extraction, and compares what comes out.

Each try runs on two worker processes; at a random moment one of them, at random, gets SIGKILL. The
result must have the bits of a run in this process. Run: ``python -m scripts.clusters.kills``.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from sklearn.datasets import load_digits

from visionshare import PatchTemplates
from visionshare.batch import extract_features
from visionshare.distributed import cluster_client
from visionshare.distributed.mapping import ClusterMap
from visionshare.errors import VisionshareError
from visionshare.recipes import load_recipe, train

__all__ = ["STAGES", "extraction", "main", "training"]

# Small: a kill falls into any stage, the search, the refits or the epochs.
_RECIPE = ["data.limit=600", "learner.rounds=6", "store.partitions=4", "fine_tuning.epochs=4"]
# Seconds that a killed worker may take to be back.
_BACK = 60.0
# What a stage gives for a client, or None for this process: a hash.
Stage = Callable[[Any, Path], str]


def training(client: Any, folder: Path) -> str:
    """Return the hash of the classifier that a small ``digits`` learns and fine-tunes."""
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


def _living(client: Any) -> list[int] | None:
    """Return the process ids of both workers once they answer; None where they never do."""
    end = time.monotonic() + _BACK
    while time.monotonic() < end:
        # Of a worker that was just killed the scheduler learns a moment later.
        with contextlib.suppress(OSError, RuntimeError, TimeoutError):
            pids = client.run(os.getpid, on_error="return").values()
            if len(pids) == 2 and all(isinstance(pid, int) for pid in pids):
                return sorted(pids)
        time.sleep(0.5)
    return None


@contextmanager
def _killing(pid: int, after: float) -> Iterator[list[float]]:
    """Kill a process after some seconds of a block; give a list that has the moment then."""
    moments, ended = list[float](), threading.Event()

    def kill() -> None:
        if not ended.wait(after):
            os.kill(pid, signal.SIGKILL)
            moments.append(after)

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        yield moments
    finally:
        ended.set()
        thread.join()


@dataclass
class _Tries:
    """The tries of a stage: how many there were, how many gave the right bits."""

    name: str
    rng: np.random.Generator
    folder: Path
    expected: str = ""
    longest: float = 0.0
    number: int = 0
    right: int = 0

    def prepare(self, client: Any) -> None:
        """Run the stage here and, without any kill, on the cluster."""
        stage = STAGES[self.name]
        with tempfile.TemporaryDirectory(dir=self.folder) as here:
            self.expected = stage(None, Path(here))
        with tempfile.TemporaryDirectory(dir=self.folder) as here:
            begun = time.monotonic()
            assert stage(client, Path(here)) == self.expected, "another result without any kill"
            self.longest = time.monotonic() - begun

    def run(self, client: Any, pids: list[int]) -> None:
        """Run the stage once and kill a worker meanwhile."""
        after, victim = float(self.rng.uniform(0, self.longest)), int(self.rng.choice(pids))
        with tempfile.TemporaryDirectory(dir=self.folder) as here:
            begun, found = time.monotonic(), ""
            with _killing(victim, after) as moments:
                try:
                    found = STAGES[self.name](client, Path(here))
                except (VisionshareError, OSError, RuntimeError) as error:
                    print(f"{self.name}: {error!r}", flush=True)
            seconds = time.monotonic() - begun
        if not moments:
            # The run was over before: it says how long a run is now.
            self.longest = seconds
            return
        self.number, self.right = self.number + 1, self.right + (found == self.expected)
        said = "right" if found == self.expected else "WRONG"
        moment = f"killed at {after:.2f} of {seconds:.2f} s"
        print(f"{self.name} {self.number}: {moment}, {said}", flush=True)


def main(arguments: list[str]) -> int:
    """Run the tries and print their sums."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tries", type=int, default=50, help="of each stage")
    parser.add_argument("--stages", nargs="+", choices=STAGES, default=list(STAGES))
    parser.add_argument("--copies", type=int, default=3, help="of the 1797 digits, as pictures")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(arguments)
    rng, failed = np.random.default_rng(given.seed), 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _pictures(folder / "pictures", given.copies)
        for stage in given.stages:
            tries = _Tries(stage, rng, folder)
            while tries.number < given.tries:
                with cluster_client(workers=2, jobs=2) as client:
                    if not tries.expected:
                        tries.prepare(client)
                    while tries.number < given.tries and (pids := _living(client)):
                        tries.run(client, pids)
                    if tries.number < given.tries:
                        print(f"no second worker for {_BACK:g} s: a new cluster", flush=True)
            print(f"{stage}: {tries.right} of {given.tries} right", flush=True)
            failed += given.tries - tries.right
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
