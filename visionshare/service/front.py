"""Every request's way in and out: access, turns, security headers, and metrics."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import logging
import os
import random
import re
import time
from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import choose_encoder
from prometheus_client.multiprocess import MultiProcessCollector
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from visionshare.service.access import Access

_logger = logging.getLogger(__name__)

_FAILED = '{"error":{"kind":"internal_error","message":"the service failed; its log says where"}}'
_HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
    (b"cache-control", b"no-store"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
]
# Other paths are counted together: a client must not make any number of time series.
_PATHS = {"/", "/predict", "/explain", "/meter", "/regions", "/health", "/metrics", "/openapi.json"}
# Seconds, at least and at most, until a client is told to try again: one that does so at once, on
# hundreds of connections, would keep the event loop from answering others.
_BUSY_PAUSE = (0.3, 1.0)
_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)


def page_policy(page: str) -> str:
    """Return a content security policy that allows the page's own script and style alone."""
    allowed = ["default-src 'none'", "connect-src 'self'", "img-src 'self' data: blob:"]
    for part in ("script", "style"):
        texts = re.findall(f"<{part}>(.*?)</{part}>", page, re.DOTALL)
        digests = (base64.b64encode(hashlib.sha256(t.encode()).digest()).decode() for t in texts)
        allowed.append(f"{part}-src " + " ".join(f"'sha256-{digest}'" for digest in digests))
    allowed += ["base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"]
    return "; ".join(allowed)


class Metrics:
    """Requests by path and status, seconds of predictions, and predictions in progress.

    Each application has a registry of its own: several can run in one process. Where the variable
    PROMETHEUS_MULTIPROC_DIR is set, as ``visionshare serve --workers`` does, every process answers
    with the sums over all of them.
    """

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "visionshare_requests",
            "Requests that were answered.",
            ("path", "status"),
            registry=self.registry,
        )
        self.seconds = Histogram(
            "visionshare_request_seconds",
            "Seconds from the request to its answer, of predictions.",
            buckets=_BUCKETS,
            registry=self.registry,
        )
        self.running = Gauge(
            "visionshare_predictions_running",
            "Predictions that run or wait.",
            multiprocess_mode="livesum",
            registry=self.registry,
        )

    def observe(self, path: str, status: int, seconds: float) -> None:
        """Count a request that was answered."""
        self.requests.labels(path, str(status)).inc()
        if path == "/predict":
            self.seconds.observe(seconds)

    def exposition(self, accept: str) -> tuple[bytes, str]:
        """Return the metrics in a format that a client accepts, and its content type."""
        encode, content_type = choose_encoder(accept)
        registry = self.registry
        if "PROMETHEUS_MULTIPROC_DIR" in os.environ:
            registry = CollectorRegistry()
            MultiProcessCollector(registry)
        return encode(registry), content_type


class Front:
    """Middleware that sees each request first: refuses it, answers at once, or gives it its turn.

    HEAD is answered as GET is, without the body; an unexpected error is answered too.
    """

    def __init__(
        self,
        app: ASGIApp,
        access: Access,
        metrics: Metrics,
        at_once: Callable[[str, str], Response | None],
    ) -> None:
        self.app = app
        self._access = access
        self._metrics = metrics
        self._at_once = at_once
        self._turn = asyncio.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        start = time.perf_counter()
        status = 500
        is_started = False
        is_head = scope["method"] == "HEAD"
        if is_head:
            scope["method"] = "GET"

        async def send_with_headers(message: Message) -> None:
            nonlocal status, is_started
            if message["type"] == "http.response.start":
                status = message["status"]
                is_started = True
                if status == 503:
                    await asyncio.sleep(random.uniform(*_BUSY_PAUSE))
                names = {name for name, _ in message["headers"]}
                ours = [header for header in _HEADERS if header[0] not in names]
                message = {**message, "headers": [*message["headers"], *ours]}
            elif is_head:
                message = {**message, "body": b""}
            await send(message)

        try:
            await (await self._answering(scope))(scope, receive, send_with_headers)
        except asyncio.CancelledError:
            # granian cancels requests whose connections its end closes, and would log a failure.
            pass
        except Exception:
            _logger.exception("a request failed")
            if not is_started:
                answer = Response(_FAILED, 500, media_type="application/json")
                await answer(scope, receive, send_with_headers)
        finally:
            self._metrics.observe(_label(scope), status, time.perf_counter() - start)

    async def _answering(self, scope: Scope) -> ASGIApp:
        """Return what answers a request, once it may begin."""
        answer = self._access.refused(scope) or self._at_once(scope["method"], scope["path"])
        if answer is not None:
            return answer
        # In each turn of the event loop one request begins: health waits for one, not for all.
        async with self._turn:
            await asyncio.sleep(0)
        return self.app


def _label(scope: Scope) -> str:
    """Return the path that a request is counted under; names in it are left out."""
    path: str = scope["path"]
    template: str = getattr(scope.get("route"), "path", "other")
    return path if path in _PATHS else template
