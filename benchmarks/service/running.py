"""Reads the command line, starts the servers, measures, and prints figures."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks.service.attacks import ATTACKS, Attacked, attacked
from benchmarks.service.lives import Lived, lives
from benchmarks.service.memory import Size, sizes
from benchmarks.service.processes import Server, echo, service, train_digits
from benchmarks.service.speed import Speed, speeds
from scripts.reproduce.results import table

__all__ = ["main", "servers"]

_CONNECTIONS = (1, 8, 64)
_PACKAGES = ("granian", "fastapi", "starlette", "pillow")


def _arguments(given: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.service", description="The service under load and attack."
    )
    parser.add_argument(
        "what", nargs="?", choices=("speed", "attacks", "memory", "lives"), default="speed"
    )
    parser.add_argument("--classifier", type=Path, help="default: trains the bundled digits")
    parser.add_argument("--json", action="store_true", help="one line of JSON, not tables")
    parser.add_argument("--seconds", type=float, default=2.0, help="of a measurement (default 2)")
    parser.add_argument("--rounds", type=int, default=5, help="medians are over these (default 5)")
    parser.add_argument("--requests", type=int, default=100_000, help="of memory (default 100000)")
    parser.add_argument("--parts", type=int, default=10, help="after which memory is read (10)")
    parser.add_argument("--attacks", nargs="*", choices=ATTACKS, default=list(ATTACKS), help="all")
    parser.add_argument("--starts", type=int, default=100, help="and stops, of lives (100)")
    parser.add_argument("--reloads", type=int, default=20, help="under load, of lives (20)")
    parser.add_argument("--kills", type=int, default=20, help="of a worker, of lives (20)")
    return parser.parse_args(given)


@contextmanager
def _classifier(given: Path | None) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        yield given or train_digits(Path(folder) / "digits")


@contextmanager
def servers(classifier: Path | None) -> Iterator[tuple[Server, Server]]:
    """Serve a classifier, by default of the bundled digits, and the plain echo."""
    with _classifier(classifier) as file, service(file) as server, echo() as plain:
        yield server, plain


def _measured(options: argparse.Namespace) -> list[Any]:
    if options.what == "lives":
        with _classifier(options.classifier) as file:
            return lives(file, options.starts, options.reloads, options.kills)
    with servers(options.classifier) as (server, plain):
        if options.what == "attacks":
            return [_told(attacked(server, plain, name)) for name in options.attacks]
        if options.what == "memory":
            return sizes(server, options.requests, options.parts)
        return speeds(server, plain, _CONNECTIONS, options.seconds, options.rounds)


def _told(row: Attacked) -> Attacked:
    """Return a row, and say at once what stands in it: all attacks take minutes."""
    load = os.getloadavg()[0]
    print(" | ".join(map(str, _cells(row))), f"load {load:.1f}", sep=" | ", file=sys.stderr)
    return row


def _cells(row: Speed | Attacked | Size | Lived) -> list[object]:
    """Return a row of the table."""
    if isinstance(row, Attacked):
        spreads = (row.health, row.echo, row.late, row.predict)
        times = [f"{s.median:g} / {s.high:g} / {s.most:g}" for s in spreads]
        slow = [f"{s.slow} of {s.asked}" for s in (row.health, row.echo)]
        failed = row.health.failed + row.predict.failed
        return [row.attack, *times, *slow, failed, row.peak, row.resident]
    if isinstance(row, Size):
        answers = ", ".join(f"{n} × {status}" for status, n in row.answered.items())
        return [row.requests, row.resident, row.anonymous, row.peak, answers, row.seconds]
    return list(row)


_HEADERS = {
    "speed": ["request", "connections", "requests/s", "median, ms", "99th percentile, ms"],
    "attacks": [
        "attack", "/health, ms", "the echo's /health", "a sleeping loop", "/predict",
        "/health above 100 ms", "the echo's", "failed", "peak, MiB", "after, MiB",
    ],
    "lives": ["what", "tries", "went well", "slowest, s", "answers"],
    "memory": [
        "requests", "resident, MiB", "anonymous, MiB", "peak, MiB", "answers", "seconds",
    ],
}  # fmt: skip


def main(given: Sequence[str] | None = None) -> None:
    """Measure what the command line asks for and print it."""
    options = _arguments(given)
    before = os.getloadavg()
    rows = _measured(options)
    machine = {
        "cores": os.cpu_count(),
        "load before and after": [round(load[0], 1) for load in (before, os.getloadavg())],
        "python": platform.python_version(),
        **{name: version(name) for name in _PACKAGES},
    }
    if options.json:
        print(json.dumps({options.what: [_plain(row) for row in rows], "machine": machine}))
    else:
        print(table(_HEADERS[options.what], [_cells(row) for row in rows]))
        print("\n" + ", ".join(f"{name} {value}" for name, value in machine.items()))


def _plain(row: Any) -> dict[str, Any]:
    """Return a record and the records in it as dictionaries."""
    return {k: _plain(v) if hasattr(v, "_asdict") else v for k, v in row._asdict().items()}
