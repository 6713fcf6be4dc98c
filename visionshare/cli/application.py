"""The application: all commands of the command line."""

from __future__ import annotations

from typing import Annotated

import typer

from visionshare.cli import (
    data,
    design,
    evaluation,
    explanation,
    export,
    extraction,
    prediction,
    reading,
    samples,
    segmentation,
    serving,
    stores,
    training,
    transfer,
)

__all__ = ["app"]

app = typer.Typer(
    name="visionshare",
    help=(
        "Train and use image classifiers of few shared features.\n\n"
        "Start: visionshare train digits, then look at out/digits/report.html\n\n"
        "Then: visionshare predict out/digits/classifier.safetensors IMAGE..."
    ),
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
training.register(app)
samples.register(app)
design.register(app)
evaluation.register(app)
prediction.register(app)
explanation.register(app)
extraction.register(app)
segmentation.register(app)
reading.register(app)
transfer.register(app)
export.register(app)
serving.register(app)
app.add_typer(stores.app, name="store")
app.add_typer(data.app, name="data")


def _version(show: bool) -> None:
    if show:
        from visionshare import __version__

        typer.echo(f"visionshare {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks of errors.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", help="Log what is done.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show no progress.")] = False,
) -> None:
    if verbose:
        import logging

        logging.basicConfig(level=logging.INFO, format="%(name)s: %(message)s")
