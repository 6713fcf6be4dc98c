"""What a worker does once when it starts: it loads the kernels that every learner needs."""

from __future__ import annotations

import importlib
import threading
from contextlib import suppress
from typing import Any

import numpy as np

_NAME = "visionshare-kernels"


def warm_workers(client: Any) -> None:
    """Have each worker of a client's cluster, now and later, load the kernels when it starts."""
    from distributed import WorkerPlugin

    class WarmKernels(WorkerPlugin):
        name = _NAME
        idempotent = True

        def setup(self, worker: Any) -> None:
            # In a thread of its own: a worker that starts must answer its scheduler.
            threading.Thread(target=warm, name=_NAME, daemon=True).start()

    # Of a scheduler that does not answer speaks whoever needs it.
    with suppress(OSError, TimeoutError):
        client.register_plugin(WarmKernels())


def warm() -> None:
    """Import the solvers."""
    # Compile, or load from the cache, the kernels of columns in all dtypes.
    importlib.import_module("visionshare.solvers.active_set")
    from visionshare.columns import ArrayColumns

    for dtype in ("float16", "float32"):
        columns = ArrayColumns(np.ones((2, 2)), dtype=dtype)
        columns.fit_scaling("unit_variance")
        columns.take()
        columns.correlate(np.ones((2, 1), np.float32))
