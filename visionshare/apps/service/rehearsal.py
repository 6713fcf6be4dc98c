"""A rehearsal of the limits: they stand on inner classes of uvicorn, which may change."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from visionshare.apps.service.limits import Limits
from visionshare.apps.service.room import Room
from visionshare.errors import ServiceError

if TYPE_CHECKING:
    from visionshare.apps.service.connections import Connection

__all__ = ["rehearse"]

_HEAD = b"POST /predict HTTP/1.1\r\nHost: a\r\n"
_LAST = b"Content-Length: 3\r\nConnection: close\r\n\r\nabc"
_TWO_LENGTHS = b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
_ANSWER = (b"HTTP/1.1 204", 1)
# What a client says, and the answer: its beginning, and how often the application was asked.
_SCENES = {
    "a request": (_HEAD + b"\r\n", _ANSWER),
    "a request with two readings": (_HEAD + _TWO_LENGTHS, (b"HTTP/1.1 400", 0)),
    "bytes after the last request": (_HEAD + _LAST + b"x", _ANSWER),
    "headers that do not end": (_HEAD, (b"HTTP/1.1 408", 0)),
}


class _Transport(asyncio.Transport):
    """A client that listens."""

    def __init__(self) -> None:
        super().__init__()
        self.answer, self.is_closed = b"", False

    def write(self, data: bytes | bytearray | memoryview[Any]) -> None:
        self.answer += bytes(data)

    def is_closing(self) -> bool:
        return self.is_closed

    def close(self) -> None:
        self.is_closed = True

    abort = close

    async def answered(self, seconds: float) -> None:
        """Wait for an answer, and then a little for what may follow it."""
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        while not self.answer and not self.is_closed and loop.time() < end:
            await asyncio.sleep(0.001)
        await asyncio.sleep(0.001)

    def pause_reading(self) -> None:
        pass

    resume_reading = pause_reading


def rehearse(base: type[Connection] | None = None) -> None:
    """Check that uvicorn, as it is installed, keeps the limits; it takes some milliseconds.

    A few requests are given to connections without a network, before the service listens.

    Parameters
    ----------
    base : type, optional
        The class of connections; :class:`visionshare.apps.service.connections.Connection`.

    Raises
    ------
    ServiceError
        If a limit is not kept.

    Examples
    --------
    >>> rehearse()
    """
    try:
        failed = asyncio.run(_failed(base))
    except Exception as error:  # whatever a changed class raises
        failed = f"{type(error).__name__}: {error}"
    if failed:
        import uvicorn

        raise ServiceError(
            f"uvicorn {uvicorn.__version__}: the service's limits do not work with it ({failed}); "
            "install another version: pip install 'uvicorn>=0.30.6,<=0.54'"
        )


async def _failed(base: type[Connection] | None) -> str:
    """Return the scene that goes wrong, or nothing."""
    for scene, (request, expected) in _SCENES.items():
        stage = _Stage(base)
        client, _ = stage.connect(request)
        await client.answered(10.0)
        if (client.answer[:12], stage.n_asked) != expected or client.answer.count(b"HTTP/1.") != 1:
            return scene
    stage = _Stage(base)
    first, _ = stage.connect(b"G")
    second, _ = stage.connect(b"")
    return "" if first.is_closed and not second.is_closed else "room for one connection"


class _Stage:
    """A server without a network that answers 204."""

    def __init__(self, base: type[Connection] | None) -> None:
        from uvicorn.server import ServerState

        from visionshare.apps.service.connections import Connection, connection_class
        from visionshare.apps.service.uvicorn_server import server_config

        self.n_asked = 0
        room = Room(Limits(max_connections=1, header_timeout=0.001))
        self._class = connection_class(room, base or Connection)
        self._config = server_config(self._application, self._class)
        self._state = ServerState()

    def connect(self, request: bytes) -> tuple[_Transport, Connection]:
        """Return a client that has said something, and its connection."""
        connection = self._class(config=self._config, server_state=self._state, app_state={})
        client = _Transport()
        connection.connection_made(client)
        if request:
            connection.data_received(request)
        return client, connection

    async def _application(self, scope: Any, receive: Any, send: Any) -> None:
        self.n_asked += 1
        while (await receive()).get("more_body"):
            pass
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body"})
