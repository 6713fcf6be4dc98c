"""The command that writes sample pictures."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from visionshare.cli.text import say

if TYPE_CHECKING:
    from visionshare.cli.commands import Commands

__all__ = ["register"]


def register(app: Commands) -> None:
    """Add the command to the application."""
    app.command()(samples)


def samples(
    folder: Annotated[
        Path, typer.Argument(help="Folder to make; nothing of this name may be there.")
    ] = Path("samples"),
) -> None:
    """Write sample pictures, to try the other commands on: nothing is downloaded."""
    # Example: visionshare samples Example: visionshare samples pictures && visionshare train
    # pictures/signs
    from visionshare.datasets.samples import write_samples

    for name, text in write_samples(folder).items():
        say(f"{folder / name!s:24} {text}")
    say(f"next: visionshare train {folder / 'signs'}")
