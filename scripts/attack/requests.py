"""Requests to the service with faults."""

from __future__ import annotations

import asyncio
import json
from functools import cache
from typing import Any

import numpy as np

from scripts.attack.classifiers import change_json, small_model
from scripts.attack.damage import Inputs, mutated
from scripts.attack.images import image_seeds
from visionshare.errors import VisionshareError


@cache
def request_seeds() -> list[bytes]:
    """Return bodies with their content type, a line before each."""
    picture = image_seeds()
    edge = b"multipart/form-data; boundary=edge\n"
    form = (
        b'--edge\r\nContent-Disposition: form-data; name="file"; filename="a.png"\r\n'
        b"Content-Type: image/png\r\n\r\n" + picture[0] + b"\r\n--edge--\r\n"
    )
    pixels = json.dumps({"pixels": [[7] * 8] * 8}).encode()
    return [
        *(b"image/png\n" + body for body in picture[:16]),
        b"application/octet-stream\n" + picture[2],
        edge + form,
        edge + form.replace(b"a.png", b"b.png"),
        b"application/json\n" + pixels,
        b"application/json\n" + pixels,
    ]


def mutated_request(seeds: list[bytes], rng: np.random.Generator) -> bytes:
    """Return a content type and a body, damaged."""
    request = seeds[rng.integers(0, len(seeds))]
    kind, _, body = request.partition(b"\n")
    if rng.random() < 0.1:
        kind = mutated(kind, rng)
    if kind == b"application/json" and rng.random() < 0.5:
        said = json.loads(body)
        change_json(said, rng)
        body = json.dumps(said).encode()
    elif rng.random() < 0.02:
        body = bytes(1 << 21)
    else:
        body = mutated(body, rng)
    return kind.replace(b"\n", b"") + b"\n" + body


@cache
def _service() -> tuple[Any, Any]:
    from visionshare import PatchTemplates
    from visionshare.datasets import load_dataset
    from visionshare.service import Limits, service

    images = load_dataset("digits", "train").images[:60]
    family = PatchTemplates(3, 6, 2, (2.0,), n_patches=200).fit(images).take(np.arange(6))
    loop = asyncio.new_event_loop()
    return service(small_model(family, 0), Limits(max_body_size=1 << 20, max_pixels=1 << 22)), loop


def use_request(content: bytes, rng: np.random.Generator) -> None:
    """Send a request; a refusal that is typed JSON is a typed error."""
    app, loop = _service()
    kind, _, body = content.partition(b"\n")
    method = rng.choice(["POST"] * 8 + ["GET", "PUT"])
    path = rng.choice(["/predict"] * 8 + ["/", "/health", "/metrics", "/%00", "/predict/"])
    query = [b"", b"raster=true", b"raster=%ff", b"=&&="][rng.integers(0, 4)]
    headers = [(b"content-type", kind)]
    if rng.random() < 0.5:
        said = [str(len(body)).encode(), b"5", b"-1", b"9" * 40, b"\xff"][rng.integers(0, 5)]
        headers.append((b"content-length", said))
    scope = {
        "type": "http", "method": str(method), "path": str(path), "query_string": query,
        "headers": headers, "http_version": "1.1", "scheme": "http", "server": ("here", 80),
        "client": ("there", 1), "root_path": "", "asgi": {"version": "3.0"},
    }  # fmt: skip
    status, answer = loop.run_until_complete(_answer(app, scope, body, rng))
    if status >= 500:
        raise AssertionError(f"status {status}: {answer[:80]!r}")
    if status >= 400:
        error = json.loads(answer)["error"]
        raise VisionshareError(f"{error['kind']}: {error['message']}")
    if status >= 300 or (str(path) == "/predict" and "label" not in json.loads(answer)):
        if status in (307, 308):
            return
        raise AssertionError(f"status {status}: {answer[:80]!r}")


async def _answer(
    app: Any, scope: dict[str, Any], body: bytes, rng: np.random.Generator
) -> tuple[int, bytes]:
    size = int(rng.choice([7, 1000, 1 << 16, 1 << 22]))
    size = max(size, len(body) // 200)
    parts = [body[i : i + size] for i in range(0, len(body), size)] or [b""]
    broken_off = rng.random() < 0.05
    said: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        if broken_off and len(parts) == 1:
            return {"type": "http.disconnect"}
        part = parts.pop(0) if parts else b""
        return {"type": "http.request", "body": part, "more_body": bool(parts)}

    async def send(message: dict[str, Any]) -> None:
        said.append(message)

    await app(scope, receive, send)
    return said[0]["status"], b"".join(m.get("body", b"") for m in said[1:])


REQUESTS = Inputs(request_seeds, mutated_request, use_request)
