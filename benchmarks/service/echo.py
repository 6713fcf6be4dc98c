"""A plain FastAPI application that sends back what it gets, as a process: what HTTP alone costs."""

from __future__ import annotations

import sys

import uvicorn
from fastapi import FastAPI, Request, Response

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
    # The same parser and loop as the service.
    options = {"http": "h11", "loop": "asyncio", "log_level": "error", "access_log": False}
    uvicorn.run(app, port=int(sys.argv[1]), **options)  # type: ignore[arg-type]
