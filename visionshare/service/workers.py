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
from multiprocessing.context import SpawnContext, SpawnProcess
from types import FrameType

from visionshare.service.server import Address, Settings, ready, run

__all__ = ["run_workers"]

_logger = logging.getLogger(__name__)
_DIRECTORY = "PROMETHEUS_MULTIPROC_DIR"


def run_workers(
    settings: Settings, address: Address, n_workers: int, on_ready: Callable[[], None]
) -> None:
    """Answer requests with several processes until this one is told to end."""
    # A process that ends by itself is replaced. SIGHUP loads the file again in all of them.
    with tempfile.TemporaryDirectory(prefix="visionshare-metrics-") as folder:
        # Read by prometheus-client when a worker imports it.
        os.environ[_DIRECTORY] = folder
        try:
            ended_by = _Workers(settings, address, folder).supervise(n_workers, on_ready)
        finally:
            del os.environ[_DIRECTORY]
    if ended_by != signal.SIGINT:
        signal.signal(ended_by, signal.SIG_DFL)
        signal.raise_signal(ended_by)


class _Workers:
    """Processes that listen at one address."""

    def __init__(self, settings: Settings, address: Address, folder: str) -> None:
        self._settings, self._address = settings, address
        self._folder = folder
        self._context: SpawnContext = multiprocessing.get_context("spawn")
        self._processes: list[SpawnProcess] = []
        self._ended_by: int | None = None

    def supervise(self, n_workers: int, on_ready: Callable[[], None]) -> int:
        """Keep a number of processes until a signal ends them, and return the signal."""
        ends = (signal.SIGINT, signal.SIGTERM)
        handlers = {number: signal.signal(number, self._end) for number in ends}
        if hasattr(signal, "SIGHUP"):
            handlers[signal.SIGHUP] = signal.signal(signal.SIGHUP, self._forward)
        is_ready = False
        try:
            self._processes = [self._start() for _ in range(n_workers)]
            while self._ended_by is None:
                # A signal's handler runs between two waits.
                wait([process.sentinel for process in self._processes], timeout=0.2)
                self._replace_dead()
                if not is_ready and ready(self._address):
                    is_ready = True
                    on_ready()
            return self._ended_by
        finally:
            self._stop()
            for number, handler in handlers.items():
                signal.signal(number, handler)

    def _start(self) -> SpawnProcess:
        process = self._context.Process(target=_work, args=(self._settings, self._address))
        process.start()
        return process

    def _replace_dead(self) -> None:
        from prometheus_client.multiprocess import mark_process_dead

        for i, process in enumerate(self._processes):
            if process.is_alive() or self._ended_by is not None:
                continue
            mark_process_dead(process.pid, self._folder)
            _logger.error("a worker ended with %s; another one is started", process.exitcode)
            # One that cannot start does not use up the machine.
            time.sleep(0.5)
            self._processes[i] = self._start()

    def _stop(self) -> None:
        for process in self._processes:
            process.terminate()
        end = time.monotonic() + 15
        for process in self._processes:
            process.join(max(0.1, end - time.monotonic()))
            if process.is_alive():
                process.kill()
                process.join()

    def _end(self, number: int, _: FrameType | None) -> None:
        self._ended_by = number

    def _forward(self, number: int, _: FrameType | None) -> None:
        for process in self._processes:
            if process.is_alive() and process.pid is not None:
                os.kill(process.pid, number)


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
