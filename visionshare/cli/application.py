"""The application: all commands of the command line."""

from __future__ import annotations

from typing import Annotated

import typer

from visionshare.cli import data, stores
from visionshare.cli.commands import SHARED, Commands
from visionshare.cli.evaluation import evaluate, inspect
from visionshare.cli.explanation import explain
from visionshare.cli.export import export
from visionshare.cli.extraction import extract
from visionshare.cli.finding import find
from visionshare.cli.labeling import suggest
from visionshare.cli.listing import list_names, models
from visionshare.cli.measuring import bench, measure
from visionshare.cli.metering import meter
from visionshare.cli.prediction import predict, prepare
from visionshare.cli.reading import read
from visionshare.cli.segmentation import segment
from visionshare.cli.serving import serve
from visionshare.cli.text import say
from visionshare.cli.training import train, warmup
from visionshare.cli.transfer import transfer

_COMMANDS = {
    "Learn": (train, transfer, suggest, data.samples, warmup),
    "Use": (predict, find, segment, read, meter, extract, serve),
    "Understand": (evaluate, explain, inspect, bench),
    "Export": (export, measure, prepare),
}

app = Commands(
    "visionshare",
    (
        "Train and use image classifiers of few shared features.\n\n"
        "Start: visionshare train digits, then look at out/digits/report.html\n\n"
        "Then: visionshare predict out/digits/classifier.safetensors IMAGE..."
    ),
    add_completion=True,
)
for heading, functions in _COMMANDS.items():
    for function in functions:
        app.command(rich_help_panel=heading)(function)
app.add_typer(data.app, name="data", rich_help_panel="Data")
app.add_typer(stores.app, name="store", rich_help_panel="Data")
app.command("list", rich_help_panel="Data")(list_names)
app.command(rich_help_panel="Data")(models)


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
        bool, typer.Option("--debug", help="Show tracebacks of errors.", **SHARED)
    ] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Log what is done.", **SHARED)
    ] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Show no progress.", **SHARED)
    ] = False,
) -> None:
    """Options of all commands; they may stand after the command as well."""
