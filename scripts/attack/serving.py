"""The service in a process of its own, for those who attack it over sockets."""

from __future__ import annotations

import ctypes
import errno
import io
import json
import os
import resource
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from functools import cache
from pathlib import Path

import numpy as np

__all__ = ["Served", "picture", "request"]

ROOT = Path(__file__).parents[2]
_DIES_WITH_PARENT = 1
_MEMORY = 1 << 30
_SECONDS = 30.0


def _with_parent() -> None:
    """Let the service end when the process ends that attacks it, and open many connections."""
    ctypes.CDLL(None).prctl(_DIES_WITH_PARENT, signal.SIGKILL)
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


class Served:
    """The command ``visionshare serve``; it ends with this process.

    Parameters
    ----------
    path : Path
        A classifier of images of 8×8 pixels.
    options : str
        Of the command.
    """

    def __init__(self, path: Path, *options: str) -> None:
        command = [sys.executable, "-m", "visionshare.cli", "serve", str(path), "--port", "0"]
        self.process = subprocess.Popen(
            [*command, *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            cwd=ROOT,
            preexec_fn=_with_parent,
        )
        assert self.process.stdout is not None
        self.port = int(self.process.stdout.readline().split()[1].rsplit(":", 1)[1].strip("/"))
        self.check()

    def connect(self) -> socket.socket:
        """Return a new connection."""
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=_SECONDS)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    def say(self, parts: list[bytes], patience: float | None = None) -> bytes:
        """Return all that the service answers to some bytes until it closes.

        A client with patience closes its half when nothing came for so many seconds.
        """
        answer = b""
        with self.connect() as connection, suppress(ConnectionError):
            for part in parts:
                connection.sendall(part)
            if patience is not None:
                connection.settimeout(patience)
                with suppress(socket.timeout):
                    while part := connection.recv(1 << 16):
                        answer += part
                    return answer
                connection.settimeout(_SECONDS)
                _close_half(connection)
            while part := connection.recv(1 << 16):
                answer += part
        return answer

    def health_seconds(self) -> float:
        """Return how long an answer about its health takes, on a new connection.

        Raises
        ------
        AssertionError
            If the answer is another one.
        """
        start = time.monotonic()
        answer = self.say([request("GET", "/health", "Connection: close")])
        if not answer.startswith(b"HTTP/1.1 200"):
            raise AssertionError(f"/health: {answer[:80]!r}")
        return time.monotonic() - start

    def predict(self) -> tuple[int, str]:
        """Return status and text of the answer to a picture."""
        body = picture()
        head = ("Content-Type: image/png", f"Content-Length: {len(body)}", "Connection: close")
        answer = self.say([request("POST", "/predict", *head) + body])
        if not answer.startswith(b"HTTP/1.1 "):
            raise AssertionError(f"/predict: {answer[:80]!r}")
        return int(answer[9:12]), answer.partition(b"\r\n\r\n")[2].decode()

    def once(self) -> tuple[int, str]:
        """Return the answer to a picture, and end the service."""
        answer = self.predict()
        self.process.kill()
        self.process.wait()
        return answer

    def check(self) -> None:
        """Check that it answers, and has not taken too much memory.

        Raises
        ------
        AssertionError
            If it has ended, gives a wrong answer, or takes more than 1 GiB.
        """
        if self.process.poll() is not None:
            raise AssertionError(f"the service ended with {self.process.returncode}")
        self.health_seconds()
        status, text = self.predict()
        if status != 200 or "label" not in json.loads(text):
            raise AssertionError(f"/predict: {status} {text[:80]}")
        if (taken := self.memory()) > _MEMORY:
            raise AssertionError(f"the service takes {taken >> 20} MiB")

    def memory(self) -> int:
        """Return the resident bytes of the process."""
        pages = Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]
        return int(pages) * resource.getpagesize()

    def n_open(self) -> int:
        """Return how many files and connections it has open."""
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))


def _close_half(connection: socket.socket) -> None:
    try:
        connection.shutdown(socket.SHUT_WR)
    except OSError as error:
        # The other side may have closed all of it.
        if error.errno != errno.ENOTCONN:
            raise


@cache
def picture() -> bytes:
    """Return a PNG of 8×8 pixels."""
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(np.arange(64, dtype=np.uint8).reshape(8, 8)).save(file, "png")
    return file.getvalue()


def request(method: str, path: str, *headers: str) -> bytes:
    """Return the head of a request."""
    return "\r\n".join([f"{method} {path} HTTP/1.1", "Host: localhost", *headers, "", ""]).encode()
