"""Which worker of a Dask cluster holds which part of some data: one actor each holds its parts."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from visionshare.distributed.host import Missing
from visionshare.errors import ClusterError

__all__ = ["Bounds", "Placement", "awaited", "connected", "tells_of_loss"]


@dataclass(frozen=True)
class Bounds:
    """How long a cluster is waited for, in seconds."""

    workers: float = 120.0
    answer: float = 3600.0
    look: float = 1.0
    losses: int = 20


class Placement:
    """Parts on workers: one actor a worker holds those of it."""

    def __init__(
        self,
        client: Any,
        parts: Sequence[Any],
        actor: type,
        args: tuple[Any, ...] = (),
        waits: Bounds | None = None,
    ) -> None:
        self.client, self.parts, self.waits = client, parts, waits or Bounds()
        self._actor, self._args = actor, args
        self._hosts: dict[str, _Actor] = {}
        self.place_of: dict[int, str] = {}
        self.placed: dict[int, Any] = {}
        self.place(range(len(parts)))

    def close(self) -> None:
        """Free the workers' memory."""
        self._hosts.clear()
        self.place_of.clear()

    def numbers(self, some: Iterable[int] | None = None) -> dict[str, list[int]]:
        """Return the numbers of each worker's parts, of all or some."""
        found: dict[str, list[int]] = {}
        for number in sorted(self.place_of if some is None else some):
            found.setdefault(self.place_of[number], []).append(number)
        return found

    def place(self, numbers: Iterable[int]) -> None:
        """Place partitions on workers that are alive; those that have the fewest get the most."""
        left = sorted(numbers)
        for _ in range(self.waits.losses):
            for number in left:
                self.place_of.pop(number, None)
            assigned = self._assigned(left, self._workers())
            lost = self._start(assigned)
            given = {
                address: ([(number, self.parts[number]) for number in mine],)
                for address, mine in assigned.items()
                if address not in lost
            }
            answers, gone = self.ask("place_all", given)
            for address, results in answers.items():
                self.place_of.update(dict.fromkeys(assigned[address], address))
                self.placed.update(zip(assigned[address], results, strict=True))
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
                self._actor,
                *self._args,
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

    def ask(
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
        answers: dict[str, Any] = {}
        lost: set[str] = set()
        end = time.monotonic() + self.waits.answer
        for address, future in futures.items():
            while address not in answers and address not in lost:
                try:
                    answers[address] = awaited(future, self.waits.look)
                except TimeoutError:
                    if self._gone(address):
                        lost.add(address)
                    elif time.monotonic() > end:
                        said = f"no answer for {self.waits.answer:g} seconds"
                        raise ClusterError(f"{address}: {said}") from None
                except Exception as error:
                    if not tells_of_loss(error):
                        raise
                    lost.add(address)
        return answers, lost

    def _gone(self, address: str) -> bool:
        host = self._hosts.get(address)
        if host is not None and host.future.status != "finished":
            return True
        return address not in connected(self.client)


@dataclass
class _Actor:
    """An actor, and the future without which the cluster would drop it."""

    future: Any
    actor: Any


def awaited(future: Any, seconds: float) -> Any:
    """Return what a future of Dask gives."""
    try:
        return future.result(timeout=seconds)
    except UnboundLocalError as error:
        # On a busy machine Dask's own wait may be cancelled by its timeout: it then ends without
        # a result of its own.
        if "'result'" not in str(error):
            raise
        raise TimeoutError from None


def tells_of_loss(error: Exception) -> bool:
    """Return whether an error means that a worker is gone, and not that a request failed."""
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
    """Return the workers of a client's cluster, with their threads."""
    try:
        return dict(client.nthreads())
    except (OSError, ValueError, TypeError, RuntimeError) as error:
        raise ClusterError(f"the scheduler does not answer: {error}") from error
