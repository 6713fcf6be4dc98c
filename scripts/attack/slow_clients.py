"""Clients that wait: what they hold must not keep others from an answer."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import numpy as np

from scripts.attack.forked import Attempt, forked
from scripts.attack.results import Ending
from scripts.attack.serving import Served, picture, request

__all__ = ["slow_clients"]

_SAMPLE = Path(__file__).parents[2] / "tests" / "archives" / "digits-v1.safetensors"
# The longest that an answer about health may take: long beside a fraction of a second, for machines
# that do other things at the same time. A service that hangs takes longer.
_HEALTH = 25.0
_TRY = 200.0
# Open files of the service after the clients have gone, above those before.
_LEFT = 8

# What one client does, with a connection.
Client = Callable[[socket.socket, np.random.Generator], None]


def slow_clients(tries: range, seed: int) -> Iterator[Ending]:
    """Let clients hold connections, and ask for health and predictions meanwhile."""
    return forked(lambda: _ready(seed), tries, _behavior, seconds=_TRY)


def _behavior(number: int) -> str:
    return list(_CLIENTS)[number % len(_CLIENTS)]


def _ready(seed: int) -> Attempt:
    limits = ("--header-timeout", "1", "--body-timeout", "1")
    served = Served(_SAMPLE, *limits, "--max-body-memory", "32MiB", "--max-body-size", "8MiB")
    before = served.n_open()

    def attempt(number: int) -> Ending:
        rng = np.random.default_rng((seed, number))
        _held(served, _CLIENTS[_behavior(number)], rng)
        served.check()
        stop = time.monotonic() + _HEALTH
        while served.n_open() > before + _LEFT:
            if time.monotonic() > stop:
                return Ending("lost", f"{served.n_open() - before} connections are left open")
            time.sleep(0.01)
        return Ending("survived")

    return attempt


def _held(served: Served, client: Client, rng: np.random.Generator) -> None:
    """Let many clients begin, and ask for health while they hold their connections."""
    with ExitStack() as stack:
        for _ in range(int(rng.integers(20, 400))):
            connection = stack.enter_context(served.connect())
            # One that was closed to make room.
            with suppress(OSError):
                client(connection, rng)
        for _ in range(3):
            if (seconds := served.health_seconds()) > _HEALTH:
                raise AssertionError(f"/health takes {seconds:.1f} s")
            status, text = served.predict()
            # Refused is an answer too: memory for bodies, or the queue, may be full.
            if status not in (200, 503):
                raise AssertionError(f"/predict: {status} {text[:80]}")


def _idle(connection: socket.socket, rng: np.random.Generator) -> None:
    """Send nothing."""


def _half_headers(connection: socket.socket, rng: np.random.Generator) -> None:
    head = request("POST", "/predict", "Content-Type: image/png", "X-A: " + "a" * 200)
    connection.sendall(head[: int(rng.integers(1, len(head) - 1))])


def _half_body(connection: socket.socket, rng: np.random.Generator) -> None:
    connection.setblocking(False)
    size = int(rng.choice([100, 10_000, 1_000_000, 8_000_000]))
    head = request("POST", "/predict", "Content-Type: image/png", f"Content-Length: {size}")
    connection.send(head + bytes(int(rng.integers(0, size))))


def _half_chunks(connection: socket.socket, rng: np.random.Generator) -> None:
    head = request("POST", "/predict", "Content-Type: image/png", "Transfer-Encoding: chunked")
    connection.sendall(head + b"5\r\nabcde\r\n" * int(rng.integers(0, 50)))


def _one_byte_chunks(connection: socket.socket, rng: np.random.Generator) -> None:
    connection.setblocking(False)
    head = request("POST", "/predict", "Content-Type: image/png", "Transfer-Encoding: chunked")
    connection.send(head + b"1\r\nx\r\n" * int(rng.integers(1000, 50_000)))


def _pipelined(connection: socket.socket, rng: np.random.Generator) -> None:
    connection.setblocking(False)
    connection.send(request("GET", "/health") * int(rng.integers(10, 200)))


def _half_closed(connection: socket.socket, rng: np.random.Generator) -> None:
    head = request("POST", "/predict", "Content-Type: image/png", "Content-Length: 900")
    connection.sendall(head[: int(rng.integers(0, len(head) + 1))])
    connection.shutdown(socket.SHUT_WR)


def _reset(connection: socket.socket, rng: np.random.Generator) -> None:
    """Ask, and be gone without a word."""
    connection.sendall(_whole())
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def _never_reads(connection: socket.socket, rng: np.random.Generator) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
    connection.setblocking(False)
    connection.send(request("GET", "/") * int(rng.integers(1, 200)))


def _kept_alive(connection: socket.socket, rng: np.random.Generator) -> None:
    connection.sendall(_whole())
    connection.recv(1 << 16)


def _drip(connection: socket.socket, rng: np.random.Generator) -> None:
    for byte in _whole()[: int(rng.integers(1, 20))]:
        connection.sendall(bytes([byte]))


def _whole() -> bytes:
    body = picture()
    head = request("POST", "/predict", "Content-Type: image/png", f"Content-Length: {len(body)}")
    return head + body


_CLIENTS: dict[str, Client] = {
    "idle": _idle,
    "half-headers": _half_headers,
    "half-body": _half_body,
    "half-chunks": _half_chunks,
    "one-byte-chunks": _one_byte_chunks,
    "pipelined": _pipelined,
    "half-closed": _half_closed,
    "reset": _reset,
    "never-reads": _never_reads,
    "kept-alive": _kept_alive,
    "drip": _drip,
}
