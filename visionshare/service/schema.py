"""What the schema at ``/openapi.json`` says of bodies and refusals."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

_Schema = dict[str, Any]


class Failure(BaseModel):
    """Why a request was not served: a word for programs and a sentence for people."""

    kind: str
    message: str


class ErrorAnswer(BaseModel):
    """The answer to a request that was not served."""

    error: Failure


_ERROR: _Schema = {"model": ErrorAnswer}
_ALLOW = {"description": "The methods of this path.", "schema": {"type": "string"}}
# Of every operation, and of those that take a body.
COMMON: dict[int | str, _Schema] = {401: _ERROR, 404: _ERROR, 421: _ERROR}
COMMON[405] = {**_ERROR, "headers": {"Allow": _ALLOW}}
REFUSALS: dict[int | str, _Schema] = dict.fromkeys((400, 408, 413, 415, 422, 503), _ERROR)


def picture_body(shape: tuple[int, ...] | None) -> _Schema:
    """Return the bodies of an operation that takes pictures, or pixels of a shape."""
    file = {"type": "string", "format": "binary"}
    pictures = {
        "image/*": file,
        "application/octet-stream": file,
        "multipart/form-data": _object(file=file),
    }
    if shape is None:
        return _body(pictures)
    pixels: _Schema = {"type": "number"}
    for side in reversed(shape):
        pixels = {"type": "array", "items": pixels, "minItems": side, "maxItems": side}
    return _body({**pictures, "application/json": _object(pixels=pixels)})


def _object(**required: _Schema) -> _Schema:
    return {"type": "object", "properties": required, "required": list(required)}


def _body(schemas: dict[str, _Schema]) -> _Schema:
    content = {kind: {"schema": schema} for kind, schema in schemas.items()}
    return {"requestBody": {"required": True, "content": content}}
