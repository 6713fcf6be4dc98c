"""The command that says where things are in pictures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from visionshare.cli.images import Images, image_paths
from visionshare.cli.options import Classifier, Jobs, Json
from visionshare.cli.outputs import check_file, write_png
from visionshare.cli.text import portable, say
from visionshare.errors import DataError, InputError

if TYPE_CHECKING:
    import numpy as np

    from visionshare.reading.finding import Found


def find(
    classifier: Classifier,
    images: Images,
    overlay: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Picture with the boxes to write (.png), or a folder for several pictures.",
        ),
    ] = None,
    smallest: Annotated[
        int | None, typer.Option(help="Shorter side of the smallest object, in pixels.")
    ] = None,
    least: Annotated[float, typer.Option(help="Minimum score of a box, 0 to 1.")] = 0.1,
    threads: Jobs = -1,
    as_json: Json = False,
) -> None:
    """Find objects in pictures: boxes and classes.

    Needs a classifier of crops, trained with --reject: what it refuses is background. Train with
    --background too (photographs without such objects) to find more.

    Example: visionshare find out/signs/classifier.safetensors street.jpg --overlay found.png

    Example: visionshare find out/signs/classifier.safetensors streets/ --overlay found/ --json
    """
    from visionshare import load
    from visionshare.datasets.folders import read_image
    from visionshare.reading.finding import find as find_things

    paths = list(image_paths(images))
    overlays = _overlays(overlay, paths, classifier)
    model = load(classifier)
    n_broken = 0
    for path, drawn in zip(paths, overlays, strict=True):
        try:
            picture = read_image(path, mode=model.picture_mode)
        except DataError as error:
            if len(paths) == 1:
                raise
            say(f"error: {error}", err=True)
            n_broken += 1
            continue
        found = find_things(model, picture, smallest=smallest, least=least, n_jobs=threads)
        if drawn is not None:
            _draw(picture, found, drawn)
        if as_json:
            records = [
                {"box": list(o.box), "class": o.label, "score": round(o.score, 4)} for o in found
            ]
            say(json.dumps({"image": path, "found": records}))
            continue
        name = f"{portable(path)}\t" if len(paths) > 1 else ""
        for one in found:
            box = ",".join(map(str, one.box))
            say(f"{name}{box}\t{portable(str(one.label))}\t{one.score:.4f}")
        if not found:
            say(f"{name}nothing found", err=True)
    if n_broken:
        raise DataError(f"{n_broken} of {len(paths)} pictures could not be read")


def _overlays(overlay: Path | None, paths: list[str], classifier: Path) -> list[Path | None]:
    """Return the file of each picture's overlay, checked."""
    if overlay is None:
        return [None] * len(paths)
    if len(paths) == 1:
        files = [overlay]
    else:
        if overlay.suffix or overlay.is_file():
            raise InputError("--overlay", str(overlay), "a folder: there are several pictures")
        files = [overlay / f"{Path(path).stem}.png" for path in paths]
        if len(set(files)) < len(files):
            raise InputError("images", "two pictures of one name", "--overlay for each alone")
    for file in files:
        check_file("--overlay", file, suffix=".png", inputs=[classifier, *paths])
    files[0].parent.mkdir(parents=True, exist_ok=True)
    return list(files)


def _draw(picture: np.ndarray, found: list[Found], file: Path) -> None:
    """Write a picture with the boxes of what was found."""
    from PIL import Image, ImageDraw

    from visionshare.reports.encoding import rgb_picture

    drawn = Image.fromarray(rgb_picture(picture))
    draw = ImageDraw.Draw(drawn)
    for one in found:
        top, left, bottom, right = one.box
        draw.rectangle((left, top, right - 1, bottom - 1), outline=(200, 20, 40), width=2)
        name = str(one.label).encode("latin-1", "replace").decode("latin-1")
        draw.text((left + 3, top + 2), name, fill=(200, 20, 40))
    write_png(file, drawn)
