"""Partitions on the workers of a Dask cluster."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from visionshare.distributed.blocks import Block, ColumnSettings
from visionshare.distributed.engine import Engine, Record
from visionshare.distributed.host import Host, Missing
from visionshare.distributed.sums import Node
from visionshare.errors import ClusterError

__all__ = ["Bounds", "ClusterEngine", "connected"]

_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Bounds:
    """How long a cluster is waited for, in seconds.

    Attributes
    ----------
    workers : float, default 120
        Until there is a worker, when all are gone.
    answer : float, default 3600
        Until a worker that is alive has carried out an order.
    look : float, default 1
        Between two looks at which workers are alive, while one is waited for.
    losses : int, default 20
        How often in a row workers may be lost before an order is given up.
    """

    workers: float = 120.0
    answer: float = 3600.0
    look: float = 1.0
    losses: int = 20


class ClusterEngine(Engine):
    """Partitions on workers: one actor a worker holds those of it.

    A worker that is lost loses its partitions. They are placed on others, or on the one that was
    started in its place, and the orders that they need are carried out again.

    Parameters
    ----------
    client : distributed.Client
    blocks : sequence of Block
        A partition each; they are kept, or name what can be read again.
    bounds : ndarray of int64, shape (n + 1,)
        Where each partition begins among all examples, and the end.
    settings : ColumnSettings
        Sent to each worker once.
    waits : Bounds, optional
    """

    def __init__(
        self,
        client: Any,
        blocks: Sequence[Block],
        bounds: np.ndarray,
        settings: ColumnSettings,
        waits: Bounds | None = None,
    ) -> None:
        super().__init__(bounds)
        self.client, self.blocks, self.settings = client, blocks, settings
        self.waits = waits or Bounds()
        self._hosts: dict[str, _Actor] = {}
        self.place_of: dict[int, str] = {}
        self.shapes: dict[int, tuple[int, int]] = {}
        self._place(range(self.n))

    def close(self) -> None:
        """Free the workers' memory."""
        self._hosts.clear()
        self.place_of.clear()

    def _execute(self, records: Sequence[Record], freed: Sequence[int]) -> dict[Node, Any]:
        orders = [record.order for record in records]
        placed = _numbers_by_worker(self.place_of)
        nodes, lost = self._ask(
            "run", {a: (_sent(orders, mine), freed, mine) for a, mine in placed.items()}
        )
        result = {node: value for part in nodes.values() for node, value in part.items()}
        if lost:
            _logger.warning("workers were lost: %s", ", ".join(sorted(lost)))
            numbers = [n for n, address in self.place_of.items() if address in lost]
            earlier, spare = self._history(records)
            earlier_orders = [record.order for record in earlier]
            result.update(self._redone(numbers, [*earlier_orders, *orders], [*freed, *spare]))
        return result

    def _redone(
        self, numbers: Sequence[int], orders: list[Any], freed: list[int]
    ) -> dict[Node, Any]:
        """Return the results of partitions that are placed anew, after all that they need."""
        result: dict[Node, Any] = {}
        left = list(numbers)
        for _ in range(self.waits.losses):
            self._place(left)
            placed = _numbers_by_worker({n: self.place_of[n] for n in left})
            nodes, lost = self._ask(
                "run", {a: (_sent(orders, mine), freed, mine) for a, mine in placed.items()}
            )
            for part in nodes.values():
                result.update(part)
            left = [n for n in left if self.place_of[n] in lost]
            if not left:
                return result
        raise ClusterError(f"workers were lost {self.waits.losses} times in a row; none stayed")

    def _place(self, numbers: Iterable[int]) -> None:
        """Place partitions on workers that are alive; those that have the fewest get the most."""
        left = sorted(numbers)
        for _ in range(self.waits.losses):
            for number in left:
                self.place_of.pop(number, None)
            assigned = self._assigned(left, self._workers())
            lost = self._start(assigned)
            blocks = {
                address: ([(number, self.blocks[number]) for number in mine],)
                for address, mine in assigned.items()
                if address not in lost
            }
            answers, gone = self._ask("place_all", blocks)
            for address, shapes in answers.items():
                self.place_of.update(dict.fromkeys(assigned[address], address))
                self.shapes.update(zip(assigned[address], shapes, strict=True))
            left = [n for address in lost | gone for n in assigned[address]]
            if not left:
                return
        raise ClusterError(f"workers were lost {self.waits.losses} times in a row; none stayed")

    def _assigned(self, numbers: Sequence[int], workers: dict[str, int]) -> dict[str, list[int]]:
        """Return partitions for each worker: neighbors together, equally many in the end."""
        held = dict.fromkeys(sorted(workers), 0)
        for address in self.place_of.values():
            if address in held:
                held[address] += 1
        total = sum(held.values()) + len(numbers)
        shares: dict[str, list[int]] = {}
        rest = list(numbers)
        for i, address in enumerate(held):
            fair = -(-total // len(held)) if i < total % len(held) else total // len(held)
            take = min(len(rest), max(0, fair - held[address]))
            if i == len(held) - 1:
                take = len(rest)
            if take:
                shares[address], rest = rest[:take], rest[take:]
        return shares

    def _workers(self) -> dict[str, int]:
        """Return the addresses of the workers that are alive, and their threads."""
        end = time.monotonic() + self.waits.workers
        while True:
            workers = connected(self.client)
            if workers:
                return workers
            if time.monotonic() > end:
                raise ClusterError(f"no worker for {self.waits.workers:g} seconds")
            time.sleep(min(0.1, self.waits.look))

    def _start(self, addresses: Iterable[str]) -> set[str]:
        """Start a host on each of these workers that has none; return those that were lost."""
        starting = {
            address: self.client.submit(
                Hosts,
                self.n,
                self.settings,
                actor=True,
                workers=[address],
                allow_other_workers=False,
                pure=False,
            )
            for address in addresses
            if address not in self._hosts
        }
        found, lost = self._awaited(starting)
        for address, actor in found.items():
            self._hosts[address] = _Actor(starting[address], actor)
        return lost

    def _ask(
        self, method: str, questions: dict[str, tuple[Any, ...]]
    ) -> tuple[dict[str, Any], set[str]]:
        """Call a method of hosts, all at once; return the answers and the lost workers."""
        asked: dict[str, Any] = {}
        lost: set[str] = set()
        for address, args in questions.items():
            try:
                asked[address] = getattr(self._hosts[address].actor, method)(*args)
            except RuntimeError:
                # Dask's word for an actor whose worker is gone.
                lost.add(address)
        answers, gone = self._awaited(asked)
        for address in lost | gone:
            self._hosts.pop(address, None)
        return answers, lost | gone

    def _awaited(self, futures: dict[str, Any]) -> tuple[dict[str, Any], set[str]]:
        """Return what futures of workers give, and the workers that were lost meanwhile."""
        from distributed import TimeoutError as Late

        answers: dict[str, Any] = {}
        lost: set[str] = set()
        end = time.monotonic() + self.waits.answer
        for address, future in futures.items():
            while address not in answers and address not in lost:
                try:
                    answers[address] = future.result(timeout=self.waits.look)
                except (TimeoutError, Late):
                    if self._gone(address):
                        lost.add(address)
                    elif time.monotonic() > end:
                        said = f"no answer for {self.waits.answer:g} seconds"
                        raise ClusterError(f"{address}: {said}") from None
                except Exception as error:
                    if not _tells_of_loss(error):
                        raise
                    lost.add(address)
        return answers, lost

    def _gone(self, address: str) -> bool:
        host = self._hosts.get(address)
        if host is not None and host.future.status != "finished":
            return True
        return address not in connected(self.client)


class Hosts(Host):
    """A host whose partitions are placed together."""

    def place_all(self, blocks: Sequence[tuple[int, Block]]) -> list[tuple[int, int]]:
        """Evaluate the columns of partitions and return their shapes."""
        return [self.place(number, block) for number, block in blocks]


@dataclass
class _Actor:
    """An actor, and the future without which the cluster would drop it."""

    future: Any
    actor: Any


def _numbers_by_worker(place_of: dict[int, str]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for number in sorted(place_of):
        found.setdefault(place_of[number], []).append(number)
    return found


def _sent(orders: Sequence[Any], numbers: Sequence[int]) -> list[Any]:
    """Return orders with those pieces alone that some partitions need."""
    return [order.for_partitions(numbers) for order in orders]


def _tells_of_loss(error: Exception) -> bool:
    """Return whether an error means that a worker is gone, and not that an order failed."""
    from concurrent.futures import CancelledError

    from distributed.comm import CommClosedError
    from distributed.scheduler import KilledWorker

    # Of an actor that was lost while it started Dask has no error of its own.
    if type(error) is RuntimeError and "Actor was lost" in str(error):
        return True
    gone = (Missing, CancelledError, CommClosedError, KilledWorker, ConnectionError)
    # An actor says a plain OSError; those of files are of its subclasses.
    return isinstance(error, gone) or type(error) is OSError


def connected(client: Any) -> dict[str, int]:
    """Return the workers of a client's cluster, with their threads.

    Raises
    ------
    ClusterError
        If the scheduler does not answer.
    """
    try:
        return dict(client.nthreads())
    except (OSError, ValueError, TypeError, RuntimeError) as error:
        raise ClusterError(f"the scheduler does not answer: {error}") from error
