"""The service in this process: granian speaks HTTP, the application answers."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import socket
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from visionshare.apps.service.limits import Limits
from visionshare.apps.service.memory import release_large_blocks
from visionshare.errors import ServiceError, VisionshareError

if TYPE_CHECKING:
    from fastapi import FastAPI
    from granian.server.embed import Server

__all__ = ["Address", "Settings", "end", "ready", "reserved", "run"]

_logger = logging.getLogger(__name__)
# Host and port, as numbers.
Address = tuple[str, int]
# Connections that wait to be accepted.
_BACKLOG = 2048
# Seconds for requests in progress when the service ends.
_GRACE = 10.0
# New objects after which Python looks for unreachable cycles: a millisecond or less, in which
# nobody is answered. The command line's 150 000 take a tenth of a second.
_COLLECTED_AFTER = 700
_PROBE = b"HEAD /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


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


@contextmanager
def reserved(host: str, port: int) -> Iterator[Address]:
    """Reserve an address for the service, which must be free; port 0 is any free one.

    granian sets ``SO_REUSEPORT``: without this check it would start on a port in use, and the
    system would give each of the two servers some of the connections.

    Parameters
    ----------
    host : str
    port : int

    Raises
    ------
    ServiceError
        If nobody can listen there.

    Examples
    --------
    >>> with reserved("127.0.0.1", 0) as (host, port):
    ...     host, port > 0
    ('127.0.0.1', True)
    """
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        holder = socket.socket(family, socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise _cannot_listen(host, port, error) from None
    with holder:
        if sys.platform == "win32":
            holder.setsockopt(socket.SOL_SOCKET, socket.SO_EXCLUSIVEADDRUSE, 1)
        try:
            holder.bind(address)
        except OSError as error:
            # Connections of a former service may linger; nobody listens if we can.
            if not _can_listen(family, address):
                raise _cannot_listen(host, port, error) from None
        else:
            address = holder.getsockname()
        if sys.platform == "linux":
            # From now on this user's servers that share ports may join, and no others.
            holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        else:
            holder.close()
        yield address[0], address[1]


def _can_listen(family: int, address: Any) -> bool:
    """Return whether a server may listen where connections of a former one linger."""
    if sys.platform == "win32":
        return False
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(address)
            probe.listen()
        except OSError:
            return False
        return True


def _cannot_listen(host: str, port: int, error: Exception) -> ServiceError:
    return ServiceError(f"{host}:{port}: cannot listen there ({error})")


def ready(address: Address) -> bool:
    """Return whether a service answers at an address.

    Examples
    --------
    >>> with reserved("127.0.0.1", 0) as address:
    ...     ready(address)
    False
    """
    host, port = address
    # Every interface is none that one can connect to, on Windows.
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    with suppress(OSError), socket.create_connection((host, port), 1.0) as connection:
        connection.sendall(_PROBE)
        return connection.recv(1) != b""
    return False


def embedded(app: Any, limits: Limits, address: Address) -> Server:
    """Return granian with the service's settings, for an event loop that runs.

    Examples
    --------
    >>> await embedded(app, Limits(), ("127.0.0.1", 8000)).serve()  # doctest: +SKIP
    """
    from granian.constants import HTTPModes, Interfaces
    from granian.http import HTTP1Settings
    from granian.log import LogLevels
    from granian.server.embed import Server

    host, port = address
    return Server(
        app,
        address=host,
        port=port,
        interface=Interfaces.ASGI,
        http=HTTPModes.http1,
        websockets=False,
        backlog=_BACKLOG,
        # It counts connections: requests and bodies are limited by the application.
        backpressure=limits.max_connections,
        http1_settings=HTTP1Settings(
            # Also of a connection that waits for its next request.
            header_read_timeout=max(1, round(1000 * limits.header_timeout)),
            max_buffer_size=limits.max_header_size,
        ),
        log_level=LogLevels.error,
        # It would log to the standard output.
        log_dictconfig={"handlers": {}, "loggers": {"_granian": {"propagate": True}}},
    )


def run(app: FastAPI, settings: Settings, address: Address, on_ready: Callable[[], None]) -> int:
    """Answer requests until the process is told to end; load the file again on SIGHUP.

    Parameters
    ----------
    app : FastAPI
    settings : Settings
    address : tuple of str and int
    on_ready : callable
        Called once the service answers.

    Returns
    -------
    int
        The signal that ended it, for :func:`end`.

    Examples
    --------
    >>> end(run(settings.application(), settings, address, lambda: None))  # doctest: +SKIP
    """
    from PIL import Image

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
    return asyncio.run(_serve(app, settings.limits, address, on_ready))


async def _serve(
    app: FastAPI, limits: Limits, address: Address, on_ready: Callable[[], None]
) -> int:
    """Serve until a signal comes, and return the signal."""
    loop = asyncio.get_running_loop()
    ended_by: asyncio.Future[int] = loop.create_future()

    def told_to_end(number: int) -> None:
        if not ended_by.done():
            ended_by.set_result(number)

    for number in (signal.SIGINT, signal.SIGTERM):
        # Not the loop's own handlers, which Windows lacks.
        signal.signal(number, lambda n, _: loop.call_soon_threadsafe(told_to_end, n))
    server = embedded(app, limits, address)
    serving = asyncio.ensure_future(server.serve())
    while not await loop.run_in_executor(None, ready, address):
        if serving.done() or ended_by.done():
            break
        await asyncio.sleep(0.01)
    else:
        on_ready()
    await asyncio.wait({serving, ended_by}, return_when=asyncio.FIRST_COMPLETED)
    if serving.done():
        await serving
        raise ServiceError("the server ended by itself")
    server.stop()
    # Clients that do not read their answers would keep it for ever.
    await asyncio.wait({serving}, timeout=_GRACE)
    return ended_by.result()


def end(ended_by: int) -> None:
    """End the process as a signal wants it, without taking the interpreter apart.

    Threads of granian may still enter Python: meanwhile, that aborts the process.

    Examples
    --------
    >>> end(signal.SIGINT)  # doctest: +SKIP
    """
    logging.shutdown()
    with suppress(OSError, ValueError):
        sys.stdout.flush()
    if ended_by != signal.SIGINT:
        signal.signal(ended_by, signal.SIG_DFL)
        signal.raise_signal(ended_by)
    os._exit(0)


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
