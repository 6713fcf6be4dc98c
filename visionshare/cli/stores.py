"""Commands that look after column stores."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from visionshare.cli.commands import Commands

__all__ = ["app"]

app = Commands("store", "Inspect, verify and repair column stores.")

Folder = Annotated[Path, typer.Argument(help="Folder of a store.")]


@app.command()
def info(store: Folder) -> None:
    """Show what a store contains, as JSON.

    Example: visionshare store info out/mnist/work/store
    """
    from visionshare.store import store_info

    typer.echo(json.dumps(store_info(store), indent=2))


@app.command()
def verify(store: Folder) -> None:
    """Read every shard and check its checksums.

    Example: visionshare store verify out/mnist/work/store
    """
    from visionshare.store import verify_store

    broken = verify_store(store)
    for name, problem in broken.items():
        typer.echo(f"broken   {name}: {problem}")
    if broken:
        typer.echo(f"next: visionshare store repair {store}")
        raise typer.Exit(1)
    typer.echo("every shard is intact")


@app.command()
def repair(store: Folder) -> None:
    """Drop broken shards; their columns are recomputed on demand.

    Example: visionshare store repair out/mnist/work/store
    """
    from visionshare.store import repair_store

    dropped = repair_store(store)
    for name in dropped:
        typer.echo(f"dropped  {name}")
    if not dropped:
        typer.echo("nothing to repair")
