"""Bodies of HTTP requests that are expensive for their size: JSON, forms, pictures."""

from __future__ import annotations

import asyncio
import json
from functools import cache
from typing import Any

import numpy as np

from scripts.attack.classifiers import small_model
from scripts.attack.costs.costly import Builder, Costly, repeated
from scripts.attack.costs.pictures import PICTURE
from scripts.attack.requests import request_seeds
from visionshare.errors import VisionshareError

__all__ = ["BODIES"]

# A request is its content type, a line's end, and its body.
_JSON = b"application/json\n"
_FORM = b"multipart/form-data; boundary=e\n"
_PART = b'--e\r\nContent-Disposition: form-data; name="a"\r\n\r\nb\r\n'
_FILE = b'--e\r\nContent-Disposition: form-data; name="a"; filename="b"\r\n'


def _body(start: bytes, part: bytes, end: bytes = b"") -> Builder:
    return lambda size, rng: start + repeated(part, size - 1000) + end


def _picture(case: str) -> Builder:
    return lambda size, rng: b"image/png\n" + PICTURE.builders[case](size - 1000, rng)


@cache
def _service() -> tuple[Any, Any]:
    from visionshare import PatchTemplates
    from visionshare.datasets import load_dataset
    from visionshare.service import Limits, service

    images = load_dataset("digits", "train").images[:60]
    family = PatchTemplates(3, 6, 2, (2.0,), n_patches=200).fit(images).take(np.arange(6))
    return service(small_model(family, 0), Limits()), asyncio.new_event_loop()


def _ask(content: bytes) -> int:
    app, loop = _service()
    kind, _, body = content.partition(b"\n")
    scope = {
        "type": "http", "method": "POST", "path": "/predict", "query_string": b"",
        "headers": [(b"content-type", kind), (b"content-length", str(len(body)).encode())],
        "http_version": "1.1", "scheme": "http", "server": ("here", 80), "client": ("there", 1),
        "root_path": "", "asgi": {"version": "3.0"},
    }  # fmt: skip
    status, answer = loop.run_until_complete(_answer(app, scope, body))
    if status >= 500:
        raise AssertionError(f"status {status}: {answer[:80]!r}")
    if status >= 400:
        raise VisionshareError(str(json.loads(answer)["error"]))
    return 0


async def _answer(app: Any, scope: dict[str, Any], body: bytes) -> tuple[int, bytes]:
    """Send a body in parts of 64 KiB, as servers do."""
    parts = [body[i : i + (1 << 16)] for i in range(0, len(body), 1 << 16)] or [b""]
    said: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        part = parts.pop(0) if parts else b""
        return {"type": "http.request", "body": part, "more_body": bool(parts)}

    async def send(message: dict[str, Any]) -> None:
        said.append(message)

    await app(scope, receive, send)
    return said[0]["status"], b"".join(m.get("body", b"") for m in said[1:])


BODIES = Costly(
    {
        "numbers": _body(_JSON + b'{"pixels": [', b"1,", b"1]}"),
        "floats": _body(_JSON + b'{"pixels": [', b"1.5,", b"1]}"),
        "lists": _body(_JSON + b'{"pixels": [', b"[],", b"1]}"),
        "brackets": _body(_JSON, b"["),
        "objects": _body(_JSON, b'{"a":'),
        "blanks": _body(_JSON + b'{"pixels": ', b" ", b"1}"),
        "digits": _body(_JSON + b'{"pixels": [', b"1", b"]}"),
        "escapes": _body(_JSON + b'{"', b"\\u0041", b'": 1}'),
        "parts": _body(_FORM, _PART, b"--e--\r\n"),
        "headers of a part": _body(_FORM + b"--e\r\n", b"a: b\r\n", b"\r\nb\r\n--e--\r\n"),
        "a header of a part": _body(_FORM + b"--e\r\na: ", b"b", b"\r\n\r\nb\r\n--e--\r\n"),
        "almost a boundary": _body(_FORM + _FILE + b"\r\n", b"\r\n--", b"\r\n--e--\r\n"),
        "line ends": _body(_FORM + _FILE + b"\r\n", b"\r\n", b"\r\n--e--\r\n"),
        "before the boundary": _body(_FORM, b"--"),
        "a file": _body(_FORM + _FILE + b"\r\n", b"a", b"\r\n--e--\r\n"),
        "JPEG, Exif segments": _picture("JPEG, Exif segments"),
        "PNG, one column": _picture("PNG, one column"),
        "PPM, comments": _picture("PPM, comments"),
    },
    request_seeds,
    _ask,
)
