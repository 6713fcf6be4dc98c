"""A function of many items, carried out on the workers of a cluster, with results in order."""

from __future__ import annotations

import itertools
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from visionshare.distributed.worker_parts import Patience, awaited, workers_of
from visionshare.errors import ClusterError, DataError

Item = TypeVar("Item")
Result = TypeVar("Result")

# Items that are under way for each thread of the cluster: one is computed, others wait beside it.
_AHEAD = 3


class ClusterMap:
    """Calls a function on workers: the results come in order, each exactly once."""

    def __init__(self, client: Any, waits: Patience | None = None) -> None:
        self.client = client
        self.waits = waits or Patience()

    def __call__(
        self,
        function: Callable[[Any, Item], Result],
        make: Callable[..., Any],
        arguments: tuple[Any, ...],
        items: Iterable[Item],
    ) -> Iterator[Result]:
        """Yield ``function(make(*arguments), item)`` for each item."""
        shared = self.client.submit(make, *arguments, pure=False)
        remaining = iter(items)
        pending = deque[Any]()
        try:
            while True:
                room = _AHEAD * sum(workers_of(self.client, self.waits).values()) - len(pending)
                for item in itertools.islice(remaining, max(room, 0)):
                    pending.append(self.client.submit(function, shared, item, pure=False))
                if not pending:
                    return
                yield self._awaited(pending.popleft())
        finally:
            for future in pending:
                future.cancel()

    def _awaited(self, future: Any) -> Any:
        from concurrent.futures import CancelledError

        from distributed.comm import CommClosedError
        from distributed.scheduler import KilledWorker

        end = time.monotonic() + self.waits.answer
        while True:
            try:
                return awaited(future, self.waits.look)
            except TimeoutError:
                workers_of(self.client, self.waits)
                if time.monotonic() > end:
                    said = f"no answer for {self.waits.answer:g} seconds"
                    raise ClusterError(said) from None
            except KilledWorker:
                said = "each worker that was given some pictures died; do they fit into its memory?"
                raise DataError(said) from None
            except (CancelledError, CommClosedError) as error:
                raise ClusterError(f"the scheduler was lost: {error}") from error
