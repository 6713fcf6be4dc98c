"""The command that writes sample pictures."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from visionshare.cli.text import say


def samples(
    folder: Annotated[Path, typer.Argument(help="Folder to create; it must not exist.")] = Path(
        "samples"
    ),
) -> None:
    """Write sample pictures to try the other commands on.

    Example: visionshare samples

    Example: visionshare samples pictures && visionshare train pictures/signs
    """
    from visionshare.datasets.samples import write_samples

    for name, text in write_samples(folder).items():
        say(f"{folder / name!s:24} {text}")
    say(f"next: visionshare train {folder / 'signs'}")
