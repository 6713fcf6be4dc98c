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
        int, typer.Option("--jobs", "-j", help="Threads that classify; -1 for all cores.")
    ] = -1
    max_queue: Annotated[
        int, typer.Option(help="Pictures that may wait for a thread; further ones get 503.")
    ] = 64
    max_body_size: Annotated[
        str, typer.Option(metavar="SIZE", help='Largest request body: "10MiB", "500kB" or bytes.')
    ] = "10MiB"
    max_pixels: Annotated[
        int, typer.Option(help="Most pixels of a picture; its header is checked first.")
    ] = 1 << 25
    body_timeout: Annotated[
        float,
        typer.Option(metavar="SECONDS", help="Time within which a request body must arrive."),
    ] = 30.0
    header_timeout: Annotated[
        float,
        typer.Option(metavar="SECONDS", help="Time within which a request's headers must arrive."),
    ] = 10.0
    max_connections: Annotated[
        int, typer.Option(help="Connections of a worker; further ones wait.")
    ] = 4096
    max_body_memory: Annotated[
        str,
        typer.Option(metavar="SIZE", help="Memory for all request bodies of a worker together."),
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
        str, typer.Option(metavar="ADDRESS", help="To listen on; 0.0.0.0 is every interface.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on; 0 is any free one.")] = 8000,
    host_name: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Name that the Host header of requests may have; repeatable; * is any. "
            "Default: the address, and localhost.",
        ),
    ] = None,
    token_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="File with a token that requests must carry (Authorization: Bearer).",
        ),
    ] = None,
    workers: Annotated[int, typer.Option(help="Processes that answer requests.")] = 1,
    name: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Name of the model in /health; the file's by default."),
    ] = None,
    meter: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A meter's TOML file: POST /meter reads its frames."),
    ] = None,
    examples: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Folder of pictures, some of which the page offers."),
    ] = None,
    *,
    limits: LimitOptions,
) -> None:
    """Serve a classifier over HTTP, with a page to try it on.

    Example: visionshare serve out/digits/classifier.safetensors

    There is no TLS: to serve other machines, put a reverse proxy before it. The file is loaded
    again on SIGHUP.
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
