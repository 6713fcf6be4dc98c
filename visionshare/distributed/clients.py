"""Clients of a cluster: of one that runs, or of processes of this machine."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from visionshare.errors import ClusterError, InputError
from visionshare.machine.interrupts import interrupts_held

# So long after a worker was lost Dask looks whether it is back, and otherwise takes its nanny away
# for good. After the usual 15 seconds the look may fall into another restart.
_LOST = {"distributed.deploy.lost-worker-timeout": "10000 hours"}
# Without a dashboard that people open nobody sees the stacks that each worker samples every 10 ms,
# which takes a tenth of its time; and its event loop need not see 50 times a second how late it is.
_UNWATCHED = {"distributed.worker.profile.enabled": False, "distributed.admin.tick.interval": "1 s"}
# Dask has workers return memory to the system at every chance, and each temporary array is then
# fetched page by page: the Hessian of a refit took three times as long. What limits threads stays.
_MEMORY_KEPT = {
    "distributed.nanny.pre-spawn-environ": dict.fromkeys(
        ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), 1
    )
}

# Each worker would spend 3 seconds on imports. On Linux one process does the imports and every
# worker is forked from it; on other systems forking after these imports is not safe.
_FORKED = {"distributed.worker.multiprocessing-method": "forkserver"}


def check_cluster(workers: int | None, scheduler: str | None) -> None:
    """Check what :func:`cluster_client` is asked for; nothing is started."""
    if workers is not None and scheduler is not None:
        raise InputError("--workers", workers, "one of --workers and --scheduler")
    if workers is not None and workers < 1:
        raise InputError("--workers", workers, "an integer of at least 1")


@contextmanager
def cluster_client(
    workers: int | None = None,
    scheduler: str | None = None,
    jobs: int = 1,
    timeout: float = 30.0,
) -> Iterator[Any]:
    """Yield a client of a cluster; stop the processes that were started for it.

    Parameters
    ----------
    workers : int, optional
        Processes to start on this machine.
    scheduler : str, optional
        Address of a scheduler that runs, such as "tcp://host:8786".
    jobs : int, default 1
        Threads of all workers together, each has one at least.
    timeout : float, default 30
        Seconds that the scheduler, and a first worker, are waited for.

    Examples
    --------
    >>> with cluster_client() as client:
    ...     print(client)
    None
    """
    check_cluster(workers, scheduler)
    if workers is None and scheduler is None:
        yield None
        return
    try:
        import dask
        from distributed import Client, LocalCluster
    except ImportError:
        given = f"--workers {workers}" if scheduler is None else f"--scheduler {scheduler}"
        accepted = 'Dask, which `pip install "visionshare[dask]"` installs'
        raise InputError("cluster", given, accepted) from None
    if workers is not None:
        threads = max(1, jobs // workers)
        settings = _LOST | _UNWATCHED | _MEMORY_KEPT | _start_of_workers()
        logger = logging.getLogger("distributed")
        with dask.config.set(settings), ExitStack() as opened, _quiet_after_interrupts(logger):
            # The last step of closing: Dask's messages are shown again.
            opened.callback(logger.setLevel, logger.level)
            # A cluster that has only half started cannot be closed without errors.
            with interrupts_held():
                cluster = LocalCluster(
                    n_workers=workers, threads_per_worker=threads, dashboard_address="127.0.0.1:0"
                )
                opened.enter_context(cluster)
                client = opened.enter_context(Client(cluster, timeout=timeout))
            yield client
        return
    try:
        client = Client(scheduler, timeout=timeout)
    except (OSError, ValueError, TimeoutError) as error:
        raise ClusterError(f"{scheduler}: no scheduler answers: {error}") from error
    with client:
        try:
            client.wait_for_workers(1, timeout=timeout)
        except TimeoutError as error:
            raise ClusterError(f"{scheduler}: no worker for {timeout:g} seconds") from error
        yield client


def _start_of_workers() -> dict[str, str]:
    """Return Dask's setting for starting worker processes; on Linux from one fork server."""
    if sys.platform != "linux":
        return {}
    from dask import config
    from distributed.utils import get_mp_context

    with config.set(_FORKED):
        get_mp_context().set_forkserver_preload(["visionshare.distributed.worker_start"])
    return _FORKED


@contextmanager
def _quiet_after_interrupts(logger: logging.Logger) -> Iterator[None]:
    """Silence Dask's messages about tasks that an interrupt ends."""
    try:
        yield
    except KeyboardInterrupt:
        logger.setLevel(logging.CRITICAL + 1)
        raise
