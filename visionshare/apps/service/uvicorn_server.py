"""uvicorn with the service's own connections, which replace parts that it may change."""

from __future__ import annotations

import asyncio
import socket
from typing import TYPE_CHECKING, Any

import uvicorn

from visionshare.apps.service.connections import Connection, connection_class
from visionshare.apps.service.door import Door
from visionshare.apps.service.limits import Limits
from visionshare.apps.service.room import Room
from visionshare.errors import ServiceError

if TYPE_CHECKING:
    from fastapi import FastAPI

__all__ = ["limited_server", "server_config"]


class _Server(uvicorn.Server):
    """Takes connections from a :class:`Door`."""

    def __init__(self, config: uvicorn.Config, listener: socket.socket, room: Room) -> None:
        super().__init__(config)
        self._listener, self._room = listener, room
        self._door: Door | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if any(self.servers):
            raise ServiceError(
                "uvicorn listens by itself: the service's limits do not work with it"
            )
        if not self.should_exit:
            self._door = Door(self._listener, self._room, self._protocol)
            self._door.open()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        if self._door is not None:
            self._door.close()
        self._listener.close()
        await super().shutdown(sockets)

    def _protocol(self) -> asyncio.Protocol:
        made: asyncio.Protocol = self.config.http_protocol_class(  # type: ignore[call-arg]
            config=self.config, server_state=self.server_state, app_state=self.lifespan.state
        )
        return made


def server_config(app: Any, connection: type[Connection]) -> uvicorn.Config:
    """Return uvicorn's settings for an application and a class of connections.

    Examples
    --------
    >>> server_config(app, connection_class(room))  # doctest: +SKIP
    """
    return uvicorn.Config(
        app,
        http=connection,
        loop="asyncio",
        interface="asgi3",
        log_level="error",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        ws="none",
        timeout_keep_alive=connection.room.limits.idle_timeout,  # type: ignore[arg-type]
        timeout_graceful_shutdown=10,
    )


def limited_server(app: FastAPI, limits: Limits, listener: socket.socket) -> uvicorn.Server:
    """Return a server, to be run with no sockets besides its listener.

    Parameters
    ----------
    app : FastAPI
    limits : Limits
    listener : socket
        Listens already.

    Examples
    --------
    >>> limited_server(app, Limits(), listener).run(sockets=[])  # doctest: +SKIP
    """
    room = Room(limits)
    return _Server(server_config(app, connection_class(room)), listener, room)
