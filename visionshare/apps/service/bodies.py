"""The body of a request: read within limits, and what is in it."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import AsyncGenerator
from typing import Any

import numpy as np
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import ClientDisconnect, Request

from visionshare.apps.service.limits import Limits

__all__ = ["Refusal", "pixels_of", "read_body"]


class Refusal(Exception):
    """A request that is not served.

    Parameters
    ----------
    status : int
        Of HTTP.
    kind : str
        A word that programs can compare.
    message : str
        A sentence for people.
    """

    def __init__(self, status: int, kind: str, message: str) -> None:
        super().__init__(message)
        self.status, self.kind, self.message = status, kind, message


async def read_body(request: Request, limits: Limits) -> tuple[str, bytes]:
    """Return what a body holds, ``"picture"`` or ``"json"``, and its bytes.

    Raises
    ------
    Refusal
        If it is too large, too slow, empty, or of a kind that is not served.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    form, text = kind == "multipart/form-data", kind == "application/json"
    if not (form or text or kind.startswith("image/") or kind == "application/octet-stream"):
        known = "image/*, application/octet-stream, multipart/form-data or application/json"
        raise Refusal(415, "unknown_type", f"content-type {kind[:80]!r}; accepted: {known}")
    try:
        body = await asyncio.wait_for(_received(request, limits.body), limits.seconds)
    except asyncio.TimeoutError:
        message = f"the body did not arrive within {limits.seconds:g} seconds"
        raise Refusal(408, "too_slow", message) from None
    except ClientDisconnect:
        raise Refusal(400, "broken_off", "the body ended early") from None
    if form:
        body = await _file(request, body)
    if not body:
        raise Refusal(422, "empty", "no picture in the request")
    return "json" if text else "picture", body


async def _received(request: Request, most: int) -> bytes:
    """Return the body; a size that is said beforehand is looked at, but not relied upon."""
    refusal = Refusal(413, "too_large", f"the body has more than {most} bytes")
    said = request.headers.get("content-length", "")
    if said.isascii() and said.isdigit() and (len(said) > 18 or int(said) > most):
        raise refusal
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > most:
            raise refusal
        parts.append(part)
    return b"".join(parts)


async def _file(request: Request, body: bytes) -> bytes:
    """Return the one file of a form."""

    async def whole() -> AsyncGenerator[bytes, None]:
        yield body

    # Read whole already: what limits the body limits each part.
    parser = MultiPartParser(request.headers, whole(), max_files=1, max_fields=8)
    try:
        form = await parser.parse()
    except (MultiPartException, KeyError, ValueError) as error:
        # It closes what it opened for its own kind of error alone.
        for file in parser._files_to_close_on_error:
            file.close()
        line = " ".join(str(error).split())
        raise Refusal(422, "bad_form", f"not a sound form ({line})") from None
    try:
        files = [value for _, value in form.multi_items() if not isinstance(value, str)]
        return await files[0].read() if files else b""
    finally:
        await form.close()


def pixels_of(body: bytes, shape: tuple[int, ...]) -> np.ndarray:
    """Return the image of ``{"pixels": …}``, already prepared as the classifier takes it.

    Pixels of images are whole numbers from 0 to 255; vectors are any finite numbers.

    Raises
    ------
    Refusal
        If it is no such JSON.

    Examples
    --------
    >>> pixels_of(b'{"pixels": [[0, 255]]}', (1, 2))
    array([[  0, 255]], dtype=uint8)
    """
    accepted = f"one table with pixels: numbers in lists of shape {list(shape)}"
    refusal = Refusal(422, "bad_pixels", f"accepted: {accepted}")
    try:
        held: Any = json.loads(body)
    except (ValueError, RecursionError):
        raise refusal from None
    if not isinstance(held, dict) or set(held) != {"pixels"}:
        raise refusal
    flat: list[Any] = [held["pixels"]]
    for side in shape:
        if not all(isinstance(part, list) and len(part) == side for part in flat):
            raise refusal
        flat = [value for part in flat for value in part]
    if len(shape) == 1:
        numbers = [v for v in flat if type(v) in (int, float) and math.isfinite(v)]
        if len(numbers) < len(flat) or any(abs(v) > 1e30 for v in numbers):
            raise refusal
        return np.array(numbers, np.float32)
    if not all(type(v) is int and 0 <= v <= 255 for v in flat):
        raise refusal
    return np.array(flat, np.uint8).reshape(shape)
