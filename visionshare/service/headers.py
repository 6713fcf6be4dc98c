"""Middleware: security headers of every answer, and its metrics."""

from __future__ import annotations

import base64
import hashlib
import logging
import re
import time

from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from visionshare.service.metrics import Metrics

__all__ = ["SecureHeaders", "page_policy"]

_logger = logging.getLogger(__name__)

_FAILED = '{"error":{"kind":"internal_error","message":"the service failed; its log says where"}}'
_HEADERS = [
    (name.lower().encode(), value.encode())
    for name, value in {
        "X-Content-Type-Options": "nosniff",
        "X-Frame-Options": "DENY",
        "Referrer-Policy": "no-referrer",
        "Cross-Origin-Resource-Policy": "same-origin",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
        "Cache-Control": "no-store",
        "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    }.items()
]
# Other paths are counted together: a client must not make any number of time series.
_PATHS = {"/", "/predict", "/explain", "/health", "/metrics", "/openapi.json"}


def page_policy(page: str) -> str:
    """Return a content security policy that allows the page's own script and style alone."""
    allowed = ["default-src 'none'", "connect-src 'self'", "img-src 'self' data: blob:"]
    for part in ("script", "style"):
        texts = re.findall(f"<{part}>(.*?)</{part}>", page, re.DOTALL)
        digests = (base64.b64encode(hashlib.sha256(t.encode()).digest()).decode() for t in texts)
        allowed.append(f"{part}-src " + " ".join(f"'sha256-{digest}'" for digest in digests))
    allowed += ["base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"]
    return "; ".join(allowed)


class SecureHeaders:
    """Adds headers to every answer and counts it; an unexpected error is answered too."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self.app, self.metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        start, status, started = time.perf_counter(), 500, False
        is_head = scope["method"] == "HEAD"
        if is_head:
            scope["method"] = "GET"

        async def send_with_headers(message: Message) -> None:
            nonlocal status, started
            if message["type"] == "http.response.start":
                status, started = message["status"], True
                names = {name for name, _ in message["headers"]}
                ours = [header for header in _HEADERS if header[0] not in names]
                message = {**message, "headers": [*message["headers"], *ours]}
            elif is_head:
                message = {**message, "body": b""}
            await send(message)

        try:
            await self.app(scope, receive, send_with_headers)
        except Exception:
            _logger.exception("a request failed")
            if not started:
                answer = Response(_FAILED, 500, media_type="application/json")
                await answer(scope, receive, send_with_headers)
        finally:
            self.metrics.observe(_label(scope), status, time.perf_counter() - start)


def _label(scope: Scope) -> str:
    """Return the path that a request is counted under; names in it are left out."""
    path: str = scope["path"]
    template: str = getattr(scope.get("route"), "path", "other")
    return path if path in _PATHS else template
