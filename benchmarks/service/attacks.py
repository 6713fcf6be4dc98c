"""What ``/health`` takes while clients mean harm, and whether others are served."""

from __future__ import annotations

import json
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

from benchmarks.service.pictures import digit_png
from benchmarks.service.processes import HOST, Server, request

__all__ = ["ATTACKS", "Attacked", "attacked"]

PNG = ("Content-Type: image/png",)
JSON = ("Content-Type: application/json",)
_SLOW = 0.1
# Of the attacks that last as long as one likes.
_SECONDS = 5.0
# After which an attack, or the probe, is given up: the longest attack takes a quarter of it.
_LONGEST = 60.0
Attack = Callable[[Server], None]


class Spread(NamedTuple):
    """Milliseconds: median, 99th percentile and maximum; how many were slow, failed, and asked.

    Slow are those of more than 100 ms. Those that failed count with the time until then.
    """

    median: float
    high: float
    most: float
    slow: int
    failed: int
    asked: int


class Attacked(NamedTuple):
    """What an honest client saw during an attack, and MiB of the service.

    ``health`` and ``predict`` are the service's answers, ``echo`` the health of the plain echo
    at the same time, ``late`` how late the client's own loop woke.
    """

    attack: str
    health: Spread
    predict: Spread
    echo: Spread
    late: Spread
    seconds: float
    peak: float
    resident: float


def bomb(width: int, height: int, color: int = 2) -> bytes:
    """Return a small PNG of many pixels: gray (color 0), or RGB (2)."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        check = zlib.crc32(kind + data)
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", check)

    header = struct.pack(">IIBBBBB", width, height, 8, color, 0, 0, 0)
    row = bytes(1 + width * (3 if color == 2 else 1))
    packer = zlib.compressobj(9)
    data = b"".join(packer.compress(row) for _ in range(height)) + packer.flush()
    chunks = [chunk(b"IHDR", header), chunk(b"IDAT", data), chunk(b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


def _held(server: Server, number: int, content: bytes, seconds: float = 3.0) -> None:
    """Open connections one after the other, send to each, and keep them open for a while."""
    with ExitStack() as stack:
        for _ in range(number):
            connection = stack.enter_context(server.connect())
            with suppress(OSError):
                connection.sendall(content)
        time.sleep(seconds)


def _say(server: Server, content: bytes, half_close: bool = False) -> bytes:
    """Return all that is answered until the service closes the connection."""
    answer = b""
    with server.connect() as connection, suppress(OSError):
        connection.sendall(content)
        if half_close:
            connection.shutdown(1)
        while part := connection.recv(1 << 16):
            answer += part
    return answer


def _at_once(server: Server, content: bytes, n_threads: int, rounds: int) -> None:
    with ThreadPoolExecutor(n_threads) as pool:
        list(pool.map(lambda _: _say(server, content), range(n_threads * rounds)))


def _post(path: str, kind: tuple[str, ...], body: bytes) -> bytes:
    return request("POST", path, *kind, "Connection: close", body=body)


def _half_closed(server: Server, number: int) -> None:
    content = request("GET", "/health") + _post("/predict", PNG, digit_png())
    for _ in range(number):
        _say(server, content, half_close=True)


def _one_byte_chunks(server: Server, n_clients: int) -> None:
    """Send bodies in chunks of one byte, as fast as the service takes them."""
    head = request("POST", "/predict", *PNG, "Transfer-Encoding: chunked")
    many = b"1\r\nx\r\n" * 10_000
    end = time.monotonic() + _SECONDS

    def send(_: int) -> None:
        while time.monotonic() < end:
            with server.connect(1.0) as connection, suppress(OSError):
                connection.sendall(head)
                # At most the 10 MiB that a body may have.
                for _ in range(1000):
                    if time.monotonic() > end:
                        break
                    connection.sendall(many)

    with ThreadPoolExecutor(n_clients) as pool:
        list(pool.map(send, range(n_clients)))


def _kept_alive(server: Server, number: int) -> None:
    """Ask once on each connection, and keep all of them open."""
    with ExitStack() as stack:
        for _ in range(number):
            connection = stack.enter_context(server.connect())
            with suppress(OSError):
                connection.sendall(request("GET", "/health"))
                connection.recv(1 << 16)
        time.sleep(3.0)


def _pipelined(server: Server, n_clients: int, number: int) -> None:
    """Send many requests at once on each connection, and read the answers."""
    content = request("GET", "/health") * (number - 1)
    content += request("GET", "/health", "Connection: close")

    def send(_: int) -> None:
        with server.connect() as connection:
            sender = ThreadPoolExecutor(1)
            sending = sender.submit(connection.sendall, content)
            with suppress(OSError):
                while connection.recv(1 << 16):
                    pass
            sending.exception()
            sender.shutdown()

    with ThreadPoolExecutor(n_clients) as pool:
        list(pool.map(send, range(n_clients)))


def _unread(server: Server, number: int) -> None:
    """Ask for the page many times on each connection, and read none of it."""
    content = request("GET", "/") * 200
    with ExitStack() as stack:
        for _ in range(number):
            connection = stack.enter_context(socket.socket())
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
            connection.settimeout(5.0)
            with suppress(OSError):
                connection.connect((HOST, server.port))
                connection.setblocking(False)
                connection.send(content)
        time.sleep(_SECONDS)


def _without_pause(server: Server, path: str, number: int) -> None:
    """Ask on many connections without a pause: with wrk, or with a client in Python."""
    if wrk := shutil.which("wrk"):
        script = Path(__file__).with_name("predict.lua")
        options = ["-t1", f"-c{number}", f"-d{_SECONDS:g}s", "-s", str(script)]
        url = f"http://{HOST}:{server.port}{path}"
        command = [wrk, *options, url, "--", "POST" if path == "/predict" else "GET"]
        with tempfile.NamedTemporaryFile(suffix=".png") as file:
            file.write(digit_png())
            file.flush()
            subprocess.run([*command, file.name], check=True, stdout=subprocess.DEVNULL)
        return
    content = (
        request("GET", path) if path == "/health" else request("POST", path, *PNG, body=digit_png())
    )
    command = [sys.executable, "-m", "benchmarks.service.load", str(server.port)]
    subprocess.run(
        [*command, str(number), str(_SECONDS), "any"],
        input=content, check=True, stdout=subprocess.DEVNULL,
    )  # fmt: skip


def _ambiguous(server: Server, number: int) -> None:
    framings = (
        ("Content-Length: 3", "Transfer-Encoding: chunked"),
        ("Content-Length: 3", "Content-Length: 4"),
        ("Transfer-Encoding: gzip, chunked",),
        ("X-A: 1\r\n 2",),
    )
    hidden = b"3\r\nabc\r\n0\r\n\r\n" + request("GET", "/metrics")
    for i in range(number):
        head = request("POST", "/predict", *PNG, *framings[i % len(framings)])
        if _say(server, head + hidden).count(b"HTTP/1.1") != 1:
            raise SystemExit("benchmarks.service: a request had two readings")


def _unfinished() -> bytes:
    return request("POST", "/predict", *PNG, "Content-Length: 8000000") + bytes(5_000_000)


def _begun() -> bytes:
    return request("POST", "/predict", *PNG, "Content-Length: 100000") + bytes(1000)


def _lists() -> bytes:
    return _post("/predict", JSON, b"[" + b"[]," * 3_300_000 + b"[]]")


def _flood(content: bytes, n_threads: int, rounds: int) -> Attack:
    return partial(_at_once, content=content, n_threads=n_threads, rounds=rounds)


# Made when they are needed: some take a second.
ATTACKS: dict[str, Callable[[], Attack]] = {
    "none": lambda: lambda _: time.sleep(5),
    "600 idle connections": lambda: partial(_held, number=600, content=b""),
    "2000 idle connections": lambda: partial(_held, number=2000, content=b""),
    "520 half headers": lambda: partial(
        _held, number=520, content=b"GET / HTTP/1.1\r\nHost: localhost\r\nX"
    ),
    "60 unfinished bodies of 5 MB": lambda: partial(_held, number=60, content=_unfinished()),
    "10 MB JSON of empty lists, 4 at once": lambda: _flood(_lists(), 4, 100),
    "130 kB PNG of 121 Mpx, 8 at once": lambda: _flood(
        _post("/predict", PNG, bomb(11_000, 11_000, 0)), 8, 100
    ),
    "130 kB PNG of 32 Mpx, 8 at once": lambda: _flood(
        _post("/predict", PNG, bomb(5_700, 5_700)), 8, 2
    ),
    "ambiguous framing": lambda: partial(_ambiguous, number=2000),
    "half-closed clients": lambda: partial(_half_closed, number=300),
    "chunks of one byte, 1 client": lambda: partial(_one_byte_chunks, n_clients=1),
    "chunks of one byte, 8 clients": lambda: partial(_one_byte_chunks, n_clients=8),
    "700 kept-alive connections": lambda: partial(_kept_alive, number=700),
    "400 begun bodies": lambda: partial(_held, number=400, content=_begun()),
    "20 × 2000 pipelined requests": lambda: partial(_pipelined, n_clients=20, number=2000),
    "200 clients that do not read": lambda: partial(_unread, number=200),
    "/health from 300 connections": lambda: partial(_without_pause, path="/health", number=300),
    "/predict from 300 connections": lambda: partial(_without_pause, path="/predict", number=300),
}


@contextmanager
def _probing(server: Server, plain: Server) -> Iterator[dict[str, list[tuple[float, float]]]]:
    """Ask as an honest client during the block; the samples are there when it is left."""
    command = [sys.executable, "-m", "benchmarks.service.probe", str(server.port), str(plain.port)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None
    picture = digit_png()
    process.stdin.write(b"%d\n" % len(picture) + picture)
    process.stdin.flush()
    samples: dict[str, list[tuple[float, float]]] = {}
    # It starts.
    time.sleep(1.5)
    try:
        yield samples
    finally:
        try:
            out, _ = process.communicate(timeout=_LONGEST)
        except subprocess.TimeoutExpired:
            process.kill()
            raise SystemExit("benchmarks.service: the probe did not end") from None
        samples.update(json.loads(out))


@contextmanager
def _bounded(name: str, seconds: float) -> Iterator[None]:
    """End the program with a sentence where the block takes longer."""

    def give_up(*_: object) -> None:
        raise SystemExit(f"benchmarks.service: {name!r} did not end within {seconds:g} seconds")

    former = signal.signal(signal.SIGALRM, give_up)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, former)


def attacked(server: Server, plain: Server, name: str, longest: float = _LONGEST) -> Attacked:
    """Attack the service once and return what an honest client saw meanwhile."""
    attack = ATTACKS[name]()
    server.reset_peak()
    with _probing(server, plain) as samples:
        begun = time.monotonic()
        with _bounded(name, longest):
            attack(server)
        ended = time.monotonic()
        # What the attack left behind is part of it.
        time.sleep(1.0)
    peak = server.memory("VmHWM")
    time.sleep(1.0)
    _say(server, _post("/predict", PNG, digit_png()))
    spreads = {
        key: _spread([seconds for at, seconds in rows if at >= begun])
        for key, rows in samples.items()
    }
    return Attacked(
        attack=name,
        **spreads,
        seconds=round(ended - begun, 1),
        peak=peak,
        resident=server.memory(),
    )


def _spread(seconds: list[float]) -> Spread:
    # One that was cut by the end of the measurement is no failure if it is no late one either.
    failed = [-s for s in seconds if s < -_SLOW]
    taken = sorted([s for s in seconds if s >= 0] + failed)
    ranks = (len(taken) // 2, int(0.99 * len(taken)), len(taken) - 1)
    median, high, most = (round(1000 * taken[rank], 1) for rank in ranks)
    return Spread(median, high, most, sum(s > _SLOW for s in taken), len(failed), len(taken))
