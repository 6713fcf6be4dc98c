"""The Open Inference Protocol, version 2, with tensors in JSON."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
from fastapi import APIRouter, Request, Response

from visionshare.datasets.intake import as_rasters
from visionshare.service.bodies import Body, Refusal, body_kind, numbers_of, parse_json
from visionshare.service.openapi import refusals, tensor_body
from visionshare.service.worker import Served, Worker

__all__ = ["infer", "v2_router"]

# Numbers in a request, and in its answer: reading and writing JSON holds the interpreter.
_MAX_VALUES, _MAX_OUTPUTS = 1 << 17, 1 << 15
_INTEGERS = ("UINT8", "INT8", "UINT16", "INT16", "UINT32", "INT32", "UINT64", "INT64")
_FLOATS = ("FP16", "FP32", "FP64")


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
        return _metadata(worker, name)

    @router.get("/models/{name}/ready")
    async def model_ready(name: str) -> dict[str, Any]:
        """Say that the model answers."""
        check(name)
        return {"name": name, "ready": True}

    @router.post(
        "/models/{name}/infer",
        responses=refusals(400, 408, 413, 415, 422, 503),
        openapi_extra=tensor_body(),
    )
    async def model_infer(name: str, request: Request) -> Response:
        """Classify a batch of images that need no preprocessing."""
        check(name)
        if body_kind(request.headers) != "json":
            raise Refusal(415, "unsupported_type", "tensors are accepted as application/json")
        limits = worker.limits
        with Body(worker.memory) as body:
            model = worker.classifier
            n_images = max_images(model.image_shape, len(model.classes_))
            size = worker.max_json_size(n_images)
            content = await body.read(request, size, limits.body_timeout)
            answer = await worker.run(_infer_json, name, content)
            return Response(answer, media_type="application/json")

    return router


def max_images(shape: tuple[int, ...], n_classes: int) -> int:
    """Return how many images of a shape one request may contain."""
    return max(1, min(_MAX_VALUES // math.prod(shape), _MAX_OUTPUTS // n_classes))


def _infer_json(served: Served, name: str, body: bytes) -> bytes:
    return json.dumps({"model_name": name, **infer(served, body)}).encode()


def _metadata(worker: Worker, name: str) -> dict[str, Any]:
    model = worker.classifier
    datatype = "FP32" if len(model.image_shape) == 1 else "UINT8"
    n_classes = len(model.classes_)
    return {
        "name": name,
        "versions": ["1"],
        "platform": "visionshare",
        "inputs": [{"name": "images", "datatype": datatype, "shape": [-1, *model.image_shape]}],
        "outputs": [
            {"name": "label", "datatype": "BYTES", "shape": [-1]},
            {"name": "probabilities", "datatype": "FP32", "shape": [-1, n_classes]},
        ],
    }


def infer(served: Served, body: bytes) -> dict[str, Any]:
    """Return the outputs of an inference request."""
    shape = served.classifier.image_shape
    most = max_images(shape, len(served.classifier.classes_))
    accepted = f"one input of shape [n, {', '.join(map(str, shape))}] with n from 1 to {most}"
    refusal = Refusal(422, "invalid_tensor", f"accepted: {accepted}, and its data")
    n_lists = most * sum(math.prod(shape[:i]) for i in range(len(shape))) + 16
    content = parse_json(body, most * math.prod(shape) + 64, n_lists, 32, refusal)
    if not isinstance(content, dict):
        raise refusal
    images = _images(content.get("inputs"), shape, most, refusal)
    names = _output_names(content.get("outputs"), refusal)
    answers = served.classify(as_rasters(images))
    n_classes = len(served.classifier.classes_)
    outputs = {
        "label": ("BYTES", [len(images)], [answer.label for answer in answers]),
        "probabilities": (
            "FP32",
            [len(images), n_classes],
            [value for answer in answers for value in answer.probabilities.values()],
        ),
    }
    result: dict[str, Any] = {
        "outputs": [
            {"name": name, "datatype": kind, "shape": size, "data": data}
            for name, (kind, size, data) in outputs.items()
            if name in names
        ]
    }
    if isinstance(content.get("id"), str):
        result["id"] = content["id"]
    return result


def _images(inputs: Any, shape: tuple[int, ...], most: int, refusal: Refusal) -> np.ndarray:
    if not isinstance(inputs, list) or len(inputs) != 1 or not isinstance(inputs[0], dict):
        raise refusal
    tensor = inputs[0]
    size, data = tensor.get("shape"), tensor.get("data")
    if not isinstance(size, list) or not all(type(side) is int for side in size):
        raise refusal
    is_vector = len(shape) == 1
    kinds = (*_INTEGERS, *_FLOATS) if is_vector else _INTEGERS
    if tensor.get("datatype") not in kinds or tuple(size[1:]) != shape or not 1 <= size[0] <= most:
        raise refusal
    # The data is flat, or in lists as the shape says.
    for _ in size[1:]:
        if isinstance(data, list) and data and all(isinstance(part, list) for part in data):
            data = [value for part in data for value in part]
    if not isinstance(data, list) or len(data) != math.prod(size):
        raise refusal
    return numbers_of(data, is_vector, refusal).reshape(size)


def _output_names(outputs: Any, refusal: Refusal) -> set[str]:
    if outputs is None:
        return {"label", "probabilities"}
    if not isinstance(outputs, list) or not all(isinstance(output, dict) for output in outputs):
        raise refusal
    names = {str(output.get("name")) for output in outputs}
    if not names <= {"label", "probabilities"}:
        raise Refusal(422, "invalid_tensor", "outputs are label and probabilities")
    return names
