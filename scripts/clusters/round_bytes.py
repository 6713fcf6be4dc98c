"""What a round costs on a cluster: bytes and messages, counted where Dask writes and reads them.

Prints a line for each number of images: of one round, what the client sent and received, and what
the model of docs/scaling.md says. Run: ``python -m scripts.clusters.round_bytes``.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from scripts.clusters.local import local_cluster
from visionshare import ShareBoost
from visionshare.distributed import DistributedColumns, cluster_client
from visionshare.search import Exhaustive

__all__ = ["Traffic", "main", "modeled", "round_traffic"]

# Bytes of an answer besides its arrays.
_ENVELOPE = 480


class Traffic:
    """Bytes that this process sent and received over TCP, and messages that it sent."""

    def __init__(self) -> None:
        self.sent = self.received = self.messages = 0

    def figures(self) -> np.ndarray:
        """Return the three counts."""
        return np.array([self.sent, self.received, self.messages])

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Count within a block."""
        from distributed.comm import tcp

        write, from_frames = tcp.TCP.write, tcp.from_frames

        async def counting_write(comm: Any, *args: Any, **options: Any) -> Any:
            n = await write(comm, *args, **options)
            self.sent, self.messages = self.sent + int(n or 0), self.messages + 1
            return n

        async def counting_frames(frames: Any, *args: Any, **options: Any) -> Any:
            self.received += sum(memoryview(frame).nbytes for frame in frames)
            return await from_frames(frames, *args, **options)

        tcp.TCP.write, tcp.from_frames = counting_write, counting_frames
        try:
            yield
        finally:
            tcp.TCP.write, tcp.from_frames = write, from_frames


@dataclass
class _Marking(Exhaustive):
    """Notes the traffic whenever a round begins its search."""

    traffic: Traffic = field(default_factory=Traffic)
    marks: list[np.ndarray] = field(default_factory=list)

    def best(self, pool: Any, state: Any, criterion: Any, excluded: Any, n: int = 1) -> Any:
        self.marks.append(self.traffic.figures())
        return super().best(pool, state, criterion, excluded, n)


def round_traffic(client: Any, m: int, d: int, k: int, number: int) -> np.ndarray:
    """Return bytes sent, bytes received and messages of one round.

    Parameters
    ----------
    client : distributed.Client
    m, d, k : int
        Images, candidates and classes.
    number : int
        Of the round.
    """
    rng = np.random.default_rng(0)
    y = np.arange(m) % k
    X = rng.normal(size=(m, d)).astype(np.float32)
    X[:, :k] += 2 * np.eye(k, dtype=np.float32)[y]
    traffic = Traffic()
    search = _Marking(traffic, [])
    with DistributedColumns.from_array(X, client) as columns, traffic.counted():
        ShareBoost(number + 1, search=search).fit(columns, y)
    return np.asarray(search.marks[number] - search.marks[number - 1])


def modeled(workers: int, d: int, k: int, number: int, messages: int) -> int:
    """Return the bytes that a client receives in a round beyond the 16th: see docs/scaling.md.

    One metric; two messages an iteration to each worker, of which one brings a gradient.
    """
    p = number + 1
    answers = messages // workers
    iterations = max(1, (answers - 4) // 2)
    arrays = 8 * (d * k + k * p * p + iterations * k * p)
    return workers * (arrays + answers * _ENVELOPE)


def main(arguments: list[str]) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, nargs="+", default=[3000, 12000])
    parser.add_argument("--candidates", type=int, default=500)
    parser.add_argument("--classes", type=int, default=10)
    parser.add_argument("--round", type=int, default=25)
    given = parser.parse_args(arguments)
    with (
        tempfile.TemporaryDirectory() as folder,
        local_cluster(2, Path(folder)) as address,
        cluster_client(scheduler=address) as client,
    ):
        client.wait_for_workers(2, timeout=60)
        print("images   sent  received  modeled  messages")
        for m in given.images:
            sent, received, messages = round_traffic(
                client, m, given.candidates, given.classes, given.round
            )
            said = modeled(2, given.candidates, given.classes, given.round, int(messages))
            print(f"{m:6d} {sent:6d} {received:9d} {said:8d} {messages:9d}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
