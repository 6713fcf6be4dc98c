"""Starts, stops, reloads and killed workers, again and again: does the service go on each time?"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.service.pictures import digit_png
from benchmarks.service.processes import Server, request, service

__all__ = ["Lived", "lives"]

# Seconds in which each change must be seen.
_LONGEST = 30.0
_WORKERS = 2


class Lived(NamedTuple):
    """How often something was tried and went well; seconds of the slowest; answers meanwhile."""

    what: str
    tries: int
    well: int
    slowest: float
    answers: int


def lives(classifier: Path, starts: int, reloads: int, kills: int) -> list[Lived]:
    """Start and stop the service, reload it under load, and kill its workers."""
    return [_starts(classifier, starts), _reloads(classifier, reloads), _kills(classifier, kills)]


def _starts(classifier: Path, tries: int) -> Lived:
    """End the service by Ctrl-C and by SIGTERM in turns, as soon as it answers."""
    taken = []
    well = 0
    for number in range(tries):
        told = (signal.SIGINT, signal.SIGTERM)[number % 2]
        with service(classifier) as server:
            begun = time.monotonic()
            server.process.send_signal(told)
            try:
                code = server.process.wait(_LONGEST)
            except subprocess.TimeoutExpired:
                code = None
            taken.append(time.monotonic() - begun)
            well += code == (0 if told == signal.SIGINT else -told)
    return Lived("start and stop", tries, well, _slowest(taken), tries)


def _reloads(classifier: Path, tries: int) -> Lived:
    """Serve other names of classes each time, and a broken file in between, under load."""
    from visionshare import load

    model = load(classifier)
    taken = []
    well = 0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "served.safetensors"
        model.save(path)
        with service(path) as server:
            load_on = _load(server)
            for number in range(tries):
                path.write_bytes(b"no classifier")
                server.process.send_signal(signal.SIGHUP)
                names = [f"{number}-{name}" for name in model.classes_]
                replace(model, classes=np.array(names)).save(path)
                server.process.send_signal(signal.SIGHUP)
                seconds = _until(partial(_serves, server, names))
                taken.append(seconds)
                before = _predictions(server)
                is_answering = _until(partial(_answers_more, server, before))
                well += max(seconds, is_answering) < _LONGEST
            if load_on.poll() is not None:
                raise SystemExit("benchmarks.service: a request was not answered during reloads")
            load_on.kill()
            load_on.wait()
            answers = _predictions(server)
    return Lived("reload under load", tries, well, _slowest(taken), answers)


def _kills(classifier: Path, tries: int) -> Lived:
    """Kill one of two workers; another one must take its place, and the service answer."""
    taken = []
    well = 0
    answers = 0
    with service(classifier, "--workers", str(_WORKERS)) as server:
        _until(lambda: len(_workers(server)) == _WORKERS)
        for _ in range(tries):
            before = _workers(server)
            os.kill(before[0], signal.SIGKILL)
            answers += _health(server)["status"] == "ok"
            seconds = _until(partial(_is_replaced, server, before[0]))
            taken.append(seconds)
            well += seconds < _LONGEST and _health(server)["status"] == "ok"
    return Lived("kill a worker", tries, well, _slowest(taken), answers)


def _slowest(taken: list[float]) -> float:
    return round(max(taken, default=0.0), 2)


def _until(condition: Callable[[], bool]) -> float:
    """Return the seconds until a condition holds, or as many as are allowed."""
    begun = time.monotonic()
    while (passed := time.monotonic() - begun) < _LONGEST:
        if condition():
            return passed
        time.sleep(0.02)
    return _LONGEST


def _health(server: Server) -> dict[str, object]:
    """Return what the service says of itself."""
    return dict(json.loads(_got(server, "/health")))


def _got(server: Server, path: str) -> str:
    """Return a page; the connection of a killed worker is made anew."""
    end = time.monotonic() + _LONGEST
    while time.monotonic() < end:
        with suppress(OSError), server.connect(5.0) as connection:
            connection.sendall(request("GET", path, "Connection: close"))
            answer = b"".join(iter(lambda: connection.recv(1 << 16), b""))
            if answer.startswith(b"HTTP/1.1 200"):
                return answer.partition(b"\r\n\r\n")[2].decode()
    raise SystemExit("benchmarks.service: the service does not answer")


def _serves(server: Server, names: list[str]) -> bool:
    return _health(server)["classes"] == names


def _answers_more(server: Server, before: int) -> bool:
    return _predictions(server) > before


def _is_replaced(server: Server, killed: int) -> bool:
    pids = _workers(server)
    return len(pids) == _WORKERS and killed not in pids


def _predictions(server: Server) -> int:
    """Return how many predictions the service has answered."""
    found = re.search(r'total{path="/predict",status="200"} (\d+)', _got(server, "/metrics"))
    return int(found[1]) if found else 0


def _workers(server: Server) -> list[int]:
    """Return the process numbers of the workers that run."""
    parent = server.process.pid
    pids = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    lines = {int(pid): Path(f"/proc/{pid}/cmdline") for pid in pids}
    return [pid for pid, line in lines.items() if b"spawn_main" in _content(line)]


def _content(path: Path) -> bytes:
    """Return what a file holds, nothing where its process has ended."""
    try:
        return path.read_bytes()
    except OSError:
        return b""


def _load(server: Server) -> subprocess.Popen[bytes]:
    """Start clients that predict one after the other until they are ended; each answer is 200."""
    content = request("POST", "/predict", "Content-Type: image/png", body=digit_png())
    command = [sys.executable, "-m", "benchmarks.service.load", str(server.port), "4", "3600"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    assert process.stdin is not None
    process.stdin.write(content)
    process.stdin.close()
    return process
