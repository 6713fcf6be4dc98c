"""The command that reads meters."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from visionshare.cli.images import Images, image_paths
from visionshare.cli.options import Json
from visionshare.cli.text import say


def meter(
    description: Annotated[Path, typer.Argument(metavar="METER", help="The meter's TOML file.")],
    frames: Images,
    previous: Annotated[
        str | None, typer.Option(metavar="NUMBER", help="Reading before the first frame.")
    ] = None,
    hours: Annotated[
        float | None, typer.Option(metavar="HOURS", help="Hours between readings.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Read the number on a meter from camera frames.

    Example: visionshare meter meter.toml frame.jpg

    Example: visionshare meter meter.toml frames/ --previous 530.07 --hours 1 --json

    A reading that is uncertain, decreases or changes too fast is "unknown"; the exit code is then
    1. The TOML file gives the size and rotation of frames and the positions of marks, digits and
    pointers.
    """
    from visionshare.reading import MeterReader

    reader = MeterReader(description)
    paths = list(image_paths(frames))
    n_unknown = 0
    before = previous
    for path in paths:
        reading = reader.read(path, before, hours)
        n_unknown += reading.value is None
        before = before if reading.value is None else str(reading.value)
        if as_json:
            values = {
                "file": path, "value": None if reading.value is None else reading.text,
                "confidence": round(reading.confidence, 4), "reason": reading.reason,
                "places": reading.places,
            }  # fmt: skip
            say(json.dumps(values))
        else:
            why = f"  ({reading.reason})" if reading.reason else ""
            say(f"{path}  {reading.text}{why}" if len(paths) > 1 else reading.text + why)
    if n_unknown:
        raise typer.Exit(1)
