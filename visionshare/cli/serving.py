"""The command that serves a classifier over HTTP."""

from __future__ import annotations

import logging
import socket
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from visionshare.errors import InputError, ServiceError

if TYPE_CHECKING:
    from fastapi import FastAPI

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command()(serve)


def serve(
    classifier: Annotated[Path, typer.Argument(help="A classifier file.")],
    host: Annotated[
        str, typer.Option(help="Address to listen on; 0.0.0.0 is every interface.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on; 0 is any free one.")] = 8000,
    jobs: Annotated[int, typer.Option(help="Threads that classify; -1 for all cores.")] = -1,
    max_queue: Annotated[
        int, typer.Option(help="Pictures that may wait for a thread; further ones get 503.")
    ] = 64,
    max_body_size: Annotated[
        str, typer.Option(help='Largest request body: "10MiB", "500kB" or bytes.')
    ] = "10MiB",
    max_pixels: Annotated[
        int, typer.Option(help="Most pixels of a picture; its header is checked first.")
    ] = 1 << 25,
    body_timeout: Annotated[
        float, typer.Option(help="Seconds within which a request body must arrive.")
    ] = 30.0,
) -> None:
    """Serve a classifier over HTTP: POST /predict, and a page to draw on.

    Example: visionshare serve out/digits/classifier.safetensors

    There is no authentication and no TLS: to serve other machines, put a reverse proxy before it.
    """
    from visionshare import load
    from visionshare.apps.service import Limits, require_service, service
    from visionshare.resources import parse_size, resolve_jobs

    require_service()
    if not 0 <= port < 1 << 16:
        raise InputError("--port", port, "a number from 0 to 65535")
    limits = Limits(
        max_body_size=parse_size(max_body_size, "--max-body-size"),
        max_pixels=max_pixels,
        threads=resolve_jobs(jobs, "--jobs"),
        max_queue=max_queue,
        body_timeout=body_timeout,
    )
    app = service(load(classifier), limits)
    # Invalid forms are answered, not logged.
    logging.getLogger("python_multipart").setLevel(logging.ERROR)
    with _listen(host, port) as server:
        address = server.getsockname()
        name = f"[{address[0]}]" if server.family == socket.AF_INET6 else address[0]
        typer.echo(f"serving http://{name}:{address[1]}/ (Ctrl-C ends it)")
        _run(app, server)


def _run(app: FastAPI, server: socket.socket) -> None:
    """Answer requests until the process is told to end."""
    import uvicorn

    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        ws="none",
        limit_concurrency=512,
        timeout_keep_alive=10,
        timeout_graceful_shutdown=10,
    )
    # uvicorn ends the requests that run, and then raises the signal again.
    with suppress(KeyboardInterrupt):
        uvicorn.Server(config).run(sockets=[server])


def _listen(host: str, port: int) -> socket.socket:
    """Return a socket that is bound to the address.

    Raises
    ------
    ServiceError
        If it cannot be.
    """
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        server = socket.socket(family, socket.SOCK_STREAM)
        try:
            server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            server.bind(address)
            # Clients may connect from here on, and wait until the service answers.
            server.listen()
        except BaseException:
            server.close()
            raise
        return server
    except (OSError, UnicodeError) as error:
        raise ServiceError(f"{host}:{port}: cannot listen there ({error})") from None
