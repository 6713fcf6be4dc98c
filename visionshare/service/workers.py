"""The service as several processes that listen at one address."""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import wait
from multiprocessing.context import SpawnProcess
from types import FrameType

from visionshare.service.server import Address, Settings, end_by, ready, run

_logger = logging.getLogger(__name__)
# Seconds for all processes to end.
_END = 15.0


def run_workers(
    settings: Settings, address: Address, n_workers: int, on_ready: Callable[[], None]
) -> None:
    """Answer requests with several processes until this one is told to end."""
    # A process that ends by itself is replaced. SIGHUP loads the file again in all of them.
    told: list[int] = []
    processes: list[SpawnProcess] = []

    def end(number: int, _: FrameType | None) -> None:
        told.append(number)

    def forward(number: int, _: FrameType | None) -> None:
        for process in processes:
            if process.is_alive() and process.pid is not None:
                os.kill(process.pid, number)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end)
    if hasattr(signal, "SIGHUP"):
        signal.signal(signal.SIGHUP, forward)
    with tempfile.TemporaryDirectory(prefix="visionshare-metrics-") as folder:
        # Read by prometheus-client when a worker imports it.
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = folder
        try:
            for _ in range(n_workers):
                processes.append(_started(settings, address))
            is_ready = False
            while not told:
                # A signal's handler runs between two waits.
                wait([process.sentinel for process in processes], timeout=0.2)
                for i, process in enumerate(processes):
                    if not told and not process.is_alive():
                        processes[i] = _replaced(process, settings, address, folder)
                if not is_ready and ready(address):
                    is_ready = True
                    on_ready()
        finally:
            _stop(processes)
    end_by(told[0])


def _started(settings: Settings, address: Address) -> SpawnProcess:
    context = multiprocessing.get_context("spawn")
    process = context.Process(target=_work, args=(settings, address))
    process.start()
    return process


def _replaced(
    process: SpawnProcess, settings: Settings, address: Address, folder: str
) -> SpawnProcess:
    """Return another process in the place of one that ended."""
    from prometheus_client.multiprocess import mark_process_dead

    mark_process_dead(process.pid, folder)
    _logger.error("a worker ended with %s; another one is started", process.exitcode)
    # One that cannot start does not use up the machine.
    time.sleep(0.5)
    return _started(settings, address)


def _stop(processes: list[SpawnProcess]) -> None:
    for process in processes:
        process.terminate()
    end = time.monotonic() + _END
    for process in processes:
        process.join(max(0.1, end - time.monotonic()))
        if process.is_alive():
            process.kill()
            process.join()


def _work(settings: Settings, address: Address) -> None:
    """Run one of several processes, until its parent ends."""
    if hasattr(signal, "SIGHUP"):
        # Until the classifier is loaded, which reads the file as it is now.
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    with suppress(KeyboardInterrupt):
        run(settings.application(), settings, address, lambda: None)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)
