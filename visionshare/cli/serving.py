"""The command that serves a classifier over HTTP."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from visionshare.cli.options import Classifier
from visionshare.cli.text import say
from visionshare.errors import InputError

if TYPE_CHECKING:
    from visionshare.service import Limits


@dataclass(frozen=True)
class LimitOptions:
    """Limits."""

    jobs: Annotated[
        int,
        typer.Option("--jobs", "-j", help="Number of classifying threads. -1 means one per core."),
    ] = -1
    max_queue: Annotated[
        int,
        typer.Option(help="Maximum number of pictures in the queue. Further ones get status 503."),
    ] = 64
    max_body_size: Annotated[
        str, typer.Option(metavar="SIZE", help='Largest request body: "10MiB", "500kB" or bytes.')
    ] = "10MiB"
    max_pixels: Annotated[
        int, typer.Option(help="Maximum number of pixels of a picture, checked before decoding.")
    ] = 1 << 25
    body_timeout: Annotated[
        float,
        typer.Option(metavar="SECONDS", help="Time limit for receiving a request body."),
    ] = 30.0
    header_timeout: Annotated[
        float,
        typer.Option(metavar="SECONDS", help="Time limit for receiving request headers."),
    ] = 10.0
    max_connections: Annotated[
        int, typer.Option(help="Maximum connections per worker. Further ones wait.")
    ] = 4096
    max_body_memory: Annotated[
        str,
        typer.Option(metavar="SIZE", help="Memory for all request bodies of a worker."),
    ] = "64MiB"

    def checked(self) -> Limits:
        """Return the limits as the service takes them."""
        from visionshare.machine.resources import parse_size, resolve_jobs
        from visionshare.service import Limits

        return Limits(
            max_body_size=parse_size(self.max_body_size, "--max-body-size"),
            max_pixels=self.max_pixels,
            threads=resolve_jobs(self.jobs, "--jobs"),
            max_queue=self.max_queue,
            body_timeout=self.body_timeout,
            header_timeout=self.header_timeout,
            max_connections=self.max_connections,
            max_body_memory=parse_size(self.max_body_memory, "--max-body-memory"),
        )


def serve(
    classifier: Classifier,
    host: Annotated[
        str,
        typer.Option(metavar="ADDRESS", help="Address to listen on. 0.0.0.0 means all interfaces."),
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on. 0 picks a free one.")] = 8000,
    host_name: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Accepted value of the Host header. May be repeated; * accepts any. Default: the "
            "address and localhost.",
        ),
    ] = None,
    token_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="File with the token that requests must send (Authorization: Bearer).",
        ),
    ] = None,
    workers: Annotated[int, typer.Option(help="Number of processes that answer requests.")] = 1,
    name: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Name of the model in /health. Default: the file name."),
    ] = None,
    meter: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="TOML file of a meter. POST /meter then reads its frames."
        ),
    ] = None,
    examples: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Folder with example pictures for the page."),
    ] = None,
    *,
    limits: LimitOptions,
) -> None:
    """Serve a classifier over HTTP, with a page to try it on.

    Example: visionshare serve out/digits/classifier.safetensors

    There is no TLS: to serve other machines, put a reverse proxy in front. SIGHUP reloads the file.
    """
    from visionshare import load
    from visionshare.reading.meter_file import read_meter
    from visionshare.service import require_service

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
        limits.checked(),
        tuple(host_name) if host_name else default_host_names(host),
        None if token_file is None else read_token(token_file),
        name or classifier.stem,
        meter,
        () if examples is None else _some_pictures(examples),
    )
    with reserved(host, port) as address:
        # A file that cannot be served ends the command before it listens.
        app = settings.application() if workers == 1 else None
        if app is None:
            load(classifier)
        if app is None and meter is not None:
            read_meter(meter)
        url = f"[{address[0]}]" if ":" in address[0] else address[0]

        def on_ready() -> None:
            say(f"serving http://{url}:{address[1]}/ (Ctrl-C ends it)")

        if app is None:
            run_workers(settings, address, workers, on_ready)
        else:
            run(app, settings, address, on_ready)


def _some_pictures(folder: Path, most: int = 12) -> tuple[Path, ...]:
    """Return pictures from all over a folder."""
    from visionshare.datasets.folders import find_images

    if not folder.is_dir():
        raise InputError("--examples", str(folder), "a folder of pictures")
    files = find_images(folder)
    step = max(1, -(-len(files) // most))
    return tuple(files[::step])
