"""The web application of a classifier."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from importlib.resources import files
from typing import Annotated, Any

from fastapi import FastAPI, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse
from starlette.exceptions import HTTPException

from visionshare.class_labels import class_names
from visionshare.classifier import CompactClassifier
from visionshare.errors import InputError
from visionshare.service.access import Access, failure
from visionshare.service.bodies import Body, Refusal, body_kind, empty_body
from visionshare.service.explanation import ExplanationAnswer
from visionshare.service.headers import SecureHeaders, page_policy
from visionshare.service.metrics import Metrics
from visionshare.service.openapi import COMMON, picture_body, refusals
from visionshare.service.protocol_v2 import v2_router
from visionshare.service.worker import Prediction, Worker

__all__ = ["application"]

_KINDS = {404: "not_found", 405: "method_not_allowed"}


def application(
    worker: Worker,
    name: str = "classifier",
    host_names: Sequence[str] = ("*",),
    token: str | None = None,
) -> FastAPI:
    """Return the application around a worker, see :func:`visionshare.service.service`."""
    from visionshare import __version__

    metrics = Metrics()
    worker.on_running = metrics.set_running

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        worker.close()

    # The pages of documentation that FastAPI offers load scripts from elsewhere.
    app = FastAPI(
        title="visionshare",
        version=__version__,
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        responses=COMMON,
    )
    _add_routes(app, worker, metrics)
    app.include_router(v2_router(worker, name, app.version))
    _add_error_handlers(app)
    app.state.worker = worker
    app.add_middleware(Access, host_names=host_names, token=token)
    app.add_middleware(SecureHeaders, metrics=metrics)
    return app


def _add_routes(app: FastAPI, worker: Worker, metrics: Metrics) -> None:
    page = (files("visionshare.service") / "page.html").read_text("utf-8")
    policy = {
        "Content-Security-Policy": page_policy(page),
        "Permissions-Policy": "camera=(self), geolocation=(), microphone=()",
    }
    taken: dict[str, Any] = {
        "responses": refusals(400, 408, 413, 415, 422, 503),
        "openapi_extra": picture_body(worker.classifier.image_shape),
    }

    @app.post("/predict", response_model_exclude_none=False, **taken)
    async def predict(request: Request, raster: bool = False) -> Prediction:
        """Classify a picture, or the pixels of an image."""
        with Body(worker.memory) as body:
            kind, content = await _content(request, body, worker)
            return await worker.predict(kind, content, raster, request.headers)

    @app.post("/explain", **taken)
    async def explain(
        request: Request,
        name: Annotated[str | None, Query(alias="class", max_length=1000)] = None,
        top: Annotated[int, Query(ge=1, le=100)] = 10,
    ) -> ExplanationAnswer:
        """Say which features of a picture spoke for and against a class, and where."""
        with Body(worker.memory) as body:
            kind, content = await _content(request, body, worker)
            return await worker.explain(kind, content, name, top, request.headers)

    # Made once for each classifier: as many clients ask for it as like.
    described: tuple[CompactClassifier | None, Response] = (None, Response())

    @app.get("/health", response_model=dict[str, Any])
    async def health() -> Response:
        """Describe the classifier that is served."""
        nonlocal described
        if described[0] is not worker.classifier:
            described = worker.classifier, JSONResponse(_description(worker, app.version))
        return described[1]

    @app.get("/metrics", response_class=PlainTextResponse)
    async def exposition(request: Request) -> Response:
        """Return metrics for Prometheus."""
        text, content_type = metrics.exposition(request.headers.get("accept", ""))
        return Response(text, headers={"Content-Type": content_type})

    @app.get("/", response_class=HTMLResponse)
    async def start_page() -> HTMLResponse:
        """Return a page that takes pictures."""
        return HTMLResponse(page, headers=policy)


async def _content(request: Request, body: Body, worker: Worker) -> tuple[str, bytes]:
    """Return the kind of a request's body, and the body, which is not empty."""
    kind, limits = body_kind(request.headers), worker.limits
    max_bytes = worker.max_json_size() if kind == "json" else limits.max_body_size
    content = await body.read(request, max_bytes, limits.body_timeout)
    if not content:
        raise empty_body()
    return kind, content


def _description(worker: Worker, version: str) -> dict[str, Any]:
    model = worker.classifier
    return {
        "status": "ok",
        "classes": list(class_names(model.classes_)),
        "image_shape": list(model.image_shape),
        "drawn": model.picture_mode == "gray" and model.preprocessing.polarity != "as_is",
        "features": model.n_features,
        "macs": worker.macs,
        "early_exit": model.exit_rule is not None,
        "preprocessing": model.preprocessing.to_values(),
        "version": version,
    }


def _add_error_handlers(app: FastAPI) -> None:
    @app.exception_handler(Refusal)
    async def on_refusal(request: Request, error: Refusal) -> JSONResponse:
        headers = {"Retry-After": "1"} if error.status == 503 else {}
        if request.method == "POST" and not getattr(request.state, "is_read", False):
            # The rest of the body is not read, so that the connection cannot be used again.
            headers["Connection"] = "close"
        return failure(request.url.path, error.status, error.kind, error.message, headers)

    @app.exception_handler(InputError)
    async def on_input_error(request: Request, error: InputError) -> JSONResponse:
        return failure(request.url.path, 422, "invalid_picture", str(error))

    @app.exception_handler(RequestValidationError)
    async def on_validation_error(request: Request, error: RequestValidationError) -> JSONResponse:
        first = error.errors()[0]
        message = f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
        return failure(request.url.path, 422, "invalid_request", message)

    @app.exception_handler(HTTPException)
    async def on_http_error(request: Request, error: HTTPException) -> JSONResponse:
        headers = dict(error.headers or {})
        methods = set(headers.get("Allow", "").split(", "))
        if "GET" in methods:
            # HEAD is answered as GET without a body, see SecureHeaders.
            headers["Allow"] = ", ".join(sorted(methods | {"HEAD"}))
        kind = _KINDS.get(error.status_code, "error")
        return failure(request.url.path, error.status_code, kind, error.detail, headers)
