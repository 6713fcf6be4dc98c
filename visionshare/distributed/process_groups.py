"""Process groups: processes that take the same steps at the same time, each with parts of the data.

A group adds up what its parts give in the order of :mod:`visionshare.distributed.sums`, which
depends on their number alone: a sum has the same bits whoever holds which part. Numbers travel
between the processes themselves, through the first of them, and not through a client.
"""

from __future__ import annotations

import hmac
import io
import socket
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from multiprocessing.connection import Connection
from typing import NamedTuple

import numpy as np

from visionshare.distributed.sums import JOINS, Node, joined, root

__all__ = ["ConnectedProcessGroup", "GroupMember", "ProcessGroup", "SingleProcessGroup", "listener"]

# Seconds until all processes of a group are there, and until one that steps has an answer.
_MEETING, _STEP = 60.0, 300.0


class ProcessGroup(ABC):
    """Processes with parts, seen from one of them."""

    n: int
    leads: bool = True

    def total(self, values: Mapping[int, np.ndarray]) -> np.ndarray:
        """Return the sum of all parts' arrays, which have one shape and type."""
        nodes = joined({(0, i): values[i] for i in sorted(values)}, self.n, JOINS["sum"])
        return self._root(nodes)

    @abstractmethod
    def gathered(self, values: Mapping[int, np.ndarray]) -> list[np.ndarray]:
        """Return all parts' arrays, by number: for samples and figures."""

    @abstractmethod
    def _root(self, nodes: dict[Node, np.ndarray]) -> np.ndarray:
        """Return what all processes' nodes are together."""

    @abstractmethod
    def close(self) -> None:
        """Leave the group."""


class SingleProcessGroup(ProcessGroup):
    """A group of one process, which has all parts."""

    def __init__(self, n: int) -> None:
        self.n = n

    def gathered(self, values: Mapping[int, np.ndarray]) -> list[np.ndarray]:
        return [values[number] for number in range(self.n)]

    def _root(self, nodes: dict[Node, np.ndarray]) -> np.ndarray:
        return root(nodes, self.n, JOINS["sum"])

    def close(self) -> None:
        pass


class GroupMember(NamedTuple):
    """The place of a process in a group."""

    parts: tuple[tuple[int, ...], ...]
    rank: int
    leader: tuple[str, int]
    key: bytes


class ConnectedProcessGroup(ProcessGroup):
    """A group of several processes, from one of them."""

    def __init__(self, member: GroupMember, listening: socket.socket | None = None) -> None:
        self.parts, self.n = member.parts, sum(map(len, member.parts))
        self.leads, self._rank = member.rank == 0, member.rank
        self._others: dict[int, Connection] = {}
        if listening is None:
            self._others[0] = _connected(member)
            return
        end = time.monotonic() + _MEETING
        try:
            while len(self._others) < len(member.parts) - 1:
                listening.settimeout(max(0.01, end - time.monotonic()))
                number, other = _accepted(listening.accept()[0], member.key)
                if number is not None:
                    self._others[number] = other
        except TimeoutError:
            self.close()
            raise ConnectionError("not all processes of a group are there") from None

    def _root(self, nodes: dict[Node, np.ndarray]) -> np.ndarray:
        own = np.stack(list(nodes.values()))
        if not self.leads:
            _send(self._others[0], own)
            result = np.empty_like(own[0])
            _receive(self._others[0], result)
            return result
        for number, other in sorted(self._others.items()):
            theirs = _nodes_of(self.parts[number], self.n)
            values = np.empty((len(theirs), *own.shape[1:]), own.dtype)
            _receive(other, values)
            nodes.update(zip(theirs, values, strict=True))
        result = root(nodes, self.n, JOINS["sum"])
        for _, other in sorted(self._others.items()):
            _send(other, result)
        return result

    def gathered(self, values: Mapping[int, np.ndarray]) -> list[np.ndarray]:
        if not self.leads:
            for number in sorted(values):
                _send_any(self._others[0], values[number])
            return [_receive_any(self._others[0]) for _ in range(self.n)]
        found = dict(values)
        for process, other in sorted(self._others.items()):
            found.update({number: _receive_any(other) for number in sorted(self.parts[process])})
        ordered = [found[number] for number in range(self.n)]
        for _, other in sorted(self._others.items()):
            for value in ordered:
                _send_any(other, value)
        return ordered

    def close(self) -> None:
        for other in self._others.values():
            other.close()
        self._others.clear()


def _nodes_of(parts: Sequence[int], n: int) -> list[Node]:
    """Return the nodes that a process sends which has these parts."""
    return list(joined({(0, i): 0 for i in sorted(parts)}, n, lambda a, _: a))


def listener(host: str) -> socket.socket:
    """Return a socket that listens at a free port."""
    return socket.create_server((host, 0))


def _connected(member: GroupMember) -> Connection:
    try:
        one = socket.create_connection(member.leader, timeout=_MEETING)
    except OSError as error:
        raise ConnectionError(f"the first process of a group cannot be reached: {error}") from error
    other = _connection(one)
    other.send_bytes(member.key + member.rank.to_bytes(4, "little"))
    return other


def _accepted(one: socket.socket, key: bytes) -> tuple[int | None, Connection]:
    """Return the number of a process that has connected, None where it has another key."""
    other = _connection(one)
    if other.poll(_MEETING):
        said = other.recv_bytes(len(key) + 4)
        if hmac.compare_digest(said[:-4], key):
            return int.from_bytes(said[-4:], "little"), other
    other.close()
    return None, other


def _connection(one: socket.socket) -> Connection:
    # Nothing is held back until an acknowledgment comes: each message is waited for.
    one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    one.settimeout(None)
    return Connection(one.detach())


def _send(other: Connection, values: np.ndarray) -> None:
    other.send_bytes(np.ascontiguousarray(values).reshape(-1).view(np.uint8).data)


def _receive(other: Connection, out: np.ndarray) -> None:
    _await(other)
    if other.recv_bytes_into(out.reshape(-1).view(np.uint8).data) != out.nbytes:
        raise ConnectionError("a process of a group has taken another step")


def _send_any(other: Connection, values: np.ndarray) -> None:
    file = io.BytesIO()
    np.save(file, values, allow_pickle=False)
    # A copy: an error's traceback keeps a view of the buffer, and closing that would be another.
    other.send_bytes(file.getvalue())


def _receive_any(other: Connection) -> np.ndarray:
    _await(other)
    return np.asarray(np.load(io.BytesIO(other.recv_bytes()), allow_pickle=False))


def _await(other: Connection) -> None:
    if not other.poll(_STEP):
        raise ConnectionError(f"no process of a group has answered for {_STEP:g} seconds")
