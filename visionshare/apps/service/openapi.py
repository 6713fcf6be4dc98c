"""What the schema at ``/openapi.json`` says of bodies and refusals."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

__all__ = ["COMMON", "ErrorAnswer", "picture_body", "refusals", "tensor_body"]

_NUMBER = {"type": "number"}
_FILE = {"type": "string", "format": "binary"}


class Failure(BaseModel):
    """Why a request was not served: a word for programs and a sentence for people."""

    kind: str
    message: str


class ErrorAnswer(BaseModel):
    """The answer to a request that was not served; below ``/v2``, error is a sentence."""

    error: Failure | str


def refusals(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the answers of an operation that refuses requests with some statuses.

    Examples
    --------
    >>> list(refusals(413, 503))
    [413, 503]
    """
    return {status: {"model": ErrorAnswer} for status in statuses}


_ALLOW = {"Allow": {"description": "The methods of this path.", "schema": {"type": "string"}}}
# Of every operation.
COMMON = refusals(401, 404, 405, 421)
COMMON[405]["headers"] = _ALLOW


def picture_body(shape: tuple[int, ...]) -> dict[str, Any]:
    """Return the bodies of an operation that takes pictures, or pixels of a shape.

    Examples
    --------
    >>> list(picture_body((8, 8))["requestBody"]["content"])
    ['image/*', 'application/octet-stream', 'multipart/form-data', 'application/json']
    """
    form = {"type": "object", "properties": {"file": _FILE}, "required": ["file"]}
    pixels = {
        "type": "object",
        "properties": {"pixels": _lists(shape)},
        "required": ["pixels"],
        "additionalProperties": False,
    }
    content: dict[str, Any] = {
        "image/*": _FILE,
        "application/octet-stream": _FILE,
        "multipart/form-data": form,
        "application/json": pixels,
    }
    return _body(content)


def tensor_body() -> dict[str, Any]:
    """Return the body of the Open Inference Protocol.

    Examples
    --------
    >>> list(tensor_body()["requestBody"]["content"])
    ['application/json']
    """
    tensor = {
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "datatype": {"type": "string"},
            "shape": {"type": "array", "items": {"type": "integer"}},
            "data": {"type": "array", "items": {}},
        },
        "required": ["datatype", "shape", "data"],
    }
    inputs = {"type": "array", "items": tensor, "minItems": 1, "maxItems": 1}
    outputs = {"type": "array", "items": {"type": "object", "required": ["name"]}}
    properties = {"id": {"type": "string"}, "inputs": inputs, "outputs": outputs}
    request = {"type": "object", "properties": properties, "required": ["inputs"]}
    return _body({"application/json": request})


def _lists(shape: tuple[int, ...]) -> dict[str, Any]:
    """Return the schema of numbers in lists of lists of a shape."""
    schema: dict[str, Any] = _NUMBER
    for side in reversed(shape):
        schema = {"type": "array", "items": schema, "minItems": side, "maxItems": side}
    return schema


def _body(content: dict[str, dict[str, Any]]) -> dict[str, Any]:
    kinds = {kind: {"schema": schema} for kind, schema in content.items()}
    return {"requestBody": {"required": True, "content": kinds}}
