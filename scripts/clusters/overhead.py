"""What workers cost: one recipe in one process and on worker processes, in turns, and its bits.

Each way is a command of its own. Seconds of the processor, of all its processes together, tell what
a cluster adds where others use the machine too; the seconds of a clock are beside them. Run:
``python -m scripts.clusters.overhead mnist --data DIR --set learner.rounds=10``.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np

from visionshare import load

__all__ = ["WAYS", "Run", "main", "trained"]

# Options of ``visionshare train``; partitions are those of a cluster, so that the bits are.
WAYS = {
    "1 process, 1 thread": ["--jobs", "1"],
    "1 worker, 1 thread": ["--jobs", "1", "--workers", "1"],
    "1 process, 2 threads": ["--jobs", "2"],
    "2 workers, 1 thread each": ["--jobs", "2", "--workers", "2"],
    "4 workers, 1 thread each": ["--jobs", "4", "--workers", "4"],
}
_COMPARED = {
    "1 worker, 1 thread": "1 process, 1 thread",
    "2 workers, 1 thread each": "1 process, 2 threads",
}


class Run(NamedTuple):
    """Seconds of a clock and of the processors, the features, and a digest of all numbers."""

    clock: float
    processor: float
    features: tuple[int, ...]
    digest: str


def trained(pipeline: str, options: list[str], folder: Path) -> Run:
    """Train a recipe by the command and return what it took."""
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    command = [sys.executable, "-m", "visionshare", "train", pipeline, "--out", str(folder)]
    subprocess.run([*command, *options], check=True, stdout=subprocess.DEVNULL)
    clock, after = time.perf_counter() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    classifier = load(folder / "classifier.safetensors")
    numbers = [classifier.weights, classifier.intercept, np.array([classifier.temperature])]
    numbers += [step.weights for step in classifier.path]
    found = hashlib.sha256(b"".join(array.tobytes() for array in numbers))
    features = tuple(j for step in classifier.path for j in step.feature)
    return Run(clock, processor, features, found.hexdigest()[:16])


def main(arguments: list[str]) -> int:
    """Train in each way, in turns, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pipeline")
    parser.add_argument("--data")
    parser.add_argument("--set", dest="settings", action="append", default=[])
    parser.add_argument("--turns", type=int, default=1)
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS))
    given = parser.parse_args(arguments)
    options = [] if given.data is None else ["--data", given.data]
    for setting in [*given.settings, "store.partitions=16"]:
        options += ["--set", setting]
    runs: dict[str, list[Run]] = {way: [] for way in given.ways}
    for turn in range(given.turns):
        for way in given.ways:
            with tempfile.TemporaryDirectory() as name:
                run = trained(given.pipeline, [*options, *WAYS[way]], Path(name, "run"))
            runs[way].append(run)
            said = {"turn": turn, "way": way, **run._asdict(), "load": os.getloadavg()[0]}
            print(json.dumps(said | {"features": len(run.features)}), flush=True)
    print("\n| | clock, s | processors, s | clock, ratio | processors, ratio | bits |")
    print("|---|---|---|---|---|---|")
    for way, found in runs.items():
        clock = float(np.median([run.clock for run in found]))
        processor = float(np.median([run.processor for run in found]))
        ratios = ["", ""]
        if _COMPARED.get(way) in runs:
            pairs = list(zip(found, runs[_COMPARED[way]], strict=True))
            ratios = [f"{np.median([one.clock / other.clock for one, other in pairs]):.2f}"]
            ratios += [f"{np.median([a.processor / b.processor for a, b in pairs]):.2f}"]
        cells = [f"{clock:.1f}", f"{processor:.1f}", *ratios, found[0].digest]
        print(f"| {way} | {' | '.join(cells)} |")
    alike = {(run.features, run.digest) for found in runs.values() for run in found}
    print("the same features and bits" if len(alike) == 1 else "OTHER BITS")
    return int(len(alike) > 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
