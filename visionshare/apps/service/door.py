"""Accepts connections: one that has sent nothing yet costs a socket and no more."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable

from visionshare.apps.service.room import Room, Stage

__all__ = ["Door"]

_logger = logging.getLogger(__name__)
# Connections accepted in a turn of the event loop.
_BATCH = 8
# Turns in which the first bytes of a new connection are read, if they are there.
_TURNS = 2
# Seconds between looks for connections that have been quiet for too long, and of a pause where the
# system has no more descriptors.
_SWEEP, _PAUSE = 0.5, 0.5


class _Quiet:
    """A connection that has sent nothing."""

    def __init__(self, door: Door, connection: socket.socket, deadline: float) -> None:
        self.door, self.connection, self.deadline = door, connection, deadline

    def displace(self) -> None:
        self.door.forget(self)
        self.connection.close()


class Door:
    """Accepts connections, and makes a protocol of each once its first byte is there.

    asyncio and uvicorn make a transport, a parser and a dozen other objects for each connection,
    in about 0.1 ms. Clients that open thousands and send nothing would keep the event loop from
    everybody else. Here they cost a fifth of that.

    Parameters
    ----------
    listener : socket
        Listens already.
    room : Room
        Of all connections of the server.
    protocol : callable
        Makes the protocol of a connection, which enters the room as it is made.

    Examples
    --------
    >>> door = Door(listener, room, protocol)  # doctest: +SKIP
    """

    def __init__(
        self, listener: socket.socket, room: Room, protocol: Callable[[], asyncio.Protocol]
    ) -> None:
        self._listener, self._room, self._protocol = listener, room, protocol
        self._loop = asyncio.get_running_loop()
        # The one that has been quiet longest is first.
        self._quiet: dict[_Quiet, None] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None

    def open(self) -> None:
        """Begin to accept."""
        self._listener.setblocking(False)
        self._loop.add_reader(self._listener.fileno(), self._accept)
        self._sweep()

    def close(self) -> None:
        """Accept no more, and close the connections that have sent nothing."""
        self._loop.remove_reader(self._listener.fileno())
        if self._timer is not None:
            self._timer.cancel()
        for quiet in list(self._quiet):
            self._room.leave(quiet)
            quiet.displace()

    def forget(self, quiet: _Quiet) -> None:
        """Look at a quiet connection no longer."""
        self._quiet.pop(quiet, None)
        self._loop.remove_reader(quiet.connection.fileno())

    def _accept(self) -> None:
        for _ in range(_BATCH):
            # The next turn asks again.
            if self._room.must_wait:
                return
            try:
                connection, _ = self._listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                # No more descriptors: asking again at once would keep the loop busy.
                _logger.error("a connection cannot be accepted: %s", error)
                self._loop.remove_reader(self._listener.fileno())
                self._loop.call_later(_PAUSE, self._resume)
                return
            self._take_in(connection)

    def _resume(self) -> None:
        if self._timer is not None and not self._timer.cancelled():
            self._loop.add_reader(self._listener.fileno(), self._accept)

    def _take_in(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        deadline = self._loop.time() + self._room.limits.header_timeout
        quiet = _Quiet(self, connection, deadline)
        if not self._room.enter(quiet):
            connection.close()
            return
        self._quiet[quiet] = None
        self._loop.add_reader(connection.fileno(), self._begin, quiet)
        self._loop.call_soon(self._settle, quiet, _TURNS)

    def _settle(self, quiet: _Quiet, turns: int) -> None:
        """Note after some turns that a connection waits: nothing has come from it yet."""
        if quiet not in self._quiet:
            return
        if turns:
            self._loop.call_soon(self._settle, quiet, turns - 1)
        else:
            self._room.move(quiet, Stage.WAITING)

    def _begin(self, quiet: _Quiet) -> None:
        """Make a protocol of a connection that has sent something; close one that has ended."""
        try:
            is_ended = not quiet.connection.recv(1, socket.MSG_PEEK)
        except (BlockingIOError, InterruptedError):
            is_ended = False
        except OSError:
            is_ended = True
        if is_ended:
            self._room.leave(quiet)
            quiet.displace()
            return
        self.forget(quiet)
        # Nothing takes its place before it is read.
        self._room.move(quiet, Stage.ARRIVING)
        task = self._loop.create_task(self._connect(quiet))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _connect(self, quiet: _Quiet) -> None:
        connection = quiet.connection

        def protocol() -> asyncio.Protocol:
            # It enters the room in the place of the quiet one.
            self._room.leave(quiet)
            return self._protocol()

        try:
            # asyncio does so where the listener names its protocol. Otherwise an answer waits
            # 40 ms for the client to acknowledge its headers.
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            await self._loop.connect_accepted_socket(protocol, connection)
        except OSError:
            # The client is gone.
            self._room.leave(quiet)
            connection.close()

    def _sweep(self) -> None:
        """Close the connections that have been quiet for too long, again and again."""
        now = self._loop.time()
        for quiet in list(self._quiet):
            if quiet.deadline > now:
                break
            self._room.leave(quiet)
            quiet.displace()
        self._timer = self._loop.call_later(_SWEEP, self._sweep)
