"""The service in this process: granian speaks HTTP, the application answers."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import re
import signal
import socket
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from visionshare.errors import ServiceError, VisionshareError
from visionshare.machine.memory import release_large_blocks
from visionshare.machine.system import open_files
from visionshare.service import Limits
from visionshare.service.access import within

if TYPE_CHECKING:
    from fastapi import FastAPI
    from granian.server.embed import Server

__all__ = ["Address", "Settings", "embedded", "end_by", "ready", "reserved", "run", "serve"]

_logger = logging.getLogger(__name__)
# Host and port, as numbers.
Address = tuple[str, int]
# Connections that wait to be accepted.
_BACKLOG = 2048
# Seconds after those for requests in progress, at which the process ends at the latest.
_LAST = 5.0
# Seconds after which the event loop wakes to let Python run the handlers of signals.
_SIGNAL_INTERVAL = 0.25
# Of the process, besides connections.
_OTHER_FILES = 128
# New objects after which Python looks for unreachable cycles: a millisecond or less, in which
# nobody is answered. The command line's 150 000 take a tenth of a second.
_COLLECTED_AFTER = 700


@dataclass(frozen=True)
class Settings:
    """What a process needs to serve a classifier's file."""

    path: Path
    limits: Limits
    host_names: tuple[str, ...]
    token: str | None
    name: str
    meter: Path | None = None
    examples: tuple[Path, ...] = ()

    def application(self) -> FastAPI:
        """Return the application, with the classifier loaded and its kernels compiled."""
        from visionshare import load
        from visionshare.service import service

        return service(
            load(self.path),
            self.limits,
            name=self.name,
            host_names=self.host_names,
            token=self.token,
            meter=self.meter,
            card=self.path.with_suffix(".md"),
            examples=self.examples,
        )


@contextmanager
def reserved(host: str, port: int) -> Iterator[Address]:
    """Reserve an address, which must be free; port 0 is any free one."""
    # granian sets ``SO_REUSEPORT``: without this check it would start on a port in use, and the
    # system would give each of the two servers some of the connections.
    try:
        family, _, _, _, address = _address_info(host, port)
        with socket.create_server(address[:2], family=family) as server:
            host, port = server.getsockname()[:2]
    except (OSError, UnicodeError) as error:
        raise ServiceError(f"{host}:{port}: cannot listen there ({error})") from None
    with socket.socket(family, socket.SOCK_STREAM) as holder:
        if sys.platform == "linux":
            # Where connections of a former service linger, it stays without a holder.
            with suppress(OSError):
                holder.bind((host, port))
                # From now on this user's servers that share ports may join, and nobody else.
                holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        yield host, port


def _address_info(host: str, port: int) -> Any:
    """Return what the system knows of a host: at once for an address, else by a name server."""
    look_up = partial(socket.getaddrinfo, host, port, type=socket.SOCK_STREAM)
    with suppress(OSError):
        return look_up(flags=socket.AI_NUMERICHOST)[0]
    if re.fullmatch(r"[0-9.]+|.*[:\[\]].*", host):
        # A name server would be asked for it, and might take a minute to know no such name.
        raise ServiceError(f"{host}: no IP address, and no name of a host")
    return within(look_up)[0]


def ready(address: Address) -> bool:
    """Return whether a service listens at an address."""
    host, port = address
    # Windows connects to no address that means every interface.
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    with suppress(OSError), socket.create_connection((host, port), 1.0):
        return True
    return False


def embedded(app: Any, limits: Limits, address: Address) -> Server:
    """Return granian with the service's settings, to be served by an event loop."""
    from granian.constants import HTTPModes, Interfaces
    from granian.http import HTTP1Settings
    from granian.log import LogLevels
    from granian.server.embed import Server

    http1 = HTTP1Settings(
        # Also of a connection that waits for its next request.
        header_read_timeout=max(1, round(1000 * limits.header_timeout)),
        max_buffer_size=limits.max_header_size,
    )
    return Server(
        app,
        address=address[0],
        port=address[1],
        interface=Interfaces.ASGI,
        http=HTTPModes.http1,
        http1_settings=http1,
        websockets=False,
        backlog=_BACKLOG,
        # It counts connections: predictions and bodies are limited by the application.
        backpressure=_n_connections(limits),
        log_level=LogLevels.error,
        # Its own handlers write to the standard output.
        log_dictconfig={"handlers": {}, "loggers": {"_granian": {"propagate": True}}},
    )


def _n_connections(limits: Limits) -> int:
    """Return how many connections there may be: without descriptors granian would not sleep."""
    n_files = open_files(limits.max_connections + _OTHER_FILES)
    n_connections = max(1, min(limits.max_connections, n_files - _OTHER_FILES))
    if n_connections < limits.max_connections:
        _logger.warning(
            "%d open files are too few for %d connections: %d are accepted at once; "
            "allow more files (ulimit -n), or give --max-connections",
            n_files, limits.max_connections, n_connections,
        )  # fmt: skip
    return n_connections


def run(app: FastAPI, settings: Settings, address: Address, on_ready: Callable[[], None]) -> None:
    """Answer requests until the process is told to end, and end it; load the file on SIGHUP."""
    from PIL import Image

    release_large_blocks()
    # The event loop waits this long for a thread that computes in Python; less costs throughput.
    sys.setswitchinterval(0.001)
    # A collection of all that is loaded takes a third of a second.
    gc.collect()
    gc.freeze()
    gc.set_threshold(_COLLECTED_AFTER, *gc.get_threshold()[1:])
    # Pictures of too many pixels and invalid forms are answered, not logged.
    warnings.filterwarnings("ignore", category=Image.DecompressionBombWarning)
    logging.getLogger("python_multipart").setLevel(logging.ERROR)
    if hasattr(signal, "SIGHUP"):

        def reload(*_: object) -> None:
            threading.Thread(target=_reload, args=(app, settings.path), daemon=True).start()

        signal.signal(signal.SIGHUP, reload)
    asyncio.run(_until_signal(app, settings.limits, address, on_ready))


def end_by(number: int) -> None:
    """End the process as a signal does; Ctrl-C is no error, and returns."""
    if number != signal.SIGINT:
        signal.signal(number, signal.SIG_DFL)
        signal.raise_signal(number)


async def _until_signal(
    app: FastAPI, limits: Limits, address: Address, on_ready: Callable[[], None]
) -> None:
    """Serve until a signal comes, and end the process as the signal does."""
    loop = asyncio.get_running_loop()
    told = asyncio.Event()
    signals: list[int] = []

    def tell(number: int, _: FrameType | None) -> None:
        signals.append(number)
        # Whatever it waits for then, such as a picture that is being decoded.
        last = threading.Timer(limits.end_timeout + _LAST, os._exit, (1,))
        last.daemon = True
        last.start()
        loop.call_soon_threadsafe(told.set)

    for number in (signal.SIGINT, signal.SIGTERM):
        # Not the loop's own handlers, which Windows lacks.
        signal.signal(number, tell)
    await serve(app, limits, address, on_ready, told)
    # Here and not after the loop: its end would cancel each request that is still in progress,
    # which granian logs; and granian's threads must not meet an interpreter that is taken apart.
    logging.shutdown()
    with suppress(OSError, ValueError):
        sys.stdout.flush()
    end_by(signals[0])
    os._exit(0)


async def serve(
    app: FastAPI,
    limits: Limits,
    address: Address,
    on_ready: Callable[[], None],
    told_to_end: asyncio.Event,
) -> None:
    """Answer requests until told to end, and then those that are in progress."""
    server = embedded(app, limits, address)
    serving = asyncio.ensure_future(server.serve())
    ending = asyncio.ensure_future(told_to_end.wait())
    # 1) wait until it answers
    loop = asyncio.get_running_loop()
    while not (serving.done() or ending.done()):
        if await loop.run_in_executor(None, ready, address):
            on_ready()
            break
        await asyncio.sleep(0.01)
    # 2) wait until it is told to end; Python runs a signal's handler between two of its own
    #    instructions, so a signal that comes just before the loop sleeps is seen when it wakes
    while not (serving.done() or ending.done()):
        await asyncio.wait(
            {serving, ending}, timeout=_SIGNAL_INTERVAL, return_when=asyncio.FIRST_COMPLETED
        )
    ending.cancel()
    if serving.done():
        raise ServiceError(f"the server ended by itself ({serving.exception()})")
    # 3) let it end: clients that do not read their answers would keep it for ever
    server.stop()
    await asyncio.wait({serving}, timeout=limits.end_timeout)


def _reload(app: FastAPI, path: Path) -> None:
    """Serve the classifier that the file holds now; keep the former one where it is invalid."""
    from visionshare import load

    try:
        app.state.worker.reload(load(path))
    except VisionshareError as error:
        _logger.error("not reloaded: %s", error)
    except Exception:
        _logger.exception("%s: not reloaded", path)
