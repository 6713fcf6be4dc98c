"""The body of a request: read within limits, and decoded."""

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
        HTTP status.
    kind : str
        A word that programs can compare.
    message : str
        A sentence for people.

    Examples
    --------
    >>> Refusal(503, "busy", "too many pictures are waiting; try again").status
    503
    """

    def __init__(self, status: int, kind: str, message: str) -> None:
        super().__init__(message)
        self.status, self.kind, self.message = status, kind, message


async def read_body(request: Request, limits: Limits) -> tuple[str, bytes]:
    """Return the kind of a body, ``"picture"`` or ``"json"``, and its bytes.

    Parameters
    ----------
    request : Request
    limits : Limits

    Raises
    ------
    Refusal
        If it is too large, too slow, incomplete, empty, or of an unsupported type.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    is_form, is_json = kind == "multipart/form-data", kind == "application/json"
    if not (is_form or is_json or kind.startswith("image/") or kind == "application/octet-stream"):
        accepted = "image/*, application/octet-stream, multipart/form-data or application/json"
        raise Refusal(415, "unsupported_type", f"content-type {kind[:80]!r}; accepted: {accepted}")
    try:
        body = await asyncio.wait_for(_receive(request, limits.max_body_size), limits.body_timeout)
    except asyncio.TimeoutError:
        message = f"the body did not arrive within {limits.body_timeout:g} seconds"
        raise Refusal(408, "body_timeout", message) from None
    except ClientDisconnect:
        raise Refusal(400, "incomplete_body", "the body ended early") from None
    if is_form:
        body = await _file(request, body)
    if not body:
        raise Refusal(422, "empty_body", "no picture in the request")
    return "json" if is_json else "picture", body


async def _receive(request: Request, max_bytes: int) -> bytes:
    """Return the body; its declared length may refuse it, but is not relied upon."""
    refusal = Refusal(413, "body_too_large", f"the body has more than {max_bytes} bytes")
    declared = request.headers.get("content-length", "")
    is_number = declared.isascii() and declared.isdigit()
    if is_number and (len(declared) > 18 or int(declared) > max_bytes):
        raise refusal
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > max_bytes:
            raise refusal
        parts.append(part)
    return b"".join(parts)


async def _file(request: Request, body: bytes) -> bytes:
    """Return the one file of a form."""

    async def chunks() -> AsyncGenerator[bytes, None]:
        yield body

    # Received already: what limits the body limits each part.
    parser = MultiPartParser(request.headers, chunks(), max_files=1, max_fields=8)
    try:
        form = await parser.parse()
    except (MultiPartException, KeyError, ValueError) as error:
        # It closes its files after MultiPartException alone.
        for file in parser._files_to_close_on_error:
            file.close()
        line = " ".join(str(error).split())
        raise Refusal(422, "invalid_form", f"invalid form ({line})") from None
    try:
        files = [value for _, value in form.multi_items() if not isinstance(value, str)]
        return await files[0].read() if files else b""
    finally:
        await form.close()


def pixels_of(body: bytes, shape: tuple[int, ...]) -> np.ndarray:
    """Return the image of ``{"pixels": …}``, which is not preprocessed.

    Pixels of images are integers from 0 to 255; vectors are any finite numbers.

    Parameters
    ----------
    body : bytes
    shape : tuple of int
        Of the classifier's images.

    Raises
    ------
    Refusal
        If it is no such JSON, or of another shape.

    Examples
    --------
    >>> pixels_of(b'{"pixels": [[0, 255]]}', (1, 2))
    array([[  0, 255]], dtype=uint8)
    """
    accepted = f"an object with pixels: numbers in lists of shape {list(shape)}"
    refusal = Refusal(422, "invalid_pixels", f"accepted: {accepted}")
    try:
        content: Any = json.loads(body)
    except (ValueError, RecursionError):
        raise refusal from None
    if not isinstance(content, dict) or set(content) != {"pixels"}:
        raise refusal
    flat: list[Any] = [content["pixels"]]
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
