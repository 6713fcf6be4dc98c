"""What a round costs on clusters that are not here: the schedule of a round, replayed.

Every order of a round of ShareBoost (search, metric, iterations of the refit, figures) is replayed
message by message: the client sends to one worker after the other, each computes its partitions,
answers come through the client's one link in turn and are added up there. Constants are measured
on this machine, networks are stated. Run: ``python -m scripts.clusters.scaling`` (``--measure``
measures the constants anew, and rounds on a cluster of this machine beside the replay).
"""

from __future__ import annotations

import argparse
import heapq
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from scripts.clusters.local import local_cluster
from visionshare import ShareBoost
from visionshare.columns import ArrayColumns
from visionshare.distributed import DistributedColumns, cluster_client
from visionshare.distributed.blocks import partition_bounds
from visionshare.losses import MulticlassLogistic
from visionshare.search import Exhaustive
from visionshare.solvers import ActiveSet

__all__ = ["NETWORKS", "Constants", "Network", "Work", "main", "replayed_order", "replayed_round"]

# Of the metric: examples that it looks at, at most.
_METRIC_ROWS = 16_384
# Bytes of an order and of an answer besides their arrays.
_ORDER, _ENVELOPE = 2048, 480


@dataclass(frozen=True)
class Constants:
    """What a core does, as ``--measure`` found it on two busy cores.

    The time of an order without arithmetic was measured whole. That a quarter of it each is
    sending and receiving, and half is the worker's, is assumed.

    Attributes
    ----------
    search, refit : float
        Operations a second of XᵀR, and of a refit's products.
    send, receive : float
        Seconds of the client for a message to a worker, and for an answer.
    answer : float
        Seconds from an order's arrival at a worker to its answer, without its arithmetic.
    join : float
        Bytes a second that the client adds up.
    """

    search: float = 3.88e9
    refit: float = 5.69e9
    send: float = 1.2e-3
    receive: float = 1.2e-3
    answer: float = 2.4e-3
    join: float = 2.14e10


@dataclass(frozen=True)
class Network:
    """Seconds of a message on its way, and bytes a second of a machine's link."""

    latency: float
    bandwidth: float


NETWORKS = {
    "1 Gbit/s, 0.2 ms": Network(2e-4, 1.25e8),
    "10 Gbit/s, 50 us": Network(5e-5, 1.25e9),
    "100 Gbit/s, 10 us": Network(1e-5, 1.25e10),
}


@dataclass(frozen=True)
class Work:
    """A training: images, candidates, classes, weights of a class, iterations of a refit."""

    images: int
    candidates: int = 16_000
    classes: int = 10
    weights: int = 51
    iterations: int = 12


@dataclass(frozen=True)
class Order:
    """Operations of all images, their kind, and bytes of a sum and of what is sent."""

    operations: float
    kind: str
    answer: float
    sent: float


def orders_of(work: Work) -> Iterator[Order]:
    """Yield the orders of a round, as docs/scaling.md has them."""
    m, d, k, p = work.images, work.candidates, work.classes, work.weights
    yield Order(2.0 * m * d * k, "search", 8.0 * d * k, 8.0 * k * p)
    rows = min(m, _METRIC_ROWS)
    yield Order(2.0 * rows * k * p * p, "refit", 8.0 * k * p * p, 8.0 * k * p)
    for _ in range(work.iterations):
        yield Order(2.0 * m * k * p, "refit", 8.0 * k * p, 8.0 * k * p)
        yield Order(2.0 * m * k * p, "refit", 8.0, 8.0 * k * p)
    yield Order(2.0 * m * k * p, "refit", 40.0, 8.0 * k * p)


def shares_of(partitions: int, workers: int) -> np.ndarray:
    """Return the fraction of the images that each worker with a partition has.

    Examples
    --------
    >>> shares_of(16, 3).tolist()
    [0.375, 0.3125, 0.3125]
    """
    counts = np.full(min(workers, partitions), partitions // workers or 1)
    counts[: partitions % workers if partitions > workers else 0] += 1
    return np.asarray(counts / partitions)


def replayed_order(
    order: Order,
    shares: np.ndarray,
    constants: Constants,
    network: Network,
    slower: np.ndarray,
) -> float:
    """Return the seconds from the first message of an order to the sum of all answers.

    Parameters
    ----------
    order : Order
    shares : ndarray
        Of :func:`shares_of`.
    constants, network
    slower : ndarray
        How many times as long each worker computes.
    """
    rate = constants.search if order.kind == "search" else constants.refit
    computing = order.operations * shares / rate * slower + constants.answer
    sending = constants.send + (order.sent + _ORDER) / network.bandwidth
    arrivals = [
        (i + 1) * sending + network.latency + seconds + network.latency
        for i, seconds in enumerate(computing)
    ]
    heapq.heapify(arrivals)
    each = (order.answer + _ENVELOPE) / network.bandwidth
    each += constants.receive + order.answer / constants.join
    # The client sends all orders before it looks at an answer.
    free = len(shares) * sending
    while arrivals:
        free = max(free, heapq.heappop(arrivals)) + each
    return free


def replayed_round(
    work: Work, workers: int, constants: Constants, network: Network, spread: float = 0.1
) -> float:
    """Return the seconds of a round; workers differ by a spread, drawn anew for each order."""
    rng = np.random.default_rng(0)
    shares = shares_of(len(partition_bounds(work.images)) - 1, workers)
    return sum(
        replayed_order(order, shares, constants, network, rng.lognormal(0, spread, len(shares)))
        for order in orders_of(work)
    )


def _fastest(action: Callable[[], Any], times: int = 5) -> float:
    seconds = []
    for _ in range(times):
        begun = time.perf_counter()
        action()
        seconds.append(time.perf_counter() - begun)
    return min(seconds)


def measured_constants(client: Any) -> Constants:
    """Return the constants of this machine: the fastest of some tries each."""
    rng, m, d, k, p = np.random.default_rng(0), 16_384, 500, 10, 51
    columns = ArrayColumns(rng.normal(size=(m, d)), dtype="float16")
    R = rng.normal(size=(m, k)).astype(np.float32)
    search = 2.0 * m * d * k / _fastest(lambda: columns.correlate(R))
    active = ActiveSet(np.arange(m) % k, np.full(m, 1 / m), k)
    active.append(rng.normal(size=(p - 1, m)).astype(np.float32))
    W = rng.normal(size=(k, p)) / 10
    loss = MulticlassLogistic(1.0)

    def products() -> None:
        active.gradient(loss, active.scores(W))

    refit = 4.0 * m * k * p / _fastest(products)
    answer = np.zeros((16_000, k))
    join = answer.nbytes / _fastest(lambda: np.add(answer, answer))
    # An order to two workers without arithmetic: all of it is messages.
    with DistributedColumns.from_array(np.ones((16, 1), np.float32), client) as small:
        each = _fastest(lambda: small.total(_nothing), 30) / 2
    return replace(
        Constants(), search=search, refit=refit, join=join,
        send=each / 4, receive=each / 4, answer=each / 2,
    )  # fmt: skip


def _nothing() -> float:
    return 0.0


@dataclass
class _Watched(Exhaustive):
    """Notes when each round begins its search."""

    moments: list[float] | None = None

    def best(self, *args: Any, **options: Any) -> Any:
        if self.moments is not None:
            self.moments.append(time.perf_counter())
        return super().best(*args, **options)


def measured_round(client: Any, work: Work) -> float:
    """Return the median seconds of the last rounds that a training of this size took."""
    rng, k = np.random.default_rng(0), work.classes
    y = np.arange(work.images) % k
    X = rng.normal(size=(work.images, work.candidates)).astype(np.float32)
    X[:, :k] += 2 * np.eye(k, dtype=np.float32)[y]
    search = _Watched(moments=[])
    with DistributedColumns.from_array(X, client) as columns:
        ShareBoost(work.weights, search=search).fit(columns, y)
    return float(np.median(np.diff(search.moments or [])[-5:]))


def _measure() -> Constants:
    with (
        tempfile.TemporaryDirectory() as folder,
        local_cluster(2, Path(folder)) as address,
        cluster_client(scheduler=address) as client,
    ):
        client.wait_for_workers(2, timeout=60)
        constants = measured_constants(client)
        print("constants  " + ", ".join(f"{k} {v:.3g}" for k, v in asdict(constants).items()))
        print("| images | candidates | measured, s a round | replayed |")
        print("|---|---|---|---|")
        here = Network(2e-5, 2e9)
        for images, candidates in ((3000, 500), (20_000, 500), (60_000, 500), (60_000, 1500)):
            work = Work(images, candidates, weights=17, iterations=12)
            seconds = measured_round(client, work)
            said = replayed_round(work, 2, constants, here)
            print(f"| {images} | {candidates} | {seconds:.2f} | {said:.2f} |", flush=True)
    return constants


def _table(constants: Constants, network: str, workers: Sequence[int], given: Any) -> None:
    print(f"\n{network}: seconds a round (times as fast as one worker)\n")
    print("| images | " + " | ".join(f"{n} worker{'s' * (n > 1)}" for n in workers) + " |")
    print("|---|" + "---|" * len(workers))
    for images in given.images:
        work = Work(images, given.candidates, given.classes, given.weights, given.iterations)
        seconds = [replayed_round(work, n, constants, NETWORKS[network]) for n in workers]
        cells = [f"{s:.3g} ({seconds[0] / s:.3g})" for s in seconds]
        print(f"| {images:.0e} | " + " | ".join(cells) + " |")


def main(arguments: list[str]) -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--measure", action="store_true")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 10, 100, 1000])
    parser.add_argument("--images", type=int, nargs="+", default=[10**n for n in range(6, 10)])
    parser.add_argument("--candidates", type=int, default=16_000)
    parser.add_argument("--classes", type=int, default=10)
    parser.add_argument("--weights", type=int, default=51)
    parser.add_argument("--iterations", type=int, default=12)
    given = parser.parse_args(arguments)
    constants = _measure() if given.measure else Constants()
    for network in NETWORKS:
        _table(constants, network, given.workers, given)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
