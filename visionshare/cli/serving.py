"""The command that serves a classifier over HTTP."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from visionshare.cli.options import Classifier
from visionshare.cli.text import say
from visionshare.errors import InputError

if TYPE_CHECKING:
    from visionshare.cli.commands import Commands

__all__ = ["register"]


def register(app: Commands) -> None:
    """Add the command to the application."""
    app.command()(serve)


def serve(
    classifier: Classifier,
    host: Annotated[
        str, typer.Option(help="Address to listen on; 0.0.0.0 is every interface.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on; 0 is any free one.")] = 8000,
    jobs: Annotated[
        int, typer.Option("--jobs", "-j", help="Threads that classify; -1 for all cores.")
    ] = -1,
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
    header_timeout: Annotated[
        float, typer.Option(help="Seconds within which a request's headers must arrive.")
    ] = 10.0,
    max_connections: Annotated[
        int, typer.Option(help="Connections of a worker; further ones wait.")
    ] = 4096,
    max_body_memory: Annotated[
        str, typer.Option(help="Memory for all request bodies of a worker together.")
    ] = "64MiB",
    host_name: Annotated[
        list[str] | None,
        typer.Option(
            help="Name that the Host header of requests may have; repeatable; * is any. "
            "Default: the address, and localhost."
        ),
    ] = None,
    token_file: Annotated[
        Path | None,
        typer.Option(help="File with a token that requests must carry (Authorization: Bearer)."),
    ] = None,
    workers: Annotated[int, typer.Option(help="Processes that answer requests.")] = 1,
    name: Annotated[
        str | None,
        typer.Option(help="Name of the model under /v2/models; the file's by default."),
    ] = None,
) -> None:
    """Serve a classifier over HTTP: POST /predict, and a page to try it on."""
    # Example: visionshare serve out/digits/classifier.safetensors There is no TLS: to serve other
    # machines, put a reverse proxy before it. The file is loaded again on SIGHUP.
    from visionshare import load
    from visionshare.machine.resources import parse_size, resolve_jobs
    from visionshare.service import Limits, require_service

    require_service()
    from visionshare.service.access import default_host_names, host_of, read_token
    from visionshare.service.server import Settings, reserved, run
    from visionshare.service.workers import run_workers

    if not 0 <= port < 1 << 16:
        raise InputError("--port", port, "a number from 0 to 65535")
    # On Windows one of the processes would get all connections.
    most_workers = 1 if sys.platform == "win32" else 256
    if not 1 <= workers <= most_workers:
        accepted = f"a number of processes from 1 to {most_workers}"
        raise InputError("--workers", workers, accepted)
    for given in host_name or []:
        if given != "*" and not host_of(given if ":" not in given else f"[{given.strip('[]')}]"):
            raise InputError("--host-name", given, "a name or an address without a port, or *")
    settings = Settings(
        classifier,
        Limits(
            max_body_size=parse_size(max_body_size, "--max-body-size"),
            max_pixels=max_pixels,
            threads=resolve_jobs(jobs, "--jobs"),
            max_queue=max_queue,
            body_timeout=body_timeout,
            header_timeout=header_timeout,
            max_connections=max_connections,
            max_body_memory=parse_size(max_body_memory, "--max-body-memory"),
        ),
        tuple(host_name) if host_name else default_host_names(host),
        None if token_file is None else read_token(token_file),
        name or classifier.stem,
    )
    # A file that cannot be served ends the command before it listens.
    app = settings.application() if workers == 1 else None
    if app is None:
        load(classifier)
    with reserved(host, port) as address:
        url = f"[{address[0]}]" if ":" in address[0] else address[0]

        def on_ready() -> None:
            say(f"serving http://{url}:{address[1]}/ (Ctrl-C ends it)")

        if app is None:
            run_workers(settings, address, workers, on_ready)
        else:
            run(app, settings, address, on_ready)
