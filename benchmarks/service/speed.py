"""Requests a second of the service and of a plain FastAPI echo of the same bytes."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

from benchmarks.service.pictures import digit_json, digit_png
from benchmarks.service.processes import Server, request

__all__ = ["Speed", "speeds"]


class Speed(NamedTuple):
    """One kind of request at a number of connections; medians over the rounds.

    Requests a second, and milliseconds of an answer: median and 99th percentile.
    """

    request: str
    connections: int
    per_second: float
    median: float
    high: float


class _Kind(NamedTuple):
    name: str
    server: Server
    content: bytes


def speeds(
    server: Server, plain: Server, connections: Sequence[int], seconds: float, rounds: int
) -> list[Speed]:
    """Measure all kinds of requests in turn, so that what else the machine does hits all."""
    png = (("Content-Type: image/png",), digit_png())
    pixels = (("Content-Type: application/json",), digit_json())
    kinds = [
        _Kind(f"{path}, {name}", where, request("POST", path, *kind, body=body))
        for name, (kind, body) in (("PNG", png), ("JSON", pixels))
        for path, where in (("/echo", plain), ("/predict", server))
    ]
    measured: dict[tuple[str, int], list[tuple[float, float, float]]] = {}
    for _ in range(rounds):
        for n_connections in connections:
            for kind in kinds:
                figures = _measured(kind, n_connections, seconds)
                measured.setdefault((kind.name, n_connections), []).append(figures)
    return [
        Speed(name, n, *(round(statistics.median(column), 2) for column in zip(*rows, strict=True)))
        for (name, n), rows in measured.items()
    ]


def _measured(kind: _Kind, n_connections: int, seconds: float) -> tuple[float, float, float]:
    command = [sys.executable, "-m", "benchmarks.service.load", str(kind.server.port)]
    ended = subprocess.run(
        [*command, str(n_connections), str(seconds)],
        input=kind.content,
        stdout=subprocess.PIPE,
        check=True,
    )
    taken: list[Any] = sorted(json.loads(ended.stdout))
    high = taken[int(0.99 * len(taken))]
    return len(taken) / seconds, 1000 * statistics.median(taken), 1000 * high
