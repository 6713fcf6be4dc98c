"""What stands in the head of every answer, and the count of it."""

from __future__ import annotations

import base64
import hashlib
import logging
import re
import time

from starlette.datastructures import MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from visionshare.apps.service.metrics import Metrics

__all__ = ["SecureHeaders", "page_policy"]

_logger = logging.getLogger(__name__)

_FAILED = '{"error":{"kind":"failed","message":"the service failed; its log says where"}}'
_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
}
# What anybody may ask for is not to fill the figures.
_PATHS = {"/", "/predict", "/health", "/metrics", "/openapi.json"}


def page_policy(page: str) -> str:
    """Return the policy under which nothing runs but the page's own script and style.

    Examples
    --------
    >>> "script-src 'sha256-" in page_policy("<style>a</style><script>b</script>")
    True
    """
    allowed = ["default-src 'none'", "connect-src 'self'", "img-src 'self' data: blob:"]
    for part in ("script", "style"):
        found = re.findall(f"<{part}>(.*?)</{part}>", page, re.DOTALL)
        sums = (base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in found)
        allowed.append(f"{part}-src " + " ".join(f"'sha256-{value}'" for value in sums))
    allowed += ["base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"]
    return "; ".join(allowed)


class SecureHeaders:
    """Adds headers to every answer and counts it; an unforeseen failure is an answer too.

    Parameters
    ----------
    app : ASGI application
    metrics : Metrics
    """

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self.app, self.metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        begun, status, started = time.perf_counter(), 500, False

        async def send_with_headers(message: Message) -> None:
            nonlocal status, started
            if message["type"] == "http.response.start":
                status, started = message["status"], True
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        try:
            await self.app(scope, receive, send_with_headers)
        except Exception:
            _logger.exception("a request failed")
            if not started:
                answer = Response(_FAILED, 500, media_type="application/json")
                await answer(scope, receive, send_with_headers)
        finally:
            path = scope["path"] if scope["path"] in _PATHS else "other"
            self.metrics.count(path, status, time.perf_counter() - begun)
