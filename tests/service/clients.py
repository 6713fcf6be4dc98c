"""The service as its own process, and requests to it."""

import asyncio
import contextlib
import io
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx
import numpy as np
from PIL import Image

SAMPLE = str(Path(__file__).parents[1] / "archives" / "digits-v1.safetensors")


class Server:
    """The command in a process of its own."""

    def __init__(self, *options, path=SAMPLE):
        command = [sys.executable, "-m", "visionshare.cli", "serve", str(path), "--port", "0"]
        self.process = subprocess.Popen(
            [*command, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self.url = self.process.stdout.readline().split()[1]
        self.port = int(self.url.rsplit(":", 1)[1].strip("/"))
        with self.client() as client:
            assert client.get("/health").status_code == 200

    def client(self, **options):
        return httpx.Client(base_url=self.url, trust_env=False, timeout=60, **options)

    def connect(self):
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=60)
        connection.settimeout(60)
        return connection

    def say(self, request):
        """Return all that the service answers to some bytes, until it closes."""
        with self.connect() as connection:
            connection.sendall(request)
            answer = b""
            with contextlib.suppress(ConnectionResetError):
                while part := connection.recv(1 << 16):
                    answer += part
            return answer

    def memory(self):
        """Return the resident bytes of the process."""
        pages = Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")

    def check_others(self):
        """Check that others, each on a new connection, are told of its health, and served."""
        for _ in range(10):
            answer = self.say(request("GET", "/health", "Connection: close"))
            assert answer.startswith(b"HTTP/1.1 200"), answer[:200]
        with self.client() as client:
            answer = client.post("/predict", content=png(), headers={"Content-Type": "image/png"})
            assert answer.status_code == 200, answer.text

    def end(self):
        self.process.send_signal(signal.SIGINT)
        out, err = self.process.communicate(timeout=60)
        assert (self.process.returncode, out, err) == (0, "", "")


def png():
    file = io.BytesIO()
    Image.fromarray(np.zeros((8, 8), np.uint8)).save(file, "png")
    return file.getvalue()


def request(method, path, *headers, body=b"", host="localhost"):
    lines = [f"{method} {path} HTTP/1.1", f"Host: {host}", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


def ask(app, *requests):
    """Return the answers of an application to requests, one after the other."""

    async def asked():
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://here") as client:
            return [await client.request(**request) for request in requests]

    return asyncio.run(asked())


def get(path):
    return {"method": "GET", "url": path}
