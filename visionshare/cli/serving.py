"""The command that serves a classifier on the web."""

from __future__ import annotations

import logging
import socket
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from visionshare.errors import InputError, ServiceError

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command()(serve)


def serve(
    classifier: Annotated[Path, typer.Argument(help="A classifier file.")],
    host: Annotated[str, typer.Option(help="Address to listen on; 0.0.0.0 for all.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port; 0 for any that is free.")] = 8000,
    threads: Annotated[int, typer.Option(help="Pictures at once; -1 for all cores.")] = -1,
    body: Annotated[str, typer.Option(help="Bytes of a request at most.")] = "10MiB",
    pixels: Annotated[int, typer.Option(help="Pixels of a picture at most.")] = 1 << 25,
    waiting: Annotated[int, typer.Option(help="Pictures that may wait for a thread.")] = 64,
) -> None:
    """Serve a classifier: POST /predict, and a page to draw on.

    Example: visionshare serve out/digits/classifier.safetensors

    It knows no users and no TLS: beyond this machine, put a proxy that does before it.
    """
    from visionshare import load
    from visionshare.apps.service import Limits, require_service, service
    from visionshare.resources import parse_size, resolve_jobs

    require_service()
    import uvicorn

    if not 0 <= port < 1 << 16:
        raise InputError("--port", port, "a number from 0 to 65535")
    limits = Limits(parse_size(body, "--body"), pixels, resolve_jobs(threads, "--threads"), waiting)
    app = service(load(classifier), limits)
    # A stranger's broken forms are answered, not logged.
    logging.getLogger("python_multipart").setLevel(logging.ERROR)
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
    with _listening(host, port) as held:
        place = held.getsockname()
        name = f"[{place[0]}]" if held.family == socket.AF_INET6 else place[0]
        typer.echo(f"serving http://{name}:{place[1]}/ (Ctrl-C ends it)")
        # uvicorn ends what runs, and then raises the signal again.
        with suppress(KeyboardInterrupt):
            uvicorn.Server(config).run(sockets=[held])


def _listening(host: str, port: int) -> socket.socket:
    """Return a socket that is bound to the address.

    Raises
    ------
    ServiceError
        If it cannot be.
    """
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        held = socket.socket(family, socket.SOCK_STREAM)
        try:
            held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            held.bind(address)
        except BaseException:
            held.close()
            raise
        return held
    except (OSError, UnicodeError) as error:
        raise ServiceError(f"{host}:{port}: cannot be listened on ({error})") from None
