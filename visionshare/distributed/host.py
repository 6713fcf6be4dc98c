"""A host: the partitions of one process, their data, and what requests leave there."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from visionshare.columns import ArrayColumns
from visionshare.distributed.blocks import ColumnSettings, PartitionBlock
from visionshare.distributed.sums import JOINS, Node, joined
from visionshare.machine.resources import thread_limit

# Kinds of requests besides the names of joins: keep the result, or keep none.
ROWS = "rows"
CHANGE = "change"
# The slot of a partition's data.
DATA = 0
# Of a process's bound: what columns in memory may take.
_IN_MEMORY = 2


class Missing(RuntimeError):
    """A host does not have a partition: it has been started anew."""


class Slot(NamedTuple):
    """Stands for what an earlier request left in a partition."""

    number: int


class PerPart(NamedTuple):
    """Stands for values of which each partition gets its own."""

    values: dict[int, Any]


class _Threads(NamedTuple):
    """Stands for the threads of a host."""


THREADS = _Threads()


@dataclass(frozen=True)
class Request:
    """A function that each partition is to call; its number is the slot of the result."""

    number: int
    kind: str
    function: Callable[..., Any]
    args: tuple[Any, ...]

    def for_partitions(self, numbers: Sequence[int]) -> Request:
        """Return the request with the values of some partitions alone."""
        args = [
            PerPart({number: arg.values[number] for number in numbers})
            if isinstance(arg, PerPart)
            else arg
            for arg in self.args
        ]
        return replace(self, args=tuple(args))


class Host:
    """Partitions of one process."""

    def __init__(self, n: int, settings: ColumnSettings, n_jobs: int | None = None) -> None:
        self.settings = settings
        self._n = n
        self.n_jobs, self.folder = _of_worker() if n_jobs is None else (n_jobs, None)
        self._slots: dict[int, dict[int, Any]] = {}
        # The last request of each partition that left or changed something.
        self._done: dict[int, int] = {}
        self._pool: ThreadPoolExecutor | None = None

    def memory_left(self) -> int | None:
        """Return how many more bytes of columns may be in memory; None for any number."""
        if self.settings.memory is None:
            return None
        data = (slots[DATA] for slots in self._slots.values())
        itemsize = np.dtype(self.settings.dtype).itemsize
        held = sum(math.prod(c.shape) * itemsize for c in data if isinstance(c, ArrayColumns))
        return max(0, self.settings.memory // _IN_MEMORY - held)

    def place(self, number: int, block: PartitionBlock) -> tuple[int, ...]:
        """Load the data of a partition and return its shape."""
        self._slots.pop(number, None)
        data = block.load(self)
        self._slots[number] = {DATA: data}
        self._done[number] = DATA
        return data.shape

    def run(
        self,
        requests: Sequence[Request],
        freed: Iterable[int] = (),
        numbers: Sequence[int] | None = None,
    ) -> dict[Node, Any]:
        """Carry out requests in each partition, and return the joined results of the last one."""
        numbers = sorted(self._slots) if numbers is None else sorted(numbers)
        lost = [number for number in numbers if number not in self._slots]
        if lost or not numbers:
            raise Missing(f"partitions {lost}")
        nodes: dict[Node, Any] = {}
        with thread_limit(self.n_jobs):
            for number in numbers:
                nodes[0, number] = self._carry_out(number, requests)
                for slot in freed:
                    self._slots[number].pop(slot, None)
        kind = requests[-1].kind if requests else CHANGE
        return joined(nodes, self._n, JOINS[kind]) if kind in JOINS else {}

    def _carry_out(self, number: int, requests: Sequence[Request]) -> Any:
        slots = self._slots[number]
        result = None
        slots[DATA].n_jobs = self.n_jobs
        for request in requests:
            # What leaves or changes something is carried out once: where an earlier call failed or
            # was interrupted, the same requests may be given again.
            lasting = request.kind in (ROWS, CHANGE)
            if lasting and request.number <= self._done[number]:
                continue
            result = request.function(*(self._resolved(arg, number) for arg in request.args))
            if request.kind == ROWS:
                slots[request.number] = result
            if lasting:
                self._done[number] = request.number
        return result

    def _resolved(self, arg: Any, number: int) -> Any:
        if isinstance(arg, Slot):
            return self._slots[number][arg.number]
        if isinstance(arg, PerPart):
            return arg.values[number]
        if isinstance(arg, _Threads):
            # One thread is this one: to hand tiles over would cost more than most of them.
            if self.n_jobs == 1:
                return None
            if self._pool is None:
                self._pool = ThreadPoolExecutor(self.n_jobs)
            return self._pool
        return arg


def _of_worker() -> tuple[int, Path | None]:
    """Return the threads of the Dask worker, and its folder for files."""
    from distributed import get_worker

    worker = get_worker()
    return int(worker.state.nthreads), Path(worker.local_directory)
