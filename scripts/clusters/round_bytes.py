"""What a round costs on a cluster: bytes and messages, counted where Dask writes and reads them.

Prints a line for each number of images: of one round, what the client sent and received, and what
the model of docs/scaling.md says. Run: ``python -m scripts.clusters.round_bytes``.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from scripts.clusters.local import local_cluster
from scripts.clusters.rounds import noted
from visionshare import ShareBoost
from visionshare.distributed import DistributedColumns, cluster_client
from visionshare.search import Exhaustive

__all__ = ["Round", "Shape", "Traffic", "main", "modeled", "round_traffic"]

# Bytes of an answer besides its arrays.
_ENVELOPE = 480


@dataclass(frozen=True)
class Shape:
    """Candidates and classes of a training, and the number of the round that is looked at."""

    candidates: int
    classes: int
    round: int


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
    """Notes the traffic, and the number of requests, whenever a round begins its search."""

    traffic: Traffic = field(default_factory=Traffic)
    requests: list[str] = field(default_factory=list)
    marks: list[tuple[np.ndarray, int]] = field(default_factory=list)

    def best(self, pool: Any, state: Any, criterion: Any, excluded: Any, n: int = 1) -> Any:
        self.marks.append((self.traffic.figures(), len(self.requests)))
        return super().best(pool, state, criterion, excluded, n)


@dataclass(frozen=True)
class Round:
    """What a round sent, received and asked for.

    Attributes
    ----------
    sent, received, messages : int
        Of the client.
    requests : tuple of str
        The functions whose sums it asked for, in their order.
    """

    sent: int
    received: int
    messages: int
    requests: tuple[str, ...]


def round_traffic(client: Any, m: int, shape: Shape, distinct: int) -> Round:
    """Return what one round did.

    Parameters
    ----------
    client : distributed.Client
    m : int
        Images.
    shape : Shape
    distinct : int
        Images that differ, repeated: where m is a multiple, the refit has the same iterations.
    """
    rng, k, d = np.random.default_rng(0), shape.classes, shape.candidates
    y = np.arange(distinct) % k
    X = rng.normal(size=(distinct, d)).astype(np.float32)
    X[:, :k] += 2 * np.eye(k, dtype=np.float32)[y]
    X, y = np.resize(X, (m, d)), np.resize(y, m)
    requests: list[str] = []
    traffic = Traffic()
    search = _Marking(traffic, requests)
    with DistributedColumns.from_array(X, client) as columns, traffic.counted(), noted(requests):
        ShareBoost(shape.round + 1, search=search).fit(columns, y)
    (before, first), (after, end) = search.marks[shape.round - 1 : shape.round + 1]
    sent, received, messages = map(int, after - before)
    return Round(sent, received, messages, tuple(requests[first:end]))


def modeled(workers: int, shape: Shape, requests: Sequence[str]) -> int:
    """Return the bytes that a client receives in a round beyond the 16th: see docs/scaling.md.

    Parameters
    ----------
    workers : int
    shape : Shape
    requests : sequence of str
        Of :class:`Round`.
    """
    k, p = shape.classes, shape.round + 1
    arrays = {
        "_products": 8 * k * (shape.candidates + 1),
        "curvature_grams": 8 * k * p * p,
        "gradient": 8 * (k * p + 1),
        "_value_and_gradient": 8 * (k * p + 2),
        "_errors": 40,
    }
    # Every other request is of one number.
    return workers * sum(arrays.get(request, 8) + _ENVELOPE for request in requests)


def main(arguments: list[str]) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, nargs="+", default=[3000, 12000])
    parser.add_argument("--candidates", type=int, default=500)
    parser.add_argument("--classes", type=int, default=10)
    parser.add_argument("--round", type=int, default=25)
    given = parser.parse_args(arguments)
    shape = Shape(given.candidates, given.classes, given.round)
    with (
        tempfile.TemporaryDirectory() as folder,
        local_cluster(2, Path(folder)) as address,
        cluster_client(scheduler=address) as client,
    ):
        client.wait_for_workers(2, timeout=60)
        print("| images | sent | received | model of what is received | messages | requests |")
        print("|---|---|---|---|---|---|")
        for m in given.images:
            one = round_traffic(client, m, shape, min(given.images))
            counts = ", ".join(f"{name} {n}" for name, n in Counter(one.requests).items())
            said = modeled(2, shape, one.requests)
            cells = [m, one.sent, one.received, said, one.messages, counts]
            print("| " + " | ".join(map(str, cells)) + " |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
