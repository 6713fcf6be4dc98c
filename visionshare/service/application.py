"""The web application of a classifier."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import FastAPI, Query, Request, Response
from fastapi import Path as PathParameter
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, HTMLResponse, JSONResponse, PlainTextResponse
from starlette.exceptions import HTTPException

from visionshare.classifier.card import model_card
from visionshare.errors import DataError, InputError
from visionshare.service.access import Access, failure
from visionshare.service.answers import (
    ExplanationAnswer,
    MeterAnswer,
    Prediction,
    Served,
    explained,
    metered,
    predicted,
)
from visionshare.service.bodies import Refusal
from visionshare.service.front import Front, Metrics, page_policy
from visionshare.service.schema import COMMON, REFUSALS, picture_body
from visionshare.service.worker import Worker, busy

if TYPE_CHECKING:
    from visionshare.reading import MeterReader


_KINDS = {404: "not_found", 405: "method_not_allowed"}


@dataclass(frozen=True)
class Shown:
    """What the page shows besides the classifier: its card, and example pictures."""

    card: Path | None = None
    examples: tuple[Path, ...] = ()


def application(
    worker: Worker,
    name: str,
    host_names: Sequence[str],
    token: str | None,
    meter: MeterReader | None = None,
    shown: Shown = Shown(),
) -> FastAPI:
    """Return the application around a worker, see :func:`visionshare.service.service`."""
    from visionshare import __version__

    metrics = Metrics()
    worker.on_running = metrics.running.set

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
    app.state.worker = worker
    page = _page("page.html")
    regions = _page("regions.html")

    # Made once for each classifier: as many clients ask for it as like.
    @lru_cache(maxsize=1)
    def described(served: Served) -> Response:
        examples = len(shown.examples)
        return JSONResponse(_description(served, app.version, name, examples))

    @app.get("/health", response_model=dict[str, Any])
    async def health() -> Response:
        """Describe the classifier that is served."""
        return described(worker.served)

    @app.get("/", response_class=HTMLResponse)
    async def start_page() -> Response:
        """Return a page that takes pictures."""
        return page

    @app.get("/regions", response_class=HTMLResponse)
    async def regions_page() -> Response:
        """Return a page on which a meter's regions are drawn."""
        return regions

    def at_once(method: str, path: str) -> Response | None:
        """Return what needs no turn: cheap answers, of which clients may want very many."""
        if method == "GET":
            return {"/health": described(worker.served), "/": page}.get(path)
        if method == "POST" and worker.is_full:
            return _refused(busy(), is_read=False)
        return None

    _add_routes(app, worker, metrics)
    _add_pages(app, worker, name, shown)
    if meter is not None:
        _add_meter(app, worker, meter)
    _add_error_handlers(app)
    access = Access(host_names, token)
    app.add_middleware(Front, access=access, metrics=metrics, at_once=at_once)
    return app


def _page(name: str, values: Mapping[str, Any] | None = None) -> Response:
    """Return a page, or a template with its values, that takes what it shows from here alone."""
    text = (files("visionshare.service") / name).read_text("utf-8")
    if values is not None:
        from jinja2 import Environment

        text = Environment(autoescape=True, trim_blocks=True).from_string(text).render(values)
    policy = {
        "Content-Security-Policy": page_policy(text),
        "Permissions-Policy": "camera=(self), geolocation=(), microphone=()",
    }
    return HTMLResponse(text, headers=policy)


def _add_pages(app: FastAPI, worker: Worker, name: str, shown: Shown) -> None:
    @app.get("/card", response_class=PlainTextResponse)
    def card() -> Response:
        """Return the model card, in Markdown."""
        text = None
        if shown.card is not None:
            with suppress(OSError, ValueError):
                text = shown.card.read_text("utf-8")
        return PlainTextResponse(text or model_card(worker.served.classifier, name))

    @app.get("/examples/{number}", response_class=FileResponse)
    def example(number: Annotated[int, PathParameter(ge=0)]) -> Response:
        """Return an example picture."""
        if number >= len(shown.examples):
            raise Refusal(404, "not_found", f"there are {len(shown.examples)} examples")
        return FileResponse(shown.examples[number])

    @lru_cache(maxsize=1)
    def described() -> Response:
        return _page("docs.html.j2", app.openapi())

    @app.get("/docs", response_class=HTMLResponse, include_in_schema=False)
    async def docs() -> Response:
        """Return a page of all requests and answers."""
        return described()


def _add_routes(app: FastAPI, worker: Worker, metrics: Metrics) -> None:
    body = picture_body(worker.served.classifier.image_shape)

    @app.post("/predict", responses=REFUSALS, openapi_extra=body)
    async def predict(request: Request, raster: bool = False) -> Prediction:
        """Classify a picture, or the pixels of an image."""
        return await worker.ask(request, partial(predicted, with_raster=raster))

    @app.post("/explain", responses=REFUSALS, openapi_extra=body)
    async def explain(
        request: Request,
        name: Annotated[str | None, Query(alias="class", max_length=1000)] = None,
        top: Annotated[int, Query(ge=1, le=100)] = 10,
    ) -> ExplanationAnswer:
        """Say which features of a picture spoke for and against a class, and where."""
        return await worker.ask(request, partial(explained, name=name, top=top))

    @app.get("/metrics", response_class=PlainTextResponse)
    async def exposition(request: Request) -> Response:
        """Return metrics for Prometheus."""
        text, content_type = metrics.exposition(request.headers.get("accept", ""))
        return Response(text, headers={"Content-Type": content_type})


def _add_meter(app: FastAPI, worker: Worker, reader: MeterReader) -> None:
    @app.post("/meter", responses=REFUSALS, openapi_extra=picture_body(None))
    async def meter(
        request: Request,
        previous: Annotated[str | None, Query(pattern=r"^-?\d+(\.\d+)?$", max_length=40)] = None,
        hours: Annotated[float | None, Query(gt=0)] = None,
    ) -> MeterAnswer:
        """Read the number of the meter in a frame of its camera."""
        question = partial(metered, reader=reader, previous=previous, hours=hours)
        return await worker.ask(request, question)


def _description(served: Served, version: str, name: str, examples: int) -> dict[str, Any]:
    model = served.classifier
    return {
        "status": "ok",
        "name": name,
        "examples": examples,
        "classes": list(served.names),
        "image_shape": list(model.image_shape),
        "drawn": model.picture_mode == "gray" and model.preprocessing.polarity != "as_is",
        "features": model.n_features,
        "macs": served.macs,
        "early_exit": model.exit_rule is not None,
        "preprocessing": model.preprocessing.to_values(),
        "version": version,
    }


def _refused(error: Refusal, is_read: bool) -> JSONResponse:
    headers = {"Retry-After": "1"} if error.status == 503 else {}
    if not is_read:
        # The rest of the body is not read, so that the connection cannot be used again.
        headers["Connection"] = "close"
    return failure(error.status, error.kind, error.message, headers)


def _add_error_handlers(app: FastAPI) -> None:
    @app.exception_handler(Refusal)
    async def on_refusal(request: Request, error: Refusal) -> JSONResponse:
        is_read = request.method != "POST" or getattr(request.state, "is_read", False)
        return _refused(error, is_read)

    @app.exception_handler(DataError)
    @app.exception_handler(InputError)
    @app.exception_handler(MemoryError)
    async def on_invalid_picture(request: Request, error: Exception) -> JSONResponse:
        message = str(error) or "decoding it takes too much memory"
        return failure(422, "invalid_picture", message)

    @app.exception_handler(RequestValidationError)
    async def on_validation_error(request: Request, error: RequestValidationError) -> JSONResponse:
        first = error.errors()[0]
        message = f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
        return failure(422, "invalid_request", message)

    @app.exception_handler(HTTPException)
    async def on_http_error(request: Request, error: HTTPException) -> JSONResponse:
        headers = dict(error.headers or {})
        methods = set(headers.get("Allow", "").split(", "))
        if "GET" in methods:
            # HEAD is answered as GET without a body, see Front.
            headers["Allow"] = ", ".join(sorted(methods | {"HEAD"}))
        kind = _KINDS.get(error.status_code, "error")
        return failure(error.status_code, kind, error.detail, headers)
