"""Commands that look after column stores."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from visionshare.cli.commands import Commands
from visionshare.cli.outputs import check_file
from visionshare.cli.text import say

app = Commands("store", "Inspect, verify and repair column stores.")

Folder = Annotated[Path, typer.Argument(help="Folder of a store.")]


@app.command()
def info(store: Folder) -> None:
    """Show what a store contains, as JSON.

    Example: visionshare store info out/mnist/work/store
    """
    from visionshare.store import store_info

    say(json.dumps(store_info(store), indent=2))


@app.command()
def export(
    store: Folder,
    out: Annotated[
        Path,
        typer.Option(metavar="FILE", help="Table to write: .parquet, .csv, .npz, .h5 or .h5ad."),
    ],
    columns: Annotated[
        str | None,
        typer.Option(metavar="NAMES", help="Features to write, separated by commas. Default: all."),
    ] = None,
) -> None:
    """Write the columns of a store as a table, one row per image.

    Example: visionshare store export scans.store --out scans.parquet
    """
    from visionshare.batch import write_table
    from visionshare.batch.tables import check_table
    from visionshare.store import open_store

    check_table(out, "--out")
    check_file("--out", out)
    names = None if columns is None else columns.split(",")
    say(f"table        {write_table(open_store(store), out, names)}")


@app.command()
def verify(store: Folder) -> None:
    """Read every shard and check its checksums.

    Example: visionshare store verify out/mnist/work/store
    """
    from visionshare.store import verify_store

    broken = verify_store(store)
    for name, problem in broken.items():
        say(f"broken   {name}: {problem}")
    if broken:
        say(f"next: visionshare store repair {store}")
        raise typer.Exit(1)
    say("every shard is intact")


@app.command()
def repair(store: Folder) -> None:
    """Drop broken shards; their columns are recomputed on demand.

    Example: visionshare store repair out/mnist/work/store
    """
    from visionshare.store import repair_store

    dropped = repair_store(store)
    for name in dropped:
        say(f"dropped  {name}")
    if not dropped:
        say("nothing to repair")
