"""A plain FastAPI application that sends back what it gets, as a process: what HTTP alone costs."""

from __future__ import annotations

import asyncio
import os
import signal
import sys

from fastapi import FastAPI, Request, Response

from visionshare.service import Limits
from visionshare.service.server import embedded

app = FastAPI()


@app.post("/echo")
async def echo(request: Request) -> Response:
    """Return the body."""
    return Response(await request.body(), media_type="application/octet-stream")


@app.get("/health")
async def health() -> dict[str, str]:
    """Say that it runs."""
    return {"status": "ok"}


if __name__ == "__main__":
    # It has nothing to finish.
    signal.signal(signal.SIGINT, lambda *_: os._exit(0))
    # The same server with the same settings as the service.
    asyncio.run(embedded(app, Limits(), ("127.0.0.1", int(sys.argv[1]))).serve())
