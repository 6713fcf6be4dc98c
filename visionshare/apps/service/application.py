"""The web application of a classifier."""

from __future__ import annotations

import asyncio
import io
import math
import threading
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse
from pydantic import BaseModel
from starlette.exceptions import HTTPException

from visionshare.apps.pictures import read_picture
from visionshare.apps.service.bodies import Refusal, pixels_of, read_body
from visionshare.apps.service.headers import SecureHeaders, page_policy
from visionshare.apps.service.limits import Limits
from visionshare.apps.service.metrics import METRICS_TYPE, Metrics
from visionshare.classifier import CompactClassifier, EarlyExit
from visionshare.errors import DataError, InputError

__all__ = ["Prediction", "application"]

_KINDS = {404: "not_found", 405: "not_allowed"}


class Prediction(BaseModel):
    """The answer to a picture.

    A classifier with an exit rule says at which stage it stopped, from 1; ``raster`` is the
    prepared image where it is asked for.
    """

    label: str
    probability: float | None
    probabilities: dict[str, float | None]
    macs: int
    stage: int | None = None
    raster: list[Any] | None = None


class Failure(BaseModel):
    """Why a request was not served: a word for programs and a sentence for people."""

    kind: str
    message: str


class ErrorAnswer(BaseModel):
    """The answer to a request that was not served."""

    error: Failure


class _Worker:
    """Prepares and classifies, on threads of its own."""

    def __init__(self, classifier: CompactClassifier, limits: Limits) -> None:
        self.classifier, self.limits = classifier, limits
        self.early = None if classifier.exit_rule is None else EarlyExit(classifier)
        self.pool = ThreadPoolExecutor(limits.threads, thread_name_prefix="predict")
        # Compiles the kernels before the first request.
        meet = _threads_may_meet(classifier)
        self._one: AbstractContextManager[Any] = nullcontext() if meet else threading.Lock()

    def predict(self, kind: str, body: bytes, with_raster: bool) -> Prediction:
        """Return the answer; runs on a thread of the pool."""
        image = self._image(kind, body)
        model = self.classifier
        with self._one:
            if self.early is None:
                scores, stage, macs = model.decision_function(image), None, model.macs
            else:
                scores, stops = self.early.run(image)
                stage, macs = int(stops[0]) + 1, int(self.early.costs[stops[0]])
        shares = [_finite(share) for share in model.probabilities(scores)[0].tolist()]
        best = int(np.argmax(scores[0]))
        names = list(map(str, model.classes_.tolist()))
        return Prediction(
            label=names[best],
            probability=shares[best],
            probabilities=dict(zip(names, shares, strict=True)),
            macs=macs,
            stage=stage,
            raster=image.tolist() if with_raster else None,
        )

    def _image(self, kind: str, body: bytes) -> np.ndarray:
        if kind == "json":
            return pixels_of(body, self.classifier.image_shape)
        if self.classifier.picture_size is None:
            raise Refusal(415, "unknown_type", "this classifier takes vectors: send JSON")
        try:
            return read_picture(self.classifier, io.BytesIO(body), self.limits.pixels)
        except DataError as error:
            raise Refusal(422, "bad_picture", str(error)) from None
        except MemoryError:
            raise Refusal(422, "bad_picture", "decoding it takes too much memory") from None


def _threads_may_meet(classifier: CompactClassifier) -> bool:
    """Classify once; return whether kernels may be called from several threads at a time."""
    import numba

    classifier.decision_function(np.zeros(classifier.image_shape, np.uint8))
    try:
        return bool(numba.threading_layer() != "workqueue")
    except ValueError:
        # No kernel with threads of its own was called.
        return True


def _finite(value: float) -> float | None:
    return round(value, 6) if math.isfinite(value) else None


def _failure(status: int, kind: str, message: str) -> JSONResponse:
    answer = ErrorAnswer(error=Failure(kind=kind, message=message))
    extra = {"Retry-After": "1"} if status == 503 else None
    return JSONResponse(answer.model_dump(), status, extra)


def application(classifier: CompactClassifier, limits: Limits) -> FastAPI:
    """Return the application, see :func:`visionshare.apps.service.service`."""
    from visionshare import __version__

    worker, metrics = _Worker(classifier, limits), Metrics()

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        worker.pool.shutdown(wait=True, cancel_futures=True)

    # The pages of documentation that FastAPI offers load scripts from elsewhere.
    app = FastAPI(
        title="visionshare", version=__version__, lifespan=lifespan, docs_url=None, redoc_url=None
    )
    _add_routes(app, worker, metrics)
    _add_failures(app)
    app.add_middleware(SecureHeaders, metrics=metrics)
    return app


def _add_routes(app: FastAPI, worker: _Worker, metrics: Metrics) -> None:
    model, limits = worker.classifier, worker.limits
    page = (Path(__file__).parent / "page.html").read_text("utf-8")
    policy = {"Content-Security-Policy": page_policy(page)}
    about = {
        "status": "ok",
        "classes": list(map(str, model.classes_.tolist())),
        "image_shape": list(model.image_shape),
        "features": model.n_features,
        "macs": model.macs,
        "early_exit": worker.early is not None,
        "preprocessing": model.preprocessing.to_values(),
        "version": app.version,
    }
    refusals: dict[int | str, dict[str, Any]] = {
        status: {"model": ErrorAnswer} for status in (408, 413, 415, 422, 503)
    }

    @app.post("/predict", response_model_exclude_none=False, responses=refusals)
    async def predict(request: Request, raster: bool = False) -> Prediction:
        """Classify a picture, or the pixels of an image."""
        kind, body = await read_body(request, limits)
        if metrics.running >= limits.threads + limits.waiting:
            raise Refusal(503, "busy", "too many pictures wait already; try again")
        metrics.running += 1
        try:
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(worker.pool, worker.predict, kind, body, raster)
        finally:
            metrics.running -= 1

    @app.get("/health")
    async def health() -> dict[str, Any]:
        """Say what is served."""
        return about

    @app.get("/metrics", response_class=PlainTextResponse)
    async def figures() -> PlainTextResponse:
        """Return figures for Prometheus."""
        return PlainTextResponse(metrics.text(), media_type=METRICS_TYPE)

    @app.get("/", response_class=HTMLResponse)
    async def drawing() -> HTMLResponse:
        """Return a page to draw on."""
        return HTMLResponse(page, headers=policy)


def _add_failures(app: FastAPI) -> None:
    from fastapi.exceptions import RequestValidationError

    @app.exception_handler(Refusal)
    async def refused(_: Request, error: Refusal) -> JSONResponse:
        return _failure(error.status, error.kind, error.message)

    @app.exception_handler(InputError)
    async def unsuitable(_: Request, error: InputError) -> JSONResponse:
        return _failure(422, "bad_picture", str(error))

    @app.exception_handler(RequestValidationError)
    async def wrong(_: Request, error: RequestValidationError) -> JSONResponse:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        return _failure(422, "bad_request", f"{place}: {first['msg']}")

    @app.exception_handler(HTTPException)
    async def not_there(_: Request, error: HTTPException) -> JSONResponse:
        return _failure(error.status_code, _KINDS.get(error.status_code, "error"), error.detail)
