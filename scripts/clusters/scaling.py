"""What a round costs on clusters that are not here: the schedule of a round, replayed.

Every request of a round of ShareBoost (search, metric, iterations of the refit, figures) is
replayed message by message: the client sends to one worker after the other, each computes its
partitions, answers come through the client's one link in turn and are added up there. Constants
are measured on this machine, networks are stated. Run: ``python -m scripts.clusters.scaling``
(``--measure`` measures the constants anew, and rounds on a cluster of this machine beside it).
"""

from __future__ import annotations

import argparse
import heapq
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from scripts.clusters.local import local_cluster
from scripts.clusters.rounds import measured_constants, measured_rounds
from visionshare.distributed import cluster_client
from visionshare.distributed.blocks import partition_bounds

__all__ = ["NETWORKS", "Constants", "Network", "Work", "main", "replayed_request", "replayed_round"]

# Of the metric: examples that it looks at, at most.
_METRIC_ROWS = 16_384
# Bytes of a request and of an answer besides their arrays.
_REQUEST, _ENVELOPE = 2048, 480


@dataclass(frozen=True)
class Constants:
    """What a core does, in seconds of a processor, as ``--measure`` found it.

    Attributes
    ----------
    search, products : float
        Operations a second of XᵀR, and of a refit's products of columns and weights.
    loss : float
        Seconds of the loss of an image's score of a class.
    partition : float
        Seconds of a request in a partition, besides its arithmetic.
    send, receive : float
        Seconds of the client, or of the scheduler where that takes longer, for a message to a
        worker and for an answer: while one has a message, the other has the next.
    answer : float
        Seconds from a request's arrival at a worker to its answer, without its arithmetic.
    join : float
        Bytes a second that the client adds up.
    """

    search: float = 2.13e10
    products: float = 2.33e10
    loss: float = 6.44e-9
    partition: float = 2.55e-5
    send: float = 6.16e-4
    receive: float = 6.16e-4
    answer: float = 3.87e-3
    join: float = 1.79e10


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
class Request:
    """Operations of all images, scores whose loss is asked for, bytes of a sum and of a request."""

    operations: float
    kind: str
    losses: float
    answer: float
    sent: float


def requests_of(work: Work, names: Sequence[str] = ()) -> Iterator[Request]:
    """Yield the requests of a round, as docs/scaling.md has them.

    Parameters
    ----------
    work : Work
    names : sequence of str
        Functions whose sums a round asked for; those of so many iterations when omitted.
    """
    m, d, k, p = work.images, work.candidates, work.classes, work.weights
    once, rows = 2.0 * m * k * p, min(m, _METRIC_ROWS)
    sent, scores = 8.0 * k * p, float(m * k)
    kinds = {
        "_products": Request(2.0 * m * d * k, "search", 0.0, 8.0 * d * k, sent),
        "curvature_grams": Request(2.0 * rows * k * p * p, "products", 0.0, 8.0 * k * p * p, sent),
        "gradient": Request(once, "products", scores, 8.0 * k * p, sent),
        "_value_and_gradient": Request(2 * once, "products", 2 * scores, 8.0 * k * p, sent),
        "_errors": Request(once, "products", 0.0, 40.0, sent),
        "itemgetter": Request(once, "products", scores, 8.0, sent),
    }
    steps = ("gradient", *["_value_and_gradient"] * work.iterations)
    for name in names or ("_products", "curvature_grams", *steps, "_errors", "itemgetter"):
        yield kinds[name]


def counts_of(partitions: int, workers: int) -> np.ndarray:
    """Return the partitions of each worker that has any.

    Examples
    --------
    >>> counts_of(16, 3).tolist()
    [6, 5, 5]
    """
    counts = np.full(min(workers, partitions), partitions // workers or 1)
    counts[: partitions % workers if partitions > workers else 0] += 1
    return counts


def replayed_request(
    request: Request,
    counts: np.ndarray,
    constants: Constants,
    network: Network,
    slower: np.ndarray,
) -> float:
    """Return the seconds from the first message of a request to the sum of all answers.

    Parameters
    ----------
    request : Request
    counts : ndarray
        Of :func:`counts_of`.
    constants, network
    slower : ndarray
        How many times as long each worker computes.
    """
    shares = counts / counts.sum()
    rate = constants.search if request.kind == "search" else constants.products
    computing = (request.operations / rate + request.losses * constants.loss) * shares * slower
    computing = computing + constants.partition * counts + constants.answer
    sending = constants.send + (request.sent + _REQUEST) / network.bandwidth
    arrivals = [
        (i + 1) * sending + network.latency + seconds + network.latency
        for i, seconds in enumerate(computing)
    ]
    heapq.heapify(arrivals)
    each = (request.answer + _ENVELOPE) / network.bandwidth
    each += constants.receive + request.answer / constants.join
    # The client sends all requests before it looks at an answer.
    free = len(shares) * sending
    while arrivals:
        free = max(free, heapq.heappop(arrivals)) + each
    return free


def replayed_round(
    work: Work,
    workers: int,
    constants: Constants,
    network: Network,
    spread: float = 0.1,
    names: Sequence[str] = (),
) -> float:
    """Return the seconds of a round; workers differ by a spread, drawn anew for each request."""
    rng = np.random.default_rng(0)
    counts = counts_of(len(partition_bounds(work.images)) - 1, workers)
    return sum(
        replayed_request(request, counts, constants, network, rng.lognormal(0, spread, len(counts)))
        for request in requests_of(work, names)
    )


def processor_seconds(work: Work, constants: Constants, names: Sequence[str]) -> float:
    """Return the processor seconds of a worker in a round, of two."""
    n = len(partition_bounds(work.images)) - 1
    seconds = 0.0
    for request in requests_of(work, names):
        rate = constants.search if request.kind == "search" else constants.products
        seconds += (request.operations / rate + request.losses * constants.loss) / 2
        seconds += constants.partition * n / 2 + constants.answer
    return seconds


def _measure() -> Constants:
    """Print and return the constants of free cores; print rounds beside their replay."""
    with (
        tempfile.TemporaryDirectory() as folder,
        local_cluster(2, Path(folder)) as address,
        cluster_client(scheduler=address) as client,
    ):
        client.wait_for_workers(2, timeout=120)
        free, now = (Constants(**found) for found in measured_constants(client))
        for name, constants in (("free cores", free), ("now", now)):
            said = ", ".join(f"{k} {v:.3g}" for k, v in asdict(constants).items())
            print(f"{name}: {said}", flush=True)
        print("| images | candidates | requests | s | replayed now | on free cores | processor s |")
        print("|---|---|---|---|---|---|---|")
        for images, candidates in ((3000, 500), (20_000, 500), (60_000, 500), (60_000, 1500)):
            _point(client, Work(images, candidates, weights=25), free, now)
    return free


def _point(client: Any, work: Work, free: Constants, now: Constants) -> None:
    """Print what rounds of a size took, and what the replay of their requests says."""
    found = measured_rounds(client, work.images, work.candidates, work.classes, work.weights)
    here = Network(2e-5, 2e9)

    def replayed(constants: Constants) -> float:
        seconds = [replayed_round(work, 2, constants, here, 0.1, one) for one in found.requests]
        return float(np.mean(seconds))

    of_worker = np.mean([processor_seconds(work, free, one) for one in found.requests])
    requests = np.mean([len(one) for one in found.requests])
    processors = f"{found.processors[2]:.3f} ({of_worker:.3f})"
    cells = [f"{work.images}", f"{work.candidates}", f"{requests:.1f}", f"{found.seconds:.2f}"]
    cells += [f"{replayed(now):.2f}", f"{replayed(free):.2f}", processors]
    print("| " + " | ".join(cells) + " |", flush=True)


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
