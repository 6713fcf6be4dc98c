"""Which worker of a Dask cluster holds which part of some data: one actor each holds its parts."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from visionshare.distributed.blocks import ColumnSettings, PartitionBlock
from visionshare.distributed.host import Host, Missing
from visionshare.errors import ClusterError


@dataclass(frozen=True)
class Patience:
    """How long a cluster is waited for, in seconds, and how many losses in a row are borne."""

    workers: float = 120.0
    answer: float = 3600.0
    look: float = 1.0
    losses: int = 20


class WorkerHost(Host):
    """The host of a worker, as an actor."""

    def place_all(self, blocks: Sequence[tuple[int, PartitionBlock]]) -> list[tuple[int, ...]]:
        """Load the data of partitions and return their shapes."""
        return [self.place(number, block) for number, block in blocks]

    def run_pickled(self, question: bytes) -> bytes:
        """Carry out requests that were pickled, and return their results so."""
        from distributed.protocol.pickle import dumps, loads

        return dumps(self.run(*loads(question)))


@dataclass
class _Actor:
    """An actor, and the future without which the cluster would drop it."""

    future: Any
    actor: Any


class WorkerParts:
    """Parts on workers, one actor each; the parts of a lost worker are placed anew."""

    def __init__(
        self,
        client: Any,
        blocks: Sequence[PartitionBlock],
        settings: ColumnSettings,
        waits: Patience | None = None,
    ) -> None:
        self.client = client
        self.waits = waits or Patience()
        self._blocks = blocks
        self._settings = settings
        self._hosts: dict[str, _Actor] = {}
        #: The worker's address of each part.
        self.place_of: dict[int, str] = {}
        self.shapes: dict[int, tuple[int, ...]] = {}
        self.place(range(len(blocks)))

    def close(self) -> None:
        """Free the workers' memory."""
        self._hosts.clear()
        self.place_of.clear()

    def by_worker(self, numbers: Iterable[int]) -> dict[str, list[int]]:
        """Return which of some parts each worker has."""
        found: dict[str, list[int]] = {}
        for number in sorted(numbers):
            found.setdefault(self.place_of[number], []).append(number)
        return found

    def place(self, numbers: Iterable[int]) -> None:
        """Place parts on workers that are alive; those that have the fewest get the most."""
        left = sorted(numbers)
        for _ in range(self.waits.losses):
            for number in left:
                self.place_of.pop(number, None)
            shares = self._shares(left, workers_of(self.client, self.waits))
            lost = self._start(shares)
            given = {
                address: [(number, self._blocks[number]) for number in own]
                for address, own in shares.items()
                if address not in lost
            }
            answers, gone = self.ask("place_all", given)
            for address, shapes in answers.items():
                self.place_of.update(dict.fromkeys(shares[address], address))
                self.shapes.update(zip(shares[address], shapes, strict=True))
            left = [number for address in lost | gone for number in shares[address]]
            if not left:
                return
        raise ClusterError(f"workers were lost {self.waits.losses} times in a row; none stayed")

    def _shares(self, numbers: Sequence[int], workers: dict[str, int]) -> dict[str, list[int]]:
        """Return parts for each worker: neighbors together, equally many in the end."""
        held = dict.fromkeys(sorted(workers), 0)
        for address in self.place_of.values():
            if address in held:
                held[address] += 1
        fair, more = divmod(sum(held.values()) + len(numbers), len(held))
        rest = list(numbers)
        shares: dict[str, list[int]] = {}
        for i, address in enumerate(held):
            take = max(0, fair + (i < more) - held[address])
            if i == len(held) - 1:
                take = len(rest)
            if rest[:take]:
                shares[address] = rest[:take]
                rest = rest[take:]
        return shares

    def _start(self, addresses: Iterable[str]) -> set[str]:
        """Start a host on each of these workers that has none; return those that were lost."""
        starting = {
            address: self.client.submit(
                WorkerHost,
                len(self._blocks),
                self._settings,
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

    def ask(self, method: str, questions: dict[str, Any]) -> tuple[dict[str, Any], set[str]]:
        """Call a method of hosts, all at once; return the answers and the lost workers."""
        asked: dict[str, Any] = {}
        lost: set[str] = set()
        for address, question in questions.items():
            try:
                asked[address] = getattr(self._hosts[address].actor, method)(question)
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
                    host = self._hosts.get(address)
                    is_dropped = host is not None and host.future.status != "finished"
                    if is_dropped or address not in connected(self.client):
                        lost.add(address)
                    elif time.monotonic() > end:
                        said = f"no answer for {self.waits.answer:g} seconds"
                        raise ClusterError(f"{address}: {said}") from None
                except Exception as error:
                    if not tells_of_loss(error):
                        raise
                    lost.add(address)
        return answers, lost


def awaited(future: Any, seconds: float) -> Any:
    """Return what a future of Dask gives; raise a TimeoutError if it is not there in time."""
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
    # An actor raises a plain OSError; errors of files are subclasses of it.
    return isinstance(error, gone) or type(error) is OSError


def connected(client: Any) -> dict[str, int]:
    """Return the workers of a client's cluster, with their threads."""
    try:
        return dict(client.nthreads())
    except (OSError, ValueError, TypeError, RuntimeError) as error:
        raise ClusterError(f"the scheduler does not answer: {error}") from error


def workers_of(client: Any, waits: Patience) -> dict[str, int]:
    """Return the workers of a client's cluster, with their threads, once there is one."""
    end = time.monotonic() + waits.workers
    while not (workers := connected(client)):
        if time.monotonic() > end:
            raise ClusterError(f"no worker for {waits.workers:g} seconds")
        time.sleep(min(0.1, waits.look))
    return workers
