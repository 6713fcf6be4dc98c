"""The application: all commands of the command line."""

from __future__ import annotations

from typing import Annotated

import typer

from visionshare.cli import (
    data,
    evaluation,
    explanation,
    export,
    extraction,
    listing,
    prediction,
    reading,
    samples,
    segmentation,
    serving,
    stores,
    training,
    transfer,
)
from visionshare.cli.commands import Commands, switched
from visionshare.cli.text import say

__all__ = ["app"]

app = Commands(
    "visionshare",
    (
        "Train and use image classifiers of few shared features.\n\n"
        "Start: visionshare train digits, then look at out/digits/report.html\n\n"
        "Then: visionshare predict out/digits/classifier.safetensors IMAGE..."
    ),
    add_completion=True,
)
for part in (
    training,
    samples,
    evaluation,
    prediction,
    explanation,
    extraction,
    segmentation,
    reading,
    transfer,
    export,
    serving,
    listing,
):
    part.register(app)
app.add_typer(stores.app, name="store")
app.add_typer(data.app, name="data")


def _version(show: bool) -> None:
    if show:
        from visionshare import __version__

        say(f"visionshare {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
    debug: Annotated[
        bool,
        typer.Option(
            "--debug", callback=switched, expose_value=False, help="Show tracebacks of errors."
        ),
    ] = False,
    verbose: Annotated[
        bool,
        typer.Option(
            "--verbose", "-v", callback=switched, expose_value=False, help="Log what is done."
        ),
    ] = False,
    quiet: Annotated[
        bool,
        typer.Option(
            "--quiet", "-q", callback=switched, expose_value=False, help="Show no progress."
        ),
    ] = False,
) -> None:
    """Options of all commands; they may stand after the command as well."""
