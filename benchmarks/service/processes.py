"""The servers that are measured, each a process of its own."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

__all__ = ["Server", "echo", "request", "service", "train_digits"]

HOST = "127.0.0.1"


class Server(NamedTuple):
    """A process that listens on a port of this machine."""

    process: subprocess.Popen[str]
    port: int

    def memory(self, kind: str = "VmRSS") -> float:
        """Return a size of the process in MiB, as Linux names it.

        ``VmRSS`` is what is resident, ``RssAnon`` of that what stands in no file, ``VmHWM`` the
        largest resident size since the last reset.
        """
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        size = next(line for line in lines if line.startswith(kind + ":"))
        return round(int(size.split()[1]) / 1024, 1)

    def reset_peak(self) -> None:
        """Begin to look for the largest resident size anew."""
        Path(f"/proc/{self.process.pid}/clear_refs").write_text("5")

    def connect(self, timeout: float = 60.0) -> socket.socket:
        """Return a new connection."""
        return socket.create_connection((HOST, self.port), timeout)


def request(method: str, path: str, *headers: str, body: bytes | None = None) -> bytes:
    """Return the bytes of a request."""
    length = () if body is None else (f"Content-Length: {len(body)}",)
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost", *headers, *length, "", ""]
    return "\r\n".join(lines).encode() + (body or b"")


@contextmanager
def service(classifier: Path, *options: str) -> Iterator[Server]:
    """Serve a classifier with the command."""
    command = ["visionshare.cli", "serve", str(classifier), "--port", "0", *options]
    with _started(command) as process:
        assert process.stdout is not None
        port = int(process.stdout.readline().split()[1].rsplit(":", 1)[1].strip("/"))
        yield _ready(Server(process, port))


@contextmanager
def echo() -> Iterator[Server]:
    """Serve the plain echo."""
    with socket.create_server((HOST, 0)) as free:
        port = free.getsockname()[1]
    with _started(["benchmarks.service.echo", str(port)]) as process:
        yield _ready(Server(process, port))


def train_digits(folder: Path) -> Path:
    """Return the classifier of the bundled recipe of digits, trained in half a minute."""
    command = ["visionshare.cli", "train", "digits", "--out", str(folder)]
    subprocess.run([sys.executable, "-m", *command], check=True, stdout=subprocess.DEVNULL)
    return folder / "classifier.safetensors"


@contextmanager
def _started(command: Sequence[str]) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", *command]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()


def _ready(server: Server, seconds: float = 60.0) -> Server:
    """Return the server once it answers."""
    end = time.monotonic() + seconds
    while server.process.poll() is None and time.monotonic() < end:
        try:
            with server.connect(5) as connection:
                connection.sendall(request("GET", "/health", "Connection: close"))
                if connection.recv(1 << 16).startswith(b"HTTP/1.1 200"):
                    return server
        except OSError:
            pass
        time.sleep(0.05)
    raise SystemExit("benchmarks.service: a server does not answer")
