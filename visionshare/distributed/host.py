"""A host: the partitions of one process, their columns, and what commands leave there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from visionshare.columns import ArrayColumns, Columns
from visionshare.distributed.blocks import Block, ColumnSettings, Room
from visionshare.distributed.sums import JOINS, Node, joined
from visionshare.machine.resources import thread_limit

__all__ = ["CHANGE", "COLUMNS", "ROWS", "THREADS", "Host", "Missing", "Piece", "Request", "Slot"]

# Kinds of requests besides the names of joins: keep the result, or keep none.
ROWS, CHANGE = "rows", "change"
# The slot of a partition's columns.
COLUMNS = 0


class Missing(RuntimeError):
    """A host does not have a partition: it has been started anew."""


class Slot(NamedTuple):
    """Stands for what an earlier request left in a partition."""

    number: int


class Piece(NamedTuple):
    """Stands for an array of which each partition gets its own rows."""

    parts: dict[int, Any]

    def only(self, numbers: Sequence[int]) -> Piece:
        """Return the rows of some partitions alone."""
        return Piece({number: self.parts[number] for number in numbers})


class _Threads(NamedTuple):
    """Stands for the threads of a host."""


THREADS = _Threads()


@dataclass(frozen=True)
class Request:
    """A function that each partition is to call."""

    number: int
    kind: str
    function: Callable[..., Any]
    args: tuple[Any, ...]

    def for_partitions(self, numbers: Sequence[int]) -> Request:
        """Return the request with the pieces of some partitions alone."""
        args = tuple(arg.only(numbers) if isinstance(arg, Piece) else arg for arg in self.args)
        return replace(self, args=args)


class Host:
    """Partitions of one process."""

    def __init__(self, n: int, settings: ColumnSettings, n_jobs: int | None = None) -> None:
        self._n, self._settings = n, settings
        self._slots: dict[int, dict[int, Any]] = {}
        # The last request of each partition that left or changed something.
        self._done: dict[int, int] = {}
        self.n_jobs, self._folder = _of_worker() if n_jobs is None else (n_jobs, None)
        self._pool: ThreadPoolExecutor | None = None

    def place(self, number: int, block: Block) -> tuple[int, int]:
        """Evaluate the columns of a partition and return their shape."""
        self._slots.pop(number, None)
        held = sum(_bytes_of(slots[COLUMNS]) for slots in self._slots.values())
        room = Room.left(self._settings, held, self._folder, self.n_jobs)
        columns = block.columns(self._settings, room)
        self._slots[number] = {COLUMNS: columns}
        self._done[number] = COLUMNS
        return columns.shape

    def run(
        self,
        requests: Sequence[Request],
        freed: Iterable[int] = (),
        numbers: Sequence[int] | None = None,
    ) -> dict[Node, Any]:
        """Carry out requests in each partition, and return the joined results of the last one."""
        # Requests that leave or change something are carried out once: where an earlier call
        # failed or was interrupted, the same ones may be given again.
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
        slots, result = self._slots[number], None
        columns: Columns = slots[COLUMNS]
        columns.n_jobs = self.n_jobs
        for request in requests:
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
        if isinstance(arg, Piece):
            return arg.parts[number]
        if isinstance(arg, _Threads):
            # One thread is this one: to hand tiles over would cost more than most of them.
            if self.n_jobs == 1:
                return None
            if self._pool is None:
                self._pool = ThreadPoolExecutor(self.n_jobs)
            return self._pool
        return arg


def _bytes_of(columns: Columns) -> int:
    """Return what columns take in memory."""
    m, d = columns.shape
    return m * d * np.dtype(columns.dtype).itemsize if isinstance(columns, ArrayColumns) else 0


def _of_worker() -> tuple[int, Path | None]:
    """Return the threads of the Dask worker, and its folder for files."""
    from distributed import get_worker

    worker = get_worker()
    return int(worker.state.nthreads), Path(worker.local_directory)
