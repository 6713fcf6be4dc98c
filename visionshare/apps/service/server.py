"""The service as one process or several, on a socket that listens already."""

from __future__ import annotations

import gc
import logging
import multiprocessing
import os
import signal
import socket
import sys
import tempfile
import threading
import time
import warnings
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import wait
from multiprocessing.context import SpawnContext, SpawnProcess
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from visionshare.apps.service.limits import Limits
from visionshare.apps.service.memory import release_large_blocks
from visionshare.errors import VisionshareError

if TYPE_CHECKING:
    from fastapi import FastAPI

__all__ = ["BACKLOG", "Settings", "run", "run_workers"]

_logger = logging.getLogger(__name__)
# Connections that wait to be accepted.
BACKLOG = 2048
_DIRECTORY = "PROMETHEUS_MULTIPROC_DIR"
# New objects after which Python looks for unreachable cycles: a millisecond or less, in which
# nobody is answered. The command line's 150 000 take a tenth of a second.
_COLLECTED_AFTER = 700


@dataclass(frozen=True)
class Settings:
    """What a process needs to serve a classifier.

    Parameters
    ----------
    path : Path
        The classifier's file.
    limits : Limits
    host_names : tuple of str
    token : str or None
    name : str
        Of the model, in the Open Inference Protocol.

    Examples
    --------
    >>> Settings(Path("digits.safetensors"), Limits(), ("localhost",), None, "digits").name
    'digits'
    """

    path: Path
    limits: Limits
    host_names: tuple[str, ...]
    token: str | None
    name: str

    def application(self) -> FastAPI:
        """Return the application, with the classifier loaded and its kernels compiled."""
        from visionshare import load
        from visionshare.apps.service import service

        return service(
            load(self.path),
            self.limits,
            name=self.name,
            host_names=self.host_names,
            token=self.token,
        )


def run(app: FastAPI, settings: Settings, listener: socket.socket) -> None:
    """Answer requests until the process is told to end; load the file again on SIGHUP.

    Parameters
    ----------
    app : FastAPI
    settings : Settings
    listener : socket

    Examples
    --------
    >>> run(settings.application(), settings, listener)  # doctest: +SKIP
    """
    from PIL import Image

    from visionshare.apps.service.uvicorn_server import limited_server

    server = limited_server(app, settings.limits, listener)
    release_large_blocks()
    # The event loop waits this long for a thread that computes in Python.
    sys.setswitchinterval(0.001)
    # A collection of all that is loaded takes a third of a second.
    gc.collect()
    gc.freeze()
    gc.set_threshold(_COLLECTED_AFTER, *gc.get_threshold()[1:])
    # Pictures of too many pixels and invalid forms are answered, not logged.
    warnings.filterwarnings("ignore", category=Image.DecompressionBombWarning)
    logging.getLogger("python_multipart").setLevel(logging.ERROR)
    if hasattr(signal, "SIGHUP"):
        signal.signal(signal.SIGHUP, lambda *_: _reload_on_thread(app, settings.path))
    # uvicorn ends the requests that run, and then raises the signal again.
    with suppress(KeyboardInterrupt):
        server.run(sockets=[])


def _reload_on_thread(app: FastAPI, path: Path) -> None:
    threading.Thread(target=_reload, args=(app, path), daemon=True).start()


def _reload(app: FastAPI, path: Path) -> None:
    """Serve the classifier that the file holds now; keep the former one where it is invalid."""
    from visionshare import load

    try:
        app.state.worker.reload(load(path))
    except VisionshareError as error:
        _logger.error("not reloaded: %s", error)
    except Exception:
        _logger.exception("%s: not reloaded", path)


def run_workers(settings: Settings, listener: socket.socket, n_workers: int) -> None:
    """Answer requests with several processes until this one is told to end.

    A process that ends by itself is replaced. SIGHUP loads the file again in all of them.

    Parameters
    ----------
    settings : Settings
    listener : socket
    n_workers : int

    Examples
    --------
    >>> run_workers(settings, listener, 2)  # doctest: +SKIP
    """
    with tempfile.TemporaryDirectory(prefix="visionshare-metrics-") as folder:
        # Read by prometheus-client when a worker imports it.
        os.environ[_DIRECTORY] = folder
        try:
            ended_by = _Workers(settings, listener, folder).supervise(n_workers)
        finally:
            del os.environ[_DIRECTORY]
    if ended_by != signal.SIGINT:
        signal.signal(ended_by, signal.SIG_DFL)
        signal.raise_signal(ended_by)


class _Workers:
    """Processes that share a listening socket."""

    def __init__(self, settings: Settings, listener: socket.socket, folder: str) -> None:
        self._arguments = (settings, listener)
        self._folder = folder
        self._context: SpawnContext = multiprocessing.get_context("spawn")
        self._processes: list[SpawnProcess] = []
        self._ended_by: int | None = None

    def supervise(self, n_workers: int) -> int:
        """Keep a number of processes until a signal ends them, and return the signal."""
        ends = (signal.SIGINT, signal.SIGTERM)
        handlers = {number: signal.signal(number, self._end) for number in ends}
        if hasattr(signal, "SIGHUP"):
            handlers[signal.SIGHUP] = signal.signal(signal.SIGHUP, self._forward)
        try:
            self._processes = [self._start() for _ in range(n_workers)]
            while self._ended_by is None:
                # A signal's handler runs between two waits.
                wait([process.sentinel for process in self._processes], timeout=0.2)
                self._replace_dead()
            return self._ended_by
        finally:
            self._stop()
            for number, handler in handlers.items():
                signal.signal(number, handler)

    def _start(self) -> SpawnProcess:
        process = self._context.Process(target=_work, args=self._arguments)
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


def _work(settings: Settings, listener: socket.socket) -> None:
    """Run one of several processes, until its parent ends."""
    if hasattr(signal, "SIGHUP"):
        # Until the classifier is loaded, which reads the file as it is now.
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    with suppress(KeyboardInterrupt):
        run(settings.application(), settings, listener)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)
