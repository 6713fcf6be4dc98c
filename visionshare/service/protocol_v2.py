"""The Open Inference Protocol, version 2, with tensors in JSON."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
from fastapi import APIRouter, Request, Response

from visionshare.datasets.intake import as_rasters
from visionshare.service.answers import Served
from visionshare.service.bodies import (
    Refusal,
    body_kind,
    n_lists_of,
    numbers_of,
    parse_json,
)
from visionshare.service.schema import REFUSALS, tensor_body
from visionshare.service.worker import Worker

__all__ = ["v2_router"]

# Numbers in a request, and in its answer: reading and writing JSON holds the interpreter.
_MAX_VALUES = 1 << 17
_MAX_OUTPUTS = 1 << 15
_INTEGERS = ("UINT8", "INT8", "UINT16", "INT16", "UINT32", "INT32", "UINT64", "INT64")
_FLOATS = ("FP16", "FP32", "FP64")
_OUTPUTS = ("label", "probabilities")


def v2_router(worker: Worker, name: str, version: str) -> APIRouter:
    """Return the routes of the protocol for a classifier of a name."""
    router = APIRouter(prefix="/v2", tags=["Open Inference Protocol"])

    def check(asked: str) -> None:
        if asked != name:
            raise Refusal(404, "not_found", "there is no model of this name")

    @router.get("")
    async def server() -> dict[str, Any]:
        """Describe the server."""
        return {"name": "visionshare", "version": version, "extensions": []}

    @router.get("/health/live")
    async def live() -> dict[str, bool]:
        """Say that the server runs."""
        return {"live": True}

    @router.get("/health/ready")
    async def ready() -> dict[str, bool]:
        """Say that the server answers predictions."""
        return {"ready": True}

    @router.get("/models/{name}")
    async def model(name: str) -> dict[str, Any]:
        """Describe the model's tensors."""
        check(name)
        return {"name": name, **_metadata(worker.served)}

    @router.get("/models/{name}/ready")
    async def model_ready(name: str) -> dict[str, Any]:
        """Say that the model answers."""
        check(name)
        return {"name": name, "ready": True}

    @router.post("/models/{name}/infer", responses=REFUSALS, openapi_extra=tensor_body())
    async def model_infer(name: str, request: Request) -> Response:
        """Classify a batch of images that need no preprocessing."""
        check(name)
        if body_kind(request.headers) != "json":
            raise Refusal(415, "unsupported_type", "tensors are accepted as application/json")
        size = worker.max_json_size(_max_images(worker.served))
        async with worker.bodies.receive(request, size, worker.limits.body_timeout) as body:
            answer = await worker.run(_infer, name, body)
            return Response(answer, media_type="application/json")

    return router


def _max_images(served: Served) -> int:
    """Return how many images one request may contain."""
    n_values = math.prod(served.classifier.image_shape)
    return max(1, min(_MAX_VALUES // n_values, _MAX_OUTPUTS // len(served.names)))


def _metadata(served: Served) -> dict[str, Any]:
    shape = served.classifier.image_shape
    datatype = "FP32" if len(shape) == 1 else "UINT8"
    return {
        "versions": ["1"],
        "platform": "visionshare",
        "inputs": [{"name": "images", "datatype": datatype, "shape": [-1, *shape]}],
        "outputs": [
            {"name": "label", "datatype": "BYTES", "shape": [-1]},
            {"name": "probabilities", "datatype": "FP32", "shape": [-1, len(served.names)]},
        ],
    }


def _infer(served: Served, name: str, body: bytes) -> bytes:
    """Return the answer to an inference request."""
    # 1) parse it, within limits
    shape = served.classifier.image_shape
    most = _max_images(served)
    accepted = f"one input of shape [n, {', '.join(map(str, shape))}] with n from 1 to {most}"
    refusal = Refusal(422, "invalid_tensor", f"accepted: {accepted}, and its data")
    n_lists = most * n_lists_of(shape) + 16
    content = parse_json(body, most * math.prod(shape) + 64, n_lists, 32, refusal)
    if not isinstance(content, dict):
        raise refusal
    images = _images(content.get("inputs"), shape, most, refusal)
    wanted = _output_names(content.get("outputs"), refusal)
    # 2) classify the images
    answers = served.classify(as_rasters(images))
    # 3) write the outputs
    labels = [answer.label for answer in answers]
    probabilities = [value for answer in answers for value in answer.probabilities.values()]
    size = [len(images), len(served.names)]
    outputs = [
        {"name": "label", "datatype": "BYTES", "shape": size[:1], "data": labels},
        {"name": "probabilities", "datatype": "FP32", "shape": size, "data": probabilities},
    ]
    result = {"model_name": name, "outputs": [out for out in outputs if out["name"] in wanted]}
    if isinstance(content.get("id"), str):
        result["id"] = content["id"]
    return json.dumps(result).encode()


def _images(inputs: Any, shape: tuple[int, ...], most: int, refusal: Refusal) -> np.ndarray:
    """Return the images of the only input."""
    if not isinstance(inputs, list) or len(inputs) != 1 or not isinstance(inputs[0], dict):
        raise refusal
    tensor = inputs[0]
    size = tensor.get("shape")
    data = tensor.get("data")
    if not isinstance(size, list) or not all(type(side) is int for side in size):
        raise refusal
    is_vector = len(shape) == 1
    kinds = (*_INTEGERS, *_FLOATS) if is_vector else _INTEGERS
    if tensor.get("datatype") not in kinds or tuple(size[1:]) != shape or not 1 <= size[0] <= most:
        raise refusal
    # The data is flat, or in lists as the shape says.
    is_flat = isinstance(data, list) and not any(isinstance(value, list) for value in data)
    sides = (math.prod(size),) if is_flat else tuple(size)
    return numbers_of(data, sides, is_vector, refusal).reshape(size)


def _output_names(outputs: Any, refusal: Refusal) -> set[str]:
    if outputs is None:
        return set(_OUTPUTS)
    if not isinstance(outputs, list) or not all(isinstance(output, dict) for output in outputs):
        raise refusal
    names = {str(output.get("name")) for output in outputs}
    if not names <= set(_OUTPUTS):
        raise Refusal(422, "invalid_tensor", "outputs are label and probabilities")
    return names
