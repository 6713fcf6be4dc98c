"""Resident size of the service over many requests of mixed pictures."""

from __future__ import annotations

import asyncio
import random
import time
from typing import NamedTuple

from benchmarks.service.load import exchange
from benchmarks.service.pictures import digit_png, mixed_requests
from benchmarks.service.processes import HOST, Server, request

__all__ = ["Size", "sizes"]

_N_CLIENTS, _N_BODIES = 4, 400
# Requests of a connection before a new one is made.
_REQUESTS = 50


class Size(NamedTuple):
    """MiB of the process at rest after a number of requests, and how they were answered.

    The system may take pages of files back at any time; ``anonymous`` are the others. ``peak`` is
    the most that was resident until then.
    """

    requests: int
    resident: float
    anonymous: float
    peak: float
    answered: dict[str, int]
    seconds: float


def sizes(server: Server, n_requests: int, n_parts: int) -> list[Size]:
    """Send requests in equal parts, and return the size before the first and after each."""
    bodies = [
        request("POST", "/predict", f"Content-Type: {kind}", body=body)
        for kind, body in mixed_requests(_N_BODIES)
    ]
    answered: dict[str, int] = {}
    begun = time.monotonic()

    def size(n: int) -> Size:
        asyncio.run(_rest(server))
        seconds = round(time.monotonic() - begun, 1)
        resident, anonymous, peak = map(server.memory, ("VmRSS", "RssAnon", "VmHWM"))
        return Size(n, resident, anonymous, peak, dict(sorted(answered.items())), seconds)

    found = [size(0)]
    for part in range(n_parts):
        n = (part + 1) * n_requests // n_parts - found[-1].requests
        asyncio.run(_send(server.port, bodies, n, part, answered))
        found.append(size(found[-1].requests + n))
    return found


async def _rest(server: Server) -> None:
    """Wait until what large pictures took may be given back, which a later request does."""
    await asyncio.sleep(1.1)
    digit = request("POST", "/predict", "Content-Type: image/png", body=digit_png())
    await _send(server.port, [digit], 1, 0, {})


async def _send(
    port: int, bodies: list[bytes], n: int, seed: int, answered: dict[str, int]
) -> None:
    """Send n of the requests, drawn at random, from several clients."""
    draw = random.Random(seed)
    left = iter([draw.choice(bodies) for _ in range(n)])

    async def client() -> None:
        while True:
            reader, writer = await asyncio.open_connection(HOST, port)
            for _ in range(_REQUESTS):
                content = next(left, None)
                if content is None:
                    writer.close()
                    return
                head, _ = await exchange(reader, writer, content)
                status = head.split(b" ", 2)[1].decode()
                answered[status] = answered.get(status, 0) + 1
            writer.close()

    await asyncio.gather(*(client() for _ in range(_N_CLIENTS)))
