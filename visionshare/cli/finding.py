"""The command that says where things are in a picture."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from visionshare.cli.options import Classifier, Jobs, Json, Picture
from visionshare.cli.outputs import check_file, write_png
from visionshare.cli.text import portable, say


def find(
    classifier: Classifier,
    image: Picture,
    overlay: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The picture with the boxes, a .png.")
    ] = None,
    smallest: Annotated[
        int | None, typer.Option(help="Shorter side of the smallest object, in pixels.")
    ] = None,
    least: Annotated[float, typer.Option(help="Lowest score of a box, 0 to 1.")] = 0.02,
    jobs: Jobs = -1,
    as_json: Json = False,
) -> None:
    """Find objects in a picture: boxes and classes.

    Takes a classifier of crops, trained with --reject: what it refuses is background.

    Example: visionshare find out/signs/classifier.safetensors street.jpg --overlay found.png
    """
    from PIL import Image, ImageDraw

    from visionshare import load
    from visionshare.datasets.folders import read_image
    from visionshare.machine.resources import resolve_jobs
    from visionshare.reading.finding import find as find_things
    from visionshare.reports.encoding import rgb_picture

    if overlay is not None:
        check_file("--overlay", overlay, suffix=".png", inputs=[classifier, image])
    model = load(classifier)
    picture = read_image(image, mode=model.picture_mode)
    threads = resolve_jobs(jobs, "--jobs")
    found = find_things(model, picture, smallest=smallest, least=least, n_jobs=threads)
    if overlay is not None:
        drawn = Image.fromarray(rgb_picture(picture))
        draw = ImageDraw.Draw(drawn)
        for one in found:
            top, left, bottom, right = one.box
            draw.rectangle((left, top, right - 1, bottom - 1), outline=(200, 20, 40), width=2)
            name = str(one.label).encode("latin-1", "replace").decode("latin-1")
            draw.text((left + 3, top + 2), name, fill=(200, 20, 40))
        write_png(overlay, drawn)
    if as_json:
        records = [
            {"box": list(o.box), "class": o.label, "score": round(o.score, 4)} for o in found
        ]
        say(json.dumps({"image": str(image), "found": records}))
        return
    for one in found:
        say(f"{','.join(map(str, one.box))}\t{portable(str(one.label))}\t{one.score:.4f}")
    if not found:
        say("nothing found", err=True)
