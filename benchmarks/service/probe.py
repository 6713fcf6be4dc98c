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

__all__ = ["Samples", "sample"]

Samples = dict[str, list[tuple[float, float]]]
PAUSE = 0.01
# Seconds that an answer is waited for.
_LONGEST = 30.0
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


async def sample(
    samples: list[tuple[float, float]],
    ended: asyncio.Event,
    action: Callable[[], Awaitable[None]],
    nominal: float = 0.0,
) -> None:
    """Note when each action began and how long it took: negative where it failed, or was cut."""
    # Not until it is cancelled: wait_for forgets that where the action ends at the same moment.
    while not ended.is_set():
        begun = time.monotonic()
        sign = -1.0
        try:
            await asyncio.wait_for(action(), _LONGEST)
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
    ended = asyncio.Event()
    tasks = [
        asyncio.ensure_future(task)
        for task in (
            sample(samples["health"], ended, lambda: _ask(port, health)),
            sample(samples["echo"], ended, lambda: _ask(echo_port, health)),
            sample(samples["predict"], ended, lambda: _ask(port, predict)),
            sample(samples["late"], ended, lambda: asyncio.sleep(PAUSE), PAUSE),
        )
    ]
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.buffer.read)
    # Those that are being answered get a moment, so that each is known to be late or not at all.
    await asyncio.sleep(_LAST)
    ended.set()
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return samples


if __name__ == "__main__":
    size = int(sys.stdin.buffer.readline())
    given = sys.stdin.buffer.read(size)
    print(json.dumps(asyncio.run(_probe(int(sys.argv[1]), int(sys.argv[2]), given))))
