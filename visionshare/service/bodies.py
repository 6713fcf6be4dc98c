"""The body of a request: read within limits, and decoded."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import AsyncGenerator, Mapping
from typing import Any

import numpy as np
from starlette.datastructures import Headers
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import ClientDisconnect, Request

__all__ = [
    "Body", "BodyMemory", "Refusal", "body_kind", "empty_body", "file_of", "numbers_of",
    "parse_json", "pixels_of",
]  # fmt: skip


# Each part costs some 50 microseconds: beyond so many, they must have this size on average.
_FREE_PARTS, _PART = 1024, 512


class Refusal(Exception):
    """A request that is not served."""

    def __init__(self, status: int, kind: str, message: str) -> None:
        super().__init__(message)
        self.status, self.kind, self.message = status, kind, message


class BodyMemory:
    """The bodies that a service has in memory: their bytes, and how many are arriving."""

    def __init__(self, size: int, n_arriving: int = 1024) -> None:
        self.size, self.used = size, 0
        self._n_arriving = n_arriving
        # In the order in which they began.
        self._arriving: dict[Body, None] = {}

    def begin(self, body: Body) -> None:
        """Note a body that begins to arrive."""
        self._arriving[body] = None
        if len(self._arriving) > self._n_arriving:
            self._refuse_oldest()

    def end(self, body: Body) -> None:
        """Note that a body has arrived, or will not."""
        self._arriving.pop(body, None)

    def take(self, n_bytes: int, body: Body) -> None:
        """Count bytes of a body."""
        while self.used + n_bytes > self.size:
            if next(iter(self._arriving), body) is body:
                raise _crowded()
            self._refuse_oldest()
        self.used += n_bytes

    def release(self, n_bytes: int) -> None:
        """Forget bytes of a body."""
        self.used -= n_bytes

    def _refuse_oldest(self) -> None:
        oldest = next(iter(self._arriving))
        self.end(oldest)
        oldest.evict()


class Body:
    """One request's body; a context in which its bytes are counted."""

    def __init__(self, memory: BodyMemory) -> None:
        self._memory = memory
        self._content = bytearray()
        self._counted = 0
        self._task: asyncio.Task[None] | None = None
        self._evicted = False

    def __enter__(self) -> Body:
        self._memory.begin(self)
        return self

    def __exit__(self, *_: object) -> None:
        self._memory.end(self)
        self._drop()

    def append(self, part: bytes) -> None:
        """Add a part that arrived."""
        self._memory.take(len(part), self)
        self._counted += len(part)
        self._content += part

    def evict(self) -> None:
        """Give the memory back, and end the reading."""
        self._evicted = True
        self._drop()
        if self._task is not None:
            self._task.cancel()

    async def read(self, request: Request, max_bytes: int, timeout: float) -> bytes:
        """Return the bytes of a request's body, which must arrive within a time."""
        self._task = asyncio.ensure_future(self._receive(request, max_bytes))
        try:
            await asyncio.wait({self._task}, timeout=timeout)
            if self._evicted:
                raise _crowded()
            if not self._task.done():
                message = f"the body did not arrive within {timeout:g} seconds"
                raise Refusal(408, "body_timeout", message)
            self._task.result()
        except ClientDisconnect:
            raise Refusal(400, "incomplete_body", "the body ended early") from None
        finally:
            self._task.cancel()
            # It knows the exception, whose frames know this body: as long as one of them is kept,
            # the server keeps the connection.
            self._task = None
            self._memory.end(self)
        request.state.is_read = True
        content, self._content = bytes(self._content), bytearray()
        return content

    async def _receive(self, request: Request, max_bytes: int) -> None:
        """Take the parts; the declared length may refuse the body, but is not relied upon."""
        declared = request.headers.get("content-length", "")
        is_number = declared.isascii() and declared.isdigit()
        if is_number and (len(declared) > 18 or int(declared) > max_bytes):
            raise _too_large(max_bytes)
        n_parts = 0
        async for part in request.stream():
            n_parts += 1
            if self._counted + len(part) > max_bytes:
                raise _too_large(max_bytes)
            if n_parts > _FREE_PARTS + (self._counted + len(part)) // _PART:
                raise Refusal(400, "small_chunks", f"chunks of fewer than {_PART} bytes: too many")
            self.append(part)

    def _drop(self) -> None:
        self._memory.release(self._counted)
        self._counted, self._content = 0, bytearray()


def _too_large(max_bytes: int) -> Refusal:
    return Refusal(413, "body_too_large", f"the body has more than {max_bytes} bytes")


def _crowded() -> Refusal:
    return Refusal(503, "busy", "too many bodies are arriving; try again")


def body_kind(headers: Mapping[str, str]) -> str:
    """Return how a body is read, ``"picture"``, ``"form"`` or ``"json"``, by its content type."""
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


def empty_body() -> Refusal:
    """Return the refusal of a request without a picture."""
    return Refusal(422, "empty_body", "no picture in the request")


def parse_json(body: bytes, n_values: int, n_lists: int, n_objects: int, refusal: Refusal) -> Any:
    """Return the content of JSON that is no larger than its answer needs."""
    # Brackets and commas are counted before anything is parsed: a parser makes an object of each.
    limits = {b"[": n_lists, b"{": n_objects, b",": n_values + n_lists + n_objects}
    if any(body.count(character) > most for character, most in limits.items()):
        raise refusal
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        raise refusal from None


def numbers_of(values: list[Any], is_vector: bool, refusal: Refusal) -> np.ndarray:
    """Return numbers of JSON as the classifier takes them."""
    # Float32 of vectors, uint8 of images.
    if is_vector:
        if not all(type(v) in (int, float) and abs(v) <= 1e30 for v in values):
            raise refusal
        return np.array(values, np.float32)
    if not all(type(v) is int and 0 <= v <= 255 for v in values):
        raise refusal
    return np.array(values, np.uint8)


def pixels_of(body: bytes, shape: tuple[int, ...]) -> np.ndarray:
    """Return the image of ``{"pixels": …}``, which is not preprocessed."""
    # Pixels of images are integers from 0 to 255; vectors are any finite numbers.
    accepted = f"an object with pixels: numbers in lists of shape {list(shape)}"
    refusal = Refusal(422, "invalid_pixels", f"accepted: {accepted}")
    n_lists = sum(math.prod(shape[:i]) for i in range(len(shape)))
    content = parse_json(body, math.prod(shape), n_lists, 1, refusal)
    if not isinstance(content, dict) or set(content) != {"pixels"}:
        raise refusal
    flat: list[Any] = [content["pixels"]]
    for side in shape:
        if not all(isinstance(part, list) and len(part) == side for part in flat):
            raise refusal
        flat = [value for part in flat for value in part]
    return numbers_of(flat, len(shape) == 1, refusal).reshape(shape)
