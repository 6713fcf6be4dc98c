"""Peak memory of workers and client that learn from many stored images within a bound a worker.

Writes files of images, surveys them on two workers, and learns three rounds of their pixels. Run:
``python -m scripts.clusters.memory --images 360000 --memory 1GiB``.
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from scripts.clusters.local import local_cluster
from visionshare import Pixels, ShareBoost
from visionshare.datasets import survey_shards
from visionshare.distributed import DistributedColumns, cluster_client
from visionshare.distributed.mapping import ClusterMap

__all__ = ["main", "write_images"]

_CLASSES = 10


def write_images(folder: Path, images: int, files: int, side: int) -> None:
    """Write noise with a bar for each class, in files of arrays."""
    rng = np.random.default_rng(0)
    for number in range(files):
        y = rng.integers(0, _CLASSES, images // files)
        x = rng.integers(0, 60, (len(y), side, side)).astype(np.uint8)
        for label in range(_CLASSES):
            x[y == label, 2 * label + 2 : 2 * label + 6, side // 10 : side // 2] += 120
        np.savez(folder / f"train-{number:03d}.npz", x=x, y=y)


def _peak() -> int:
    """Return the largest resident memory of this process so far, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def _say(stage: str, client: Any) -> None:
    workers = ", ".join(str(mib) for mib in client.run(_peak).values())
    print(f"{stage}: workers {workers} MiB, client {_peak()} MiB", flush=True)


def main(arguments: list[str]) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, default=360_000)
    parser.add_argument("--files", type=int, default=36)
    parser.add_argument("--side", type=int, default=40)
    parser.add_argument("--memory", default="1GiB")
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as name:
        folder, size = Path(name), (given.side, given.side)
        write_images(folder, given.images, given.files, given.side)
        with (
            local_cluster(2, folder) as address,
            cluster_client(scheduler=address) as client,
        ):
            client.wait_for_workers(2, timeout=120)
            _say("started", client)
            stored = survey_shards(str(folder / "train-*.npz"), size, mapper=ClusterMap(client))
            _say("surveyed", client)
            family = Pixels().fit(stored.sample(1000))
            with DistributedColumns.from_family(
                family, stored, client, dtype="float16", memory=given.memory
            ) as columns:
                m, d = columns.shape
                _say(f"{m} x {d} columns, {2 * m * d / 1e9:.2f} GB", client)
                ShareBoost(given.rounds).fit(columns, stored.labels)
            _say(f"{given.rounds} rounds", client)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
