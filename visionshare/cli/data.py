"""Commands of the data catalog."""

from __future__ import annotations

import json
import sys
from typing import Annotated

import typer

from visionshare.cli.options import DataFolder

__all__ = ["app"]

app = typer.Typer(help="List, verify and download data sets.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(help="Name of a data set, see `visionshare data list`.")]


@app.command("list")
def list_all() -> None:
    """List the data sets of the catalog.

    Example: visionshare data list
    """
    from visionshare.datasets import dataset_info, list_datasets

    for name in list_datasets():
        typer.echo(f"{name:16} {dataset_info(name).title}")


@app.command()
def info(name: Name) -> None:
    """Show a data set's origin, license and files.

    Example: visionshare data info mnist
    """
    from visionshare.datasets import dataset_info

    typer.echo(json.dumps(dataset_info(name).model_dump(), indent=2, ensure_ascii=False))


@app.command()
def verify(name: Name, data: DataFolder = None) -> None:
    """Check the sha256 of a data set's files.

    Example: visionshare data verify mnist --data ~/data
    """
    from visionshare.datasets import verify_dataset

    states = verify_dataset(name, data)
    for path, state in states.items():
        typer.echo(f"{state:8} {path}")
    if not states:
        typer.echo(f"{name} has no files that the catalog lists: there is nothing to verify")
    if any(state != "ok" for state in states.values()):
        raise typer.Exit(1)


@app.command()
def fetch(
    name: Name,
    data: DataFolder = None,
    mirror: Annotated[
        str | None,
        typer.Option(help="URL that replaces the catalog's; the file's path is added."),
    ] = None,
) -> None:
    """Download the files of a data set that are missing, and check their sha256.

    Example: visionshare data fetch mnist
    """
    from visionshare.datasets import fetch_dataset

    for path in fetch_dataset(name, data, mirror, sys.stderr.isatty()):
        typer.echo(path)
