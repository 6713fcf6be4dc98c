"""An honest client, as a process: how long health, the echo's health and a prediction take.

    python -m benchmarks.service.probe PORT ECHO_PORT < picture.png > answers.json

It asks until its input ends, each time on a new connection, and also notes how late its own loop
wakes from a sleep: what the machine, and not a server, makes everybody wait for.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable

from benchmarks.service.processes import HOST, request

__all__ = ["Samples"]

Samples = dict[str, list[tuple[float, float]]]
PAUSE = 0.01
_LAST = 0.5


async def _ask(port: int, content: bytes) -> None:
    reader, writer = await asyncio.open_connection(HOST, port)
    try:
        writer.write(content)
        answer = await reader.read()
        if not answer.startswith(b"HTTP/1.1 200"):
            raise OSError(answer[:80])
    finally:
        writer.close()


async def _sample(
    samples: list[tuple[float, float]], action: Callable[[], Awaitable[None]], nominal: float = 0.0
) -> None:
    """Note when each action began and how long it took: negative where it failed, or was cut."""
    while True:
        begun = time.monotonic()
        sign = -1.0
        try:
            await asyncio.wait_for(action(), 30)
            sign = 1.0
        except (OSError, asyncio.TimeoutError):
            pass
        finally:
            samples.append((begun, sign * (time.monotonic() - begun - nominal)))
        await asyncio.sleep(PAUSE)


async def _probe(port: int, echo_port: int, picture: bytes) -> Samples:
    health = request("GET", "/health", "Connection: close")
    kind = ("Content-Type: image/png", "Connection: close")
    predict = request("POST", "/predict", *kind, body=picture)
    samples: Samples = {"health": [], "echo": [], "predict": [], "late": []}
    tasks = [
        asyncio.ensure_future(task)
        for task in (
            _sample(samples["health"], lambda: _ask(port, health)),
            _sample(samples["echo"], lambda: _ask(echo_port, health)),
            _sample(samples["predict"], lambda: _ask(port, predict)),
            _sample(samples["late"], lambda: asyncio.sleep(PAUSE), PAUSE),
        )
    ]
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.buffer.read)
    # Those that are being answered get a moment, so that each is known to be late or not at all.
    await asyncio.sleep(_LAST)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return samples


if __name__ == "__main__":
    size = int(sys.stdin.buffer.readline())
    given = sys.stdin.buffer.read(size)
    print(json.dumps(asyncio.run(_probe(int(sys.argv[1]), int(sys.argv[2]), given))))
