"""Partitions on the workers of a Dask cluster."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import numpy as np

from visionshare.distributed.blocks import Block, ColumnSettings
from visionshare.distributed.engine import Engine, Record
from visionshare.distributed.host import Host
from visionshare.distributed.placement import Bounds, Placement
from visionshare.distributed.sums import Node
from visionshare.errors import ClusterError

__all__ = ["ClusterEngine"]

_logger = logging.getLogger(__name__)


class ClusterEngine(Engine):
    """Partitions on workers: one actor a worker holds those of it."""

    def __init__(
        self,
        client: Any,
        blocks: Sequence[Block],
        bounds: np.ndarray,
        settings: ColumnSettings,
        waits: Bounds | None = None,
    ) -> None:
        super().__init__(bounds)
        self.placement = Placement(client, blocks, Hosts, (len(blocks), settings), waits)

    @property
    def shapes(self) -> list[tuple[int, int]]:
        """Rows and columns of each partition."""
        return [self.placement.placed[number] for number in range(self.n)]

    def close(self) -> None:
        """Free the workers' memory."""
        self.placement.close()

    def _execute(self, records: Sequence[Record], freed: Sequence[int]) -> dict[Node, Any]:
        requests = [record.request for record in records]
        placed = self.placement.numbers()
        nodes, lost = self._run(placed, requests, freed)
        result = {node: value for part in nodes.values() for node, value in part.items()}
        if lost:
            _logger.warning("workers were lost: %s", ", ".join(sorted(lost)))
            numbers = [n for address in lost for n in placed[address]]
            earlier, spare = self._history(records)
            earlier_requests = [record.request for record in earlier]
            result.update(self._redone(numbers, [*earlier_requests, *requests], [*freed, *spare]))
        return result

    def _redone(
        self, numbers: Sequence[int], requests: list[Any], freed: list[int]
    ) -> dict[Node, Any]:
        """Return the results of partitions that are placed anew, after all that they need."""
        result: dict[Node, Any] = {}
        left = list(numbers)
        losses = self.placement.waits.losses
        for _ in range(losses):
            self.placement.place(left)
            placed = self.placement.numbers(left)
            nodes, lost = self._run(placed, requests, freed)
            for part in nodes.values():
                result.update(part)
            left = [n for address in lost for n in placed[address]]
            if not left:
                return result
        raise ClusterError(f"workers were lost {losses} times in a row; none stayed")

    def _run(
        self, placed: dict[str, list[int]], requests: list[Any], freed: Sequence[int]
    ) -> tuple[dict[str, Any], set[str]]:
        """Have workers carry out requests in some of their partitions."""
        from distributed.protocol.pickle import dumps, loads

        # In one piece each way: Dask would look into everything that a request holds, which takes
        # longer than most requests do.
        questions = {
            a: (dumps((_sent(requests, mine), freed, mine)),) for a, mine in placed.items()
        }
        answers, lost = self.placement.ask("run_pickled", questions)
        return {address: loads(answer) for address, answer in answers.items()}, lost


class Hosts(Host):
    """A host whose partitions are placed together."""

    def place_all(self, blocks: Sequence[tuple[int, Block]]) -> list[tuple[int, int]]:
        """Evaluate the columns of partitions and return their shapes."""
        return [self.place(number, block) for number, block in blocks]

    def run_pickled(self, question: bytes) -> bytes:
        """Carry out requests that were pickled, and return their results so."""
        from distributed.protocol.pickle import dumps, loads

        answer: bytes = dumps(self.run(*loads(question)))
        return answer


def _sent(requests: Sequence[Any], numbers: Sequence[int]) -> list[Any]:
    """Return requests with those pieces alone that some partitions need."""
    return [request.for_partitions(numbers) for request in requests]
