"""Requests with faults over a socket: wrong lines, headers, lengths and chunks."""

from __future__ import annotations

import itertools
from functools import cache
from pathlib import Path

import numpy as np

from scripts.attack.damage import Inputs, mutated
from scripts.attack.requests import mutated_request, request_seeds
from scripts.attack.serving import Served
from visionshare.errors import VisionshareError

__all__ = ["SOCKETS"]

_SAMPLE = Path(__file__).parents[2] / "tests" / "archives" / "digits-v1.safetensors"
_METHODS = ("POST",) * 8 + ("GET", "HEAD", "PUT", "OPTIONS", "CONNECT", "post", "", "A" * 300)
_PATHS = ("/predict",) * 6 + (
    "/", "/health", "/metrics", "*", "",
    "http://localhost/predict", "//predict", "/predict?raster=true", "/%00", "/" + "a" * 20_000,
)  # fmt: skip
_VERSIONS = ("HTTP/1.1",) * 8 + ("HTTP/1.0", "HTTP/2.0", "HTTP/0.9", "", "HTTP/1.1 x")
_HOSTS = ("localhost",) * 6 + ("127.0.0.1", "evil.example", "", "a b", "[::1", "localhost:99999")
_LENGTHS = ("0", "1", "-1", "+3", "3, 3", "9" * 30, "0x10", "1e3", " ", "\xff", "99999999")
_ENCODINGS = ("chunked", "gzip, chunked", "chunked, chunked", "identity", "xchunked", "")
_OTHERS = (
    "X-A: 1\r\n 2", "X-A: 1\nX-B: 2", "X-A : 1", ": 1", "X-A", "X-A: " + "a" * 20_000,
    "Expect: 100-continue", "Expect: x", "Upgrade: websocket", "Connection: Upgrade",
    "Cookie: \x00", "Content-Encoding: gzip", "Origin: null", "Range: bytes=0-", "Host: other",
)  # fmt: skip
_SIZES = (b"-1", b"", b"f" * 17, b"0x5", b"5;a=\xff", b"g", b"00", b" 5", b"7" * 999)
_ENDS = (b"0\r\n\r\n",) * 4 + (
    b"", b"0\r\nX-A: 1\r\n\r\n", b"0\n\n", b"0\r\nContent-Length: 5\r\n\r\n",
)  # fmt: skip
_CHECKED_EVERY = 50
# Seconds without a word after which a request is taken for unfinished: half-closed clients get
# no answer.
_PATIENCE = 0.1


@cache
def _served() -> Served:
    return Served(_SAMPLE, "--header-timeout", "2", "--body-timeout", "2", "--jobs", "2")


_count = itertools.count(1)


def mutated_bytes(seeds: list[bytes], rng: np.random.Generator) -> bytes:
    """Return what a client sends on one connection."""
    sent = b"".join(_one_request(seeds, rng) for _ in range(rng.choice([1, 1, 1, 2, 3])))
    return mutated(sent, rng) if rng.random() < 0.3 else sent


def _one_request(seeds: list[bytes], rng: np.random.Generator) -> bytes:
    def one(values: tuple[str, ...]) -> str:
        return values[rng.integers(0, len(values))]

    kind, _, body = mutated_request(seeds, rng).partition(b"\n")
    body = body[: 1 << 18]
    headers = [f"Host: {one(_HOSTS)}", f"Content-Type: {kind.decode('latin-1')}"]
    framing = rng.random()
    if framing < 0.5:
        headers.append(f"Content-Length: {len(body)}")
    elif framing < 0.7:
        headers.append("Transfer-Encoding: chunked")
        body = _chunked(body, rng)
    elif framing < 0.85:
        headers.append(f"Content-Length: {one(_LENGTHS)}")
    if rng.random() < 0.1:
        headers.append(f"Transfer-Encoding: {one(_ENCODINGS)}")
    if rng.random() < 0.3:
        headers.append(one(_OTHERS))
    if rng.random() < 0.02:
        headers += [f"X-{number}: 1" for number in range(int(rng.choice([50, 500, 3000])))]
    line = f"{one(_METHODS)} {one(_PATHS)} {one(_VERSIONS)}"
    return "\r\n".join([line, *headers, "", ""]).encode("latin-1", "replace") + body


def _chunked(body: bytes, rng: np.random.Generator) -> bytes:
    """Return a body in chunks, the size of one of which may be wrong."""
    n = int(rng.integers(1, 6))
    step = max(1, -(-len(body) // n))
    parts = [body[i : i + step] for i in range(0, len(body), step)]
    sizes = [b"%x" % len(part) for part in parts]
    if parts and rng.random() < 0.5:
        sizes[rng.integers(0, len(sizes))] = _SIZES[rng.integers(0, len(_SIZES))]
    chunks = [b"%s\r\n%s\r\n" % pair for pair in zip(sizes, parts, strict=True)]
    return b"".join([*chunks, _ENDS[rng.integers(0, len(_ENDS))]])


def use_bytes(content: bytes, rng: np.random.Generator) -> None:
    """Send bytes in some parts, read what is answered, and close the sending half."""
    served = _served()
    cuts = sorted(int(cut) for cut in rng.integers(0, len(content) + 1, rng.integers(0, 3)))
    parts = [content[i:j] for i, j in itertools.pairwise([0, *cuts, len(content)])]
    if rng.random() < 0.05:
        # Gone before the answer.
        with served.connect() as connection:
            connection.sendall(parts[0])
        answer = b""
    else:
        answer = served.say(parts, _PATIENCE)
    if next(_count) % _CHECKED_EVERY == 0:
        served.check()
    if served.process.poll() is not None:
        raise AssertionError(f"the service ended with {served.process.returncode}")
    if not answer:
        return
    line = answer.partition(b"\r\n")[0]
    if not line.startswith((b"HTTP/1.1 ", b"HTTP/1.0 ")) or not line[9:12].isdigit():
        raise AssertionError(f"an answer that is none: {answer[:80]!r}")
    status = int(line[9:12])
    if status >= 500 and status not in (501, 503, 505):
        raise AssertionError(f"status {status}: {answer[-80:]!r}")
    if status >= 400:
        raise VisionshareError(f"status {status}")


SOCKETS = Inputs(request_seeds, mutated_bytes, use_bytes)
