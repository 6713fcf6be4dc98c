"""Partitions on the workers of a Dask cluster."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from visionshare.distributed.blocks import ColumnSettings, PartitionBlock
from visionshare.distributed.engine import Engine, Record
from visionshare.distributed.host import Request
from visionshare.distributed.sums import Node
from visionshare.distributed.worker_parts import Patience, WorkerParts
from visionshare.errors import ClusterError

_logger = logging.getLogger(__name__)


class ClusterEngine(Engine):
    """Partitions on workers: one actor per worker holds the partitions there.

    A worker that is lost loses its partitions. They are placed on others, or on the one that was
    started in its place, and the requests that they need are carried out again.
    """

    def __init__(
        self,
        client: Any,
        blocks: Sequence[PartitionBlock],
        bounds: np.ndarray,
        settings: ColumnSettings,
        waits: Patience | None = None,
    ) -> None:
        super().__init__(bounds)
        self.parts = WorkerParts(client, blocks, settings, waits)

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        """Shape of each partition's data."""
        return [self.parts.shapes[number] for number in range(self.n)]

    def close(self) -> None:
        """Free the workers' memory."""
        self.parts.close()

    def _execute(self, records: Sequence[Record], freed: Sequence[int]) -> dict[Node, Any]:
        requests = [record.request for record in records]
        nodes, left = self._run(range(self.n), requests, freed)
        losses = 0
        while left:
            losses += 1
            if losses > self.parts.waits.losses:
                raise ClusterError(f"workers were lost {losses} times in a row; none stayed")
            # What was lost is placed anew and does all that it needs.
            self.parts.place(left)
            earlier, spare = self._history(records)
            before = [record.request for record in earlier]
            found, left = self._run(left, [*before, *requests], [*freed, *spare])
            nodes.update(found)
        return nodes

    def _run(
        self, numbers: Iterable[int], requests: Sequence[Request], freed: Sequence[int]
    ) -> tuple[dict[Node, Any], list[int]]:
        """Have some partitions carry out requests; return joined results, and who was lost."""
        from distributed.protocol.pickle import dumps, loads

        placed = self.parts.by_worker(numbers)
        # In one piece each way: Dask would look into everything that a request holds, which takes
        # longer than most requests do.
        questions = {
            address: dumps(([r.for_partitions(own) for r in requests], freed, own))
            for address, own in placed.items()
        }
        answers, lost = self.parts.ask("run_pickled", questions)
        if lost:
            _logger.warning("workers were lost: %s", ", ".join(sorted(lost)))
        nodes: dict[Node, Any] = {}
        for answer in answers.values():
            nodes.update(loads(answer))
        return nodes, [number for address in lost for number in placed[address]]
