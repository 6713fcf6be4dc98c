"""What the schema at ``/openapi.json`` says of bodies and refusals."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

__all__ = ["COMMON", "ErrorAnswer", "picture_body", "refusals", "tensor_body"]

_FILE = {"type": "string", "format": "binary"}


class Failure(BaseModel):
    """Why a request was not served: a word for programs and a sentence for people."""

    kind: str
    message: str


class ErrorAnswer(BaseModel):
    """The answer to a request that was not served; below ``/v2``, error is a sentence."""

    error: Failure | str


def refusals(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the answers of an operation that refuses requests with some statuses."""
    return {status: {"model": ErrorAnswer} for status in statuses}


# Of every operation.
COMMON = refusals(401, 404, 405, 421)
COMMON[405]["headers"] = {
    "Allow": {"description": "The methods of this path.", "schema": {"type": "string"}}
}


def picture_body(shape: tuple[int, ...]) -> dict[str, Any]:
    """Return the bodies of an operation that takes pictures, or pixels of a shape."""
    pixels: dict[str, Any] = {"type": "number"}
    for side in reversed(shape):
        pixels = {"type": "array", "items": pixels, "minItems": side, "maxItems": side}
    content = {
        "image/*": _FILE,
        "application/octet-stream": _FILE,
        "multipart/form-data": _object("file", file=_FILE),
        "application/json": _object("pixels", pixels=pixels),
    }
    return _body(content)


def tensor_body() -> dict[str, Any]:
    """Return the body of the Open Inference Protocol."""
    text, numbers = {"type": "string"}, {"type": "array", "items": {"type": "integer"}}
    data = {"type": "array", "items": {}}
    tensor = _object(
        "datatype", "shape", "data", name=text, datatype=text, shape=numbers, data=data
    )
    inputs = {"type": "array", "items": tensor, "minItems": 1, "maxItems": 1}
    outputs = {"type": "array", "items": _object("name", name=text)}
    content = {"application/json": _object("inputs", id=text, inputs=inputs, outputs=outputs)}
    return _body(content)


def _object(*required: str, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required)}


def _body(content: dict[str, dict[str, Any]]) -> dict[str, Any]:
    kinds = {kind: {"schema": schema} for kind, schema in content.items()}
    return {"requestBody": {"required": True, "content": kinds}}
