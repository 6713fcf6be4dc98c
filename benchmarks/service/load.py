"""Clients of one kind of request, as a process: each has a connection and asks again and again.

    python -m benchmarks.service.load PORT CONNECTIONS SECONDS [any] < request > answers.json

They ask for a while before they are counted. An answer that is not 200 ends the process, unless
any answer will do.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
import time

from benchmarks.service.processes import HOST

__all__ = ["exchange"]

# The part of the time that is not counted.
_WARM_UP = 0.25
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)


async def exchange(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, content: bytes
) -> tuple[bytes, bytes]:
    """Send a request and return head and body of the answer."""
    writer.write(content)
    head = await reader.readuntil(b"\r\n\r\n")
    length = _LENGTH.search(head)
    body = await reader.readexactly(int(length[1]) if length else 0)
    return head, body


async def _client(port: int, content: bytes, seconds: float, accepted: bytes) -> list[float]:
    """Return the seconds of the answers that were asked for within some seconds, or of one."""
    reader, writer = await asyncio.open_connection(HOST, port)
    taken: list[float] = []
    start = time.perf_counter() + _WARM_UP * seconds
    while (begun := time.perf_counter()) < start + seconds or not taken:
        head, body = await exchange(reader, writer, content)
        if not head.startswith(accepted):
            raise SystemExit(f"benchmarks.service: {head + body!r}")
        if begun >= start:
            taken.append(time.perf_counter() - begun)
    writer.close()
    return taken


async def _load(
    port: int, n_connections: int, seconds: float, content: bytes, accepted: bytes
) -> list[float]:
    clients = (_client(port, content, seconds, accepted) for _ in range(n_connections))
    return [taken for part in await asyncio.gather(*clients) for taken in part]


if __name__ == "__main__":
    numbers = (int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]))
    accepted = b"HTTP/1.1 " if sys.argv[4:] == ["any"] else b"HTTP/1.1 200"
    print(json.dumps(asyncio.run(_load(*numbers, sys.stdin.buffer.read(), accepted))))
