"""Engines: requests to all partitions, wherever these are, and the record that restores them.

An engine keeps what each living result was made from. A partition that is lost is placed anew and
the requests it still needs are carried out again, in their old order: the bits are the same.
"""

from __future__ import annotations

import operator
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from itertools import count
from typing import Any

import numpy as np

from visionshare.distributed.blocks import ColumnSettings, PartitionBlock
from visionshare.distributed.host import CHANGE, DATA, ROWS, Host, PerPart, Request, Slot
from visionshare.distributed.sums import JOINS, Node, root
from visionshare.errors import InputError


class Record:
    """A request, what it was made from, and what has changed its result since."""

    def __init__(self, request: Request, sources: Sequence[Record]) -> None:
        self.request = request
        self.sources = list(sources)
        self.changes: list[Record] = []


class PartitionedRows:
    """Numbers for each example that stay in the partitions: columns, scores, residuals."""

    # NumPy's numbers leave ``number * rows`` to this class.
    __array_ufunc__ = None

    def __init__(self, engine: Engine, record: Record, shape: tuple[int, ...] | None) -> None:
        self.engine = engine
        self.record = record
        self.shape = shape

    def __add__(self, other: PartitionedRows) -> PartitionedRows:
        return self.engine.rows(operator.add, self, other, shape=self.shape)

    def __sub__(self, other: PartitionedRows) -> PartitionedRows:
        return self.engine.rows(operator.sub, self, other, shape=self.shape)

    def __rmul__(self, factor: Any) -> PartitionedRows:
        return self.engine.rows(operator.mul, self, factor, shape=self.shape)

    def __array__(self, *_: Any, **__: Any) -> np.ndarray:
        raise InputError(
            "columns", "partitions", "columns in one place, for this learner or search"
        )


class Engine(ABC):
    """Partitions of examples, and the requests that are given to all of them."""

    def __init__(self, bounds: np.ndarray) -> None:
        self.bounds = bounds
        self._numbers = count(DATA + 1)
        self._pending: list[Record] = []
        self._freed: list[int] = []
        record = Record(Request(DATA, ROWS, operator.add, ()), ())
        self._living: dict[int, Record] = {DATA: record}
        #: Stands for the data of each partition.
        self.data = PartitionedRows(self, record, None)

    @property
    def n(self) -> int:
        """Number of partitions."""
        return len(self.bounds) - 1

    def split(self, values: np.ndarray) -> PerPart:
        """Return an argument that gives each partition its own rows of an array (m, …)."""
        ends = zip(self.bounds[:-1], self.bounds[1:], strict=True)
        return PerPart({i: values[start:stop] for i, (start, stop) in enumerate(ends)})

    def rows(
        self, function: Callable[..., Any], *args: Any, shape: tuple[int, ...] | None = None
    ) -> PartitionedRows:
        """Return what a function gives in each partition; it is called when it is needed."""
        record = self._recorded(ROWS, function, args)
        rows = PartitionedRows(self, record, shape)
        number = record.request.number
        self._living[number] = record
        self._pending.append(record)
        weakref.finalize(rows, self._free, number).atexit = False
        return rows

    def of_examples(self, values: Any) -> PartitionedRows:
        """Return an array (m, …) as rows that stay in the partitions; rows are themselves."""
        if isinstance(values, PartitionedRows):
            return values
        return self.rows(_itself, self.split(values), shape=values.shape)

    def shared(self, value: Any) -> PartitionedRows:
        """Return what stands for a value that is sent to each partition once."""
        return self.rows(_itself, value)

    def _free(self, number: int) -> None:
        self._living.pop(number, None)
        self._freed.append(number)

    def change(self, target: PartitionedRows, function: Callable[..., Any], *args: Any) -> None:
        """Call a function that changes ``target``, its first argument, in each partition."""
        record = self._recorded(CHANGE, function, (target, *args))
        target.record.changes.append(record)
        self._pending.append(record)

    def total(self, function: Callable[..., Any], *args: Any, how: str = "sum") -> Any:
        """Return the sum (or "max") over the partitions of what a function gives."""
        pending = self._needed([*self._pending, self._recorded(how, function, args)])
        freed = self._freed
        self._pending = []
        self._freed = []
        try:
            nodes = self._execute(pending, freed)
        except BaseException:
            # The next total asks again; partitions skip what they have done of it.
            self._pending = pending[:-1] + self._pending
            self._freed = freed + self._freed
            raise
        return root(nodes, self.n, JOINS[how])

    def gathered(self, function: Callable[..., Any], *args: Any) -> np.ndarray:
        """Return the arrays that a function gives in each partition, one after the other."""
        return np.concatenate(self.each(function, *args))

    def each(self, function: Callable[..., Any], *args: Any) -> list[Any]:
        """Return what a function gives in each partition."""
        return self.total(_listed, function, *args)

    def _needed(self, records: Sequence[Record]) -> list[Record]:
        """Return requests without those for rows that nobody has: one that failed is given up."""
        kept: list[Record] = []
        used = set(self._living)
        for record in reversed(records):
            changed = record.sources[0] if record.request.kind == CHANGE else record
            if record is records[-1] or changed.request.number in used:
                kept.append(record)
                used.update(source.request.number for source in record.sources)
        return kept[::-1]

    def _recorded(self, kind: str, function: Callable[..., Any], args: Iterable[Any]) -> Record:
        args = tuple(args)
        sources = [arg.record for arg in args if isinstance(arg, PartitionedRows)]
        sent = tuple(
            Slot(a.record.request.number) if isinstance(a, PartitionedRows) else a for a in args
        )
        return Record(Request(next(self._numbers), kind, function, sent), sources)

    @abstractmethod
    def _execute(self, records: Sequence[Record], freed: Sequence[int]) -> dict[Node, Any]:
        """Carry out requests in all partitions; return the results of the last, partly joined."""

    def _history(self, records: Sequence[Record]) -> tuple[list[Record], list[int]]:
        """Return what a new partition must do before some requests, and the slots it may empty."""
        first = min(record.request.number for record in records)
        found: dict[int, Record] = {}
        stack = [*self._living.values(), *records]
        while stack:
            record = stack.pop()
            if record.request.number not in found:
                found[record.request.number] = record
                stack.extend([*record.sources, *record.changes])
        numbers = sorted(n for n in found if DATA < n < first)
        used = {source.request.number for record in records for source in record.sources}
        spare = [n for n in numbers if n not in self._living and n not in used]
        return [found[n] for n in numbers], spare


def _itself(values: Any) -> Any:
    return values


def _listed(function: Callable[..., Any], *args: Any) -> list[Any]:
    return [function(*args)]


class LocalEngine(Engine):
    """All partitions in this process."""

    def __init__(
        self,
        blocks: Sequence[PartitionBlock],
        bounds: np.ndarray,
        settings: ColumnSettings,
        n_jobs: int,
    ) -> None:
        super().__init__(bounds)
        self.host = Host(len(blocks), settings, n_jobs)
        self.shapes = [self.host.place(number, block) for number, block in enumerate(blocks)]

    def _execute(self, records: Sequence[Record], freed: Sequence[int]) -> dict[Node, Any]:
        return self.host.run([record.request for record in records], freed)


def summed(function: Callable[..., Any]) -> Any:
    """Return a method that adds up what a function gives of what is in each partition."""

    def method(self: Any, *args: Any) -> Any:
        return self._engine.total(function, self._local, *args)

    return method


def staying(function: Callable[..., Any]) -> Any:
    """Return a method whose results, one of what is in each partition, stay there."""

    def method(self: Any, *args: Any) -> PartitionedRows:
        return self._engine.rows(function, self._local, *args)

    return method
