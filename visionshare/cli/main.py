"""The command line's entry: commands, errors of one line, exit codes."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from visionshare.cli import (
    classify,
    data,
    export,
    extraction,
    prediction,
    reading,
    segmentation,
    serving,
    stores,
    training,
    transfer,
)
from visionshare.errors import VisionshareError

__all__ = ["app", "main"]

_INTERRUPTED = 130

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
classify.register(app)
prediction.register(app)
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
    verbose: Annotated[bool, typer.Option("--verbose", help="Log progress.")] = False,
) -> None:
    if verbose:
        import logging

        logging.basicConfig(level=logging.INFO, format="%(name)s: %(message)s")


def _stopped(arguments: list[str]) -> int:
    hint = "; the same command with --resume resumes it" if "train" in arguments[:3] else ""
    typer.echo(f"stopped{hint}", err=True)
    return _INTERRUPTED


def _failed(message: str) -> int:
    typer.echo(f"error: {' '.join(message.split())}", err=True)
    return 2


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; return its exit code.

    Errors that the library raises on purpose are one line on standard error and exit code 2;
    ``--debug`` before the command shows their traceback.

    Parameters
    ----------
    arguments : list of str, optional
        Those of the process when omitted.

    Examples
    --------
    >>> main(["--version"])
    visionshare ...
    0
    """
    arguments = sys.argv[1:] if arguments is None else arguments
    debug = "--debug" in arguments
    try:
        result = app(arguments, "visionshare", standalone_mode=False)
        code = result if isinstance(result, int) else 0
        # Some versions of typer return this code after an interrupt.
        return _stopped(arguments) if code == _INTERRUPTED else code
    except VisionshareError as error:
        if debug:
            raise
        return _failed(str(error))
    except (KeyboardInterrupt, typer.Abort):
        return _stopped(arguments)
    except BrokenPipeError:
        return 1
    except Exception as error:
        # What typer raises for wrong options.
        if hasattr(error, "format_message"):
            return _failed(error.format_message())
        if debug:
            raise
        return _failed(f"{type(error).__name__}: {error} (--debug shows where)")
