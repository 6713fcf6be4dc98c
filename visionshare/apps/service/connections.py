"""Connections with deadlines and in limited number, so that idle clients cannot stop others."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from typing import Any

import h11
from starlette.responses import JSONResponse
from uvicorn.protocols.http.h11_impl import H11Protocol

from visionshare.apps.service.framing import StrictConnection
from visionshare.apps.service.room import Room, Stage

__all__ = ["Connection", "connection_class"]

# Seconds for what remains of a request that is answered already, and of an answer to a client
# that does not read.
_LINGER = 5.0
_HEALTH = ("/health", "/v2/health/live", "/v2/health/ready")


class Connection(H11Protocol):
    """A connection of the service; made by uvicorn, of a class from :func:`connection_class`.

    - Headers must arrive within ``header_timeout`` of a request's first byte; bodies within
      ``body_timeout``.
    - Beyond ``max_connections`` the one that waits longest for a request is closed, then the one
      that sends its body longest. If all are being answered, ``health_reserve`` further ones may
      ask for the service's health.
    - A client that closes its half of the connection gets its answers.
    """

    room: Room

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.limits = self.room.limits
        self.conn: StrictConnection = StrictConnection(self.limits.max_header_size)
        self._served = self.app
        self.app = self._answer
        self._stage = Stage.ARRIVING
        self._timer: asyncio.TimerHandle | None = None
        self._half_closed = False
        # Another one may be closed for want of room, or this one, once it has a transport.
        self._is_taken_in = self.room.enter(self)
        self._in_reserve = self.room.is_full

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a request, or close the connection for want of room."""
        super().connection_made(transport)
        if not self._is_taken_in:
            transport.abort()
            return
        self._start_timer(self.limits.header_timeout)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self.room.leave(self)
        self._stop_timer()
        super().connection_lost(exc)

    def displace(self) -> None:
        """Close the connection at once: another one needs its room."""
        self.transport.abort()

    def data_received(self, data: bytes) -> None:
        """Parse what arrived."""
        if self.transport.is_closing():
            return
        super().data_received(data)
        self._update()

    def eof_received(self) -> bool:  # type: ignore[override]
        """Keep the connection open for answers after the client closed its half."""
        self._half_closed = True
        self._close_without_request()
        self._update()
        return True

    def on_response_complete(self) -> None:
        """Continue with the next request."""
        super().on_response_complete()
        if self._half_closed:
            self._close_without_request()
        self._update()

    def send_400_response(self, msg: str) -> None:
        """Answer what is no request, and close the connection."""
        error = self.conn.error
        if error is None:
            self._send_refusal(400, msg)
        else:
            self._send_refusal(error.error_status_hint, str(error))

    def pause_writing(self) -> None:
        """Wait for a client that does not read its answer, for a while."""
        super().pause_writing()
        self._start_timer(self.limits.body_timeout)

    def resume_writing(self) -> None:
        """Continue an answer."""
        super().resume_writing()
        self._stop_timer()
        self._update()

    async def _answer(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request; with all connections in use, of the service's health alone."""
        if self._in_reserve and scope["path"] not in _HEALTH:
            headers = {"Connection": "close", "Retry-After": "1"}
            answer = JSONResponse(_failure("busy", "too many connections"), 503, headers)
            await answer(scope, receive, send)
        else:
            await self._served(scope, receive, send)

    def _close_without_request(self) -> None:
        """Close a connection that will not bring the rest of a request."""
        if self.conn.their_state is h11.SEND_BODY:
            self._send_refusal(400, "the body ended early", "incomplete_body")
        elif self.conn.their_state is h11.IDLE:
            self.transport.close()

    def _update(self) -> None:
        """Note the stage, and start the deadline of a new one."""
        if self.transport.is_closing():
            stage = Stage.CLOSING
        elif self.conn.their_state is h11.IDLE:
            stage = Stage.WAITING
        elif self.conn.their_state is h11.SEND_BODY:
            stage = Stage.RECEIVING
        else:
            stage = Stage.ANSWERING
        answered = self.conn.our_state not in (h11.IDLE, h11.SEND_RESPONSE)
        if stage is not self._stage:
            self.room.move(self, stage)
            self._stage = stage
            self._stop_timer()
        if stage is Stage.WAITING and self._timer is None:
            if not self.conn.is_between_requests:
                self._start_timer(self.limits.header_timeout)
        elif stage is Stage.RECEIVING and (self._timer is None or answered):
            # The application refuses a late body at the deadline; this is for other requests.
            self._start_timer(_LINGER if answered else self.limits.body_timeout + 1, renew=answered)
        elif stage is Stage.CLOSING:
            self._start_timer(_LINGER)

    def _start_timer(self, seconds: float, renew: bool = False) -> None:
        end = self.loop.time() + seconds
        if self._timer is None or (renew and end < self._timer.when()):
            self._stop_timer()
            self._timer = self.loop.call_later(seconds, self._expire)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _expire(self) -> None:
        self._timer = None
        waits = self._stage is Stage.WAITING
        if waits and not self.conn.is_between_requests and not self.transport.is_closing():
            self._send_refusal(408, "the headers did not arrive in time", "header_timeout")
            self._update()
        elif waits:
            self.transport.close()
        else:
            self.transport.abort()

    def _send_refusal(self, status: int, message: str, kind: str = "invalid_request") -> None:
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            content = json.dumps(_failure(kind, message)).encode()
            headers = [
                ("Content-Type", "application/json"),
                ("Content-Length", str(len(content))),
                ("Connection", "close"),
            ]
            events = [
                h11.Response(status_code=status, headers=headers),
                h11.Data(data=content),
                h11.EndOfMessage(),
            ]
            # An answer to HEAD ends after its headers.
            with suppress(h11.LocalProtocolError):
                for event in events:
                    self.transport.write(self.conn.send(event) or b"")
        self.transport.close()


def _failure(kind: str, message: str) -> dict[str, Any]:
    return {"error": {"kind": kind, "message": message}}


def connection_class(room: Room, base: type[Connection] = Connection) -> type[Connection]:
    """Return the class of the connections of one server.

    Parameters
    ----------
    room : Room
    base : type, default Connection

    Examples
    --------
    >>> from visionshare.apps.service.limits import Limits
    >>> connection_class(Room(Limits(max_connections=9))).room.limits.max_connections
    9
    """
    return type("LimitedConnection", (base,), {"room": room})
