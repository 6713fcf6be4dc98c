"""Bodies of requests: received within limits of size, time and memory, and decoded."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager

import numpy as np
from starlette.datastructures import Headers
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import Request

# Each part costs some 50 microseconds: beyond so many, they must have this size on average.
_FREE_PARTS = 1024
_PART = 512


class Refusal(Exception):
    """A request that is not served: a status, a word for programs and a sentence for people."""

    def __init__(self, status: int, kind: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.kind = kind
        self.message = message


class Bodies:
    """Receives bodies, which have at most so many bytes in memory together.

    Where another one does not fit, the body that began to arrive first is refused: the slowest
    clients lose, not the newest.
    """

    def __init__(self, max_memory: int, max_arriving: int) -> None:
        self.used = 0
        self._max_memory = max_memory
        self._max_arriving = max_arriving
        # The tasks that receive them and what came, in the order in which they began.
        self._arriving: dict[asyncio.Task[None], bytearray] = {}

    @asynccontextmanager
    async def receive(
        self, request: Request, max_bytes: int, timeout: float
    ) -> AsyncIterator[bytes]:
        """Receive the body of a request, which counts until the block ends."""
        content = bytearray()
        task = asyncio.ensure_future(self._fill(content, request, max_bytes))
        self._arriving[task] = content
        if len(self._arriving) > self._max_arriving:
            self._refuse_oldest()
        try:
            try:
                await asyncio.wait({task}, timeout=timeout)
                if task.cancelled():
                    raise _crowded()
                if not task.done():
                    message = f"the body did not arrive within {timeout:g} seconds"
                    raise Refusal(408, "body_timeout", message)
                task.result()
            finally:
                task.cancel()
                self._arriving.pop(task, None)
                # It knows the exception, whose frames know it: as long as one of them is kept,
                # the server keeps the connection.
                del task
            request.state.is_read = True
            yield bytes(content)
        finally:
            self._forget(content)

    async def _fill(self, content: bytearray, request: Request, max_bytes: int) -> None:
        """Take the parts; the declared length may refuse the body, but is not relied upon."""
        length = request.headers.get("content-length", "")
        declared = int(length) if length.isdecimal() and len(length) <= 18 else None
        if length and (declared is None or declared > max_bytes):
            raise _too_large(max_bytes)
        n_parts = 0
        # Once it has its length, the server need not be asked for an end.
        while len(content) != declared:
            message = await request.receive()
            if message["type"] == "http.disconnect":
                raise Refusal(400, "incomplete_body", "the body ended early")
            part = message.get("body", b"")
            n_parts += 1
            size = len(content) + len(part)
            if size > max_bytes:
                raise _too_large(max_bytes)
            if n_parts > _FREE_PARTS + size // _PART:
                raise Refusal(400, "small_chunks", f"chunks of fewer than {_PART} bytes: too many")
            while self.used + len(part) > self._max_memory:
                if next(iter(self._arriving.values())) is content:
                    raise _crowded()
                self._refuse_oldest()
            self.used += len(part)
            content += part
            if not message.get("more_body", False):
                break

    def _refuse_oldest(self) -> None:
        task = next(iter(self._arriving))
        self._forget(self._arriving.pop(task))
        task.cancel()

    def _forget(self, content: bytearray) -> None:
        self.used -= len(content)
        content.clear()


def _too_large(max_bytes: int) -> Refusal:
    return Refusal(413, "body_too_large", f"the body has more than {max_bytes} bytes")


def _crowded() -> Refusal:
    return Refusal(503, "busy", "too many bodies are arriving; try again")


def body_kind(headers: Mapping[str, str]) -> str:
    """Return how a body is read, "picture", "form" or "json", by its content type."""
    name = headers.get("content-type", "").partition(";")[0].strip().lower()
    if name == "multipart/form-data":
        return "form"
    if name == "application/json":
        return "json"
    if name.startswith("image/") or name == "application/octet-stream":
        return "picture"
    accepted = "image/*, application/octet-stream, multipart/form-data or application/json"
    raise Refusal(415, "unsupported_type", f"content-type {name[:80]!r}; accepted: {accepted}")


def file_of(headers: Mapping[str, str], body: bytes) -> bytes:
    """Return the one file of a form; runs on a thread, since parsing may take long."""
    return asyncio.run(_file_of(Headers(headers), body))


async def _file_of(headers: Headers, body: bytes) -> bytes:
    async def chunks() -> AsyncGenerator[bytes, None]:
        yield body

    # Received already: what limits the body limits each part.
    parser = MultiPartParser(headers, chunks(), max_files=1, max_fields=8)
    # Nothing goes to the disk.
    parser.spool_max_size = len(body) + 1
    try:
        form = await parser.parse()
    except (MultiPartException, KeyError, ValueError) as error:
        line = " ".join(str(error).split())
        raise Refusal(422, "invalid_form", f"invalid form ({line})") from None
    try:
        files = [value for _, value in form.multi_items() if not isinstance(value, str)]
        return await files[0].read() if files else b""
    finally:
        await form.close()


def pixels_of(body: bytes, shape: tuple[int, ...]) -> np.ndarray:
    """Return the image of ``{"pixels": …}``, not preprocessed: uint8, float32 of vectors."""
    accepted = f"an object with pixels: numbers in lists of shape {list(shape)}"
    refusal = Refusal(422, "invalid_pixels", f"accepted: {accepted}")
    # Brackets and commas are counted before anything is parsed: a parser makes an object of each.
    n_lists = sum(math.prod(shape[:i]) for i in range(len(shape)))
    limits = {b"[": n_lists, b"{": 1, b",": math.prod(shape) + n_lists + 1}
    if any(body.count(character) > most for character, most in limits.items()):
        raise refusal
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        raise refusal from None
    if not isinstance(content, dict) or set(content) != {"pixels"}:
        raise refusal
    values = [content["pixels"]]
    for side in shape:
        if not all(isinstance(part, list) and len(part) == side for part in values):
            raise refusal
        values = [value for part in values for value in part]
    if len(shape) == 1:
        valid = all(type(value) in (int, float) and abs(value) <= 1e30 for value in values)
    else:
        valid = all(type(value) is int and 0 <= value <= 255 for value in values)
    if not valid:
        raise refusal
    return np.array(values, np.float32 if len(shape) == 1 else np.uint8).reshape(shape)
