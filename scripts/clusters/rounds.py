"""Rounds on a cluster of this machine, and the constants that a replay of them needs.

Constants are seconds of a processor, the fewest of some tries: what a core does that has nothing
else to do. Where other programs use the machine, each is measured by the clock too, the median of
the tries, on both workers at once: what the same core does now.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

import numpy as np

from visionshare import ShareBoost
from visionshare.columns import ArrayColumns
from visionshare.distributed import DistributedColumns
from visionshare.distributed.blocks import ArrayBlock, ColumnSettings
from visionshare.distributed.cluster import ClusterEngine
from visionshare.distributed.host import DATA, Host, Request, Slot
from visionshare.losses import MulticlassLogistic
from visionshare.machine.resources import thread_limit
from visionshare.search import Exhaustive
from visionshare.solvers import ActiveSet

__all__ = ["Rounds", "measured_constants", "measured_rounds", "noted"]

# Rounds that are measured: the last ones, whose supports have nearly the same size.
_LAST = 5


@contextmanager
def noted(requests: list[str]) -> Iterator[None]:
    """Note the functions whose sums a cluster is asked for within a block."""
    total = ClusterEngine.total

    def noting(engine: Any, function: Any, *args: Any, how: str = "sum") -> Any:
        requests.append(getattr(function, "__name__", type(function).__name__))
        return total(engine, function, *args, how=how)

    with patch.object(ClusterEngine, "total", noting):
        yield


def _each(action: Callable[[], Any], by_processor: bool, times: int = 9) -> float:
    """Return the fewest seconds of a processor that an action takes, or the clock's median."""
    clock = time.thread_time if by_processor else time.perf_counter
    seconds = []
    for _ in range(times):
        begun = clock()
        action()
        seconds.append(clock() - begun)
    return float(min(seconds) if by_processor else np.median(seconds))


def _of_worker(by_processor: bool) -> dict[str, float]:
    """Return the constants of the arithmetic of a worker."""
    with thread_limit(1):
        return _arithmetic(by_processor)


def _arithmetic(by_processor: bool) -> dict[str, float]:
    rng, m, d, k, p = np.random.default_rng(0), 16_384, 500, 10, 25
    columns = ArrayColumns(rng.normal(size=(m, d)), dtype="float32")
    R = rng.normal(size=(m, k)).astype(np.float32)
    columns.correlate(R)
    search = _each(lambda: columns.correlate(R), by_processor)
    rows = 3750
    W, loss = rng.normal(size=(k, p)) / 10, MulticlassLogistic(1.0)
    large, small = (_active(rng, n, k, p) for n in (rows, 16))
    products = _each(lambda: large.scores(W), by_processor)
    step = _each(lambda: _step(large, loss, W), by_processor)
    of_few = _each(lambda: _step(small, loss, W), by_processor)
    n = 16
    host = Host(n, ColumnSettings(), 1)
    for number in range(n):
        host.place(number, ArrayBlock(np.ones((2, 2), np.float32)))
    requests = [Request(number, "sum", _rows, (Slot(DATA),)) for number in (1, 2)]
    empty = _each(lambda: host.run(requests), by_processor)
    return {
        "search": 2.0 * m * d * k / search,
        "products": 2.0 * rows * k * p / products,
        # An iteration has two products and two losses.
        "loss": max(0.0, step - of_few - 2 * products) / (2 * rows * k),
        "partition": empty / n + of_few / 2,
    }


def _active(rng: np.random.Generator, m: int, k: int, p: int) -> ActiveSet:
    active = ActiveSet(np.arange(m) % k, np.full(m, 1 / m), k)
    active.append(rng.normal(size=(p - 1, m)).astype(np.float32))
    return active


def _step(active: ActiveSet, loss: MulticlassLogistic, W: np.ndarray) -> None:
    """Do what an iteration of a refit asks a partition for."""
    Z = active.scores(W)
    active.value(loss, Z + np.float32(0.5) * Z)
    active.gradient(loss, Z - np.float32(0.5) * Z)


def _rows(columns: Any) -> float:
    return float(columns.shape[0])


def _nothing() -> float:
    return 0.0


def _processors(client: Any) -> np.ndarray:
    """Return the processor seconds of the client, of the scheduler, and the most of a worker."""
    of_workers = client.run(time.process_time).values()
    of_scheduler = client.run_on_scheduler(time.process_time)
    return np.array([time.process_time(), of_scheduler, max(of_workers)])


def measured_constants(client: Any) -> tuple[dict[str, float], dict[str, float]]:
    """Return the constants of free cores, and of these cores now.

    Parameters
    ----------
    client : distributed.Client
        Of two workers.
    """
    both = []
    for by_processor in (True, False):
        addresses = sorted(client.nthreads())
        asked = [
            client.submit(_of_worker, by_processor, workers=[a], pure=False) for a in addresses
        ]
        found = client.gather(asked)
        both.append({name: float(np.mean([one[name] for one in found])) for name in found[0]})
    answer = np.zeros((16_000, 10))
    for by_processor, constants in zip((True, False), both, strict=True):
        constants["join"] = answer.nbytes / _each(lambda: np.add(answer, answer), by_processor)
    times, seconds = 100, []
    with DistributedColumns.from_array(np.ones((2, 1), np.float32), client, partitions=2) as small:
        small.total(_nothing)
        before = _processors(client)
        for _ in range(times):
            begun = time.perf_counter()
            small.total(_nothing)
            seconds.append(time.perf_counter() - begun)
        used = (_processors(client) - before) / times
    # Client and scheduler have two messages to each of two workers, a worker has its own.
    one, other, of_worker = used[0] / 4, used[1] / 4, used[2]
    slower, faster = max(one, other), min(one, other)
    free = {"send": slower, "receive": slower, "answer": of_worker + 2 * faster}
    whole = 4 * slower + free["answer"]
    both[0].update(free)
    both[1].update({name: value * np.median(seconds) / whole for name, value in free.items()})
    return both[0], both[1]


@dataclass
class _Watched(Exhaustive):
    """Notes when each round begins its search, and what processors had been used by then."""

    client: Any = None
    first: int = 0
    names: list[str] = field(default_factory=list)
    moments: list[float] = field(default_factory=list)
    marks: list[int] = field(default_factory=list)
    processors: list[np.ndarray] = field(default_factory=list)

    def best(self, *args: Any, **options: Any) -> Any:
        number = len(self.moments)
        if number in (self.first, self.first + _LAST):
            self.processors.append(_processors(self.client))
        self.moments.append(time.perf_counter())
        self.marks.append(len(self.names))
        return super().best(*args, **options)


@dataclass(frozen=True)
class Rounds:
    """What some rounds took, each: seconds of a clock, and of processors.

    Attributes
    ----------
    seconds : float
    processors : ndarray of shape (3,)
        Of the client, of the scheduler and of a worker.
    requests : tuple of tuple of str
        The functions whose sums each round asked for.
    """

    seconds: float
    processors: np.ndarray
    requests: tuple[tuple[str, ...], ...]


def measured_rounds(client: Any, images: int, candidates: int, classes: int, rounds: int) -> Rounds:
    """Return what the last rounds took, each, of a training of this size."""
    rng = np.random.default_rng(0)
    y = np.arange(images) % classes
    X = rng.normal(size=(images, candidates)).astype(np.float32)
    X[:, :classes] += 2 * np.eye(classes, dtype=np.float32)[y]
    search = _Watched(client=client, first=rounds - _LAST - 1)
    with DistributedColumns.from_array(X, client) as columns, noted(search.names):
        ShareBoost(rounds, search=search).fit(columns, y)
    first, last = search.first, search.first + _LAST
    each = zip(search.marks[first:last], search.marks[first + 1 :], strict=False)
    # The questions about processors come before the first moment, and in the last round.
    seconds = np.diff(search.moments[first : last + 1])
    used = np.subtract(*search.processors[::-1]) / _LAST
    return Rounds(
        float(seconds.mean()), used, tuple(tuple(search.names[a:b]) for a, b in each)
    )  # fmt: skip
