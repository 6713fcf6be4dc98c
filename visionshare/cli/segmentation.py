"""The command that maps the classes of a large image."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from visionshare.class_labels import class_names
from visionshare.cli.options import Classifier, Jobs, Json, Picture
from visionshare.cli.outputs import check_file, check_not_inputs
from visionshare.cli.text import say
from visionshare.errors import DataError, InputError

if TYPE_CHECKING:
    import numpy as np

    from visionshare.cli.commands import Commands

__all__ = ["register"]

# An indexed PNG has no more.
_MOST_CLASSES = 256


def register(app: Commands) -> None:
    """Add the command to the application."""
    app.command()(segment)


def segment(
    classifier: Classifier,
    image: Picture,
    out: Annotated[Path, typer.Option("--out", help="The map, a .png; a pixel is its class.")],
    step: Annotated[int, typer.Option(help="Distance of the pixels that are classified.")] = 1,
    overlay: Annotated[
        Path | None, typer.Option("--overlay", help="The image under the map's colors, a .png.")
    ] = None,
    smooth: Annotated[
        int, typer.Option(help="Side of the square of the majority filter; odd.")
    ] = 1,
    memory: Annotated[str, typer.Option(help="Memory for features.")] = "256MiB",
    jobs: Jobs = -1,
    as_json: Json = False,
) -> None:
    """Map an image: each pixel gets the class of the window around it."""
    # Example: visionshare segment out/textures/classifier.safetensors wall.png --out map.png
    # Example: visionshare segment CLASSIFIER scan.tiff --out map.png --overlay seen.png --smooth
    # 9
    import numpy as np

    from visionshare import load
    from visionshare.datasets.folders import read_image
    from visionshare.machine.resources import resolve_jobs
    from visionshare.reading.segmentation import check_side, class_colors, label_map

    threads = resolve_jobs(jobs, "--jobs")
    check_side(smooth)
    for option, path in (("--out", out), ("--overlay", overlay)):
        if path is None:
            continue
        if path.suffix.lower() != ".png":
            raise InputError(option, str(path), "a .png file")
        check_file(option, path)
        check_not_inputs(option, [path], [classifier, image])
    if overlay is not None and overlay.absolute() == out.absolute():
        raise InputError("--overlay", str(overlay), "another file than that of --out")
    model = load(classifier)
    k, shape = len(model.classes_), model.image_shape
    if len(shape) == 1:
        raise DataError(f"{classifier}: classifies vectors, not images")
    if k > _MOST_CLASSES:
        raise DataError(f"{classifier}: {k} classes; a map has at most {_MOST_CLASSES}")
    raster = read_image(image, mode="color" if shape[2:] == (3,) else "gray")
    pixels = raster[..., None] if shape[2:] == (1,) else raster
    labels = label_map(model, pixels, step, smooth, threads, memory)
    colors = class_colors(k)
    _write_map(out, labels, colors)
    if overlay is not None:
        _write_overlay(overlay, raster, labels, k)
    names = class_names(model.classes_)
    fractions = (np.bincount(labels.ravel(), minlength=k) / labels.size).round(6).tolist()
    legend = [
        {"index": c, "class": names[c], "color": "#" + bytes(colors[c]).hex(),
         "share": fractions[c]}
        for c in range(k)
    ]  # fmt: skip
    _say({"image": str(image), "map": str(out), "classes": legend}, as_json)


def _say(figures: dict[str, Any], as_json: bool) -> None:
    if as_json:
        say(json.dumps(figures))
        return
    for entry in figures["classes"]:
        say(f"{entry['color']}  {100 * entry['share']:6.2f} %  {entry['class']}")
    say(f"map      {figures['map']}")


def _write_map(path: Path, labels: np.ndarray, colors: np.ndarray) -> None:
    """Write an indexed PNG: a pixel's value is its class, the palette its color."""
    from PIL import Image

    from visionshare.files.durable import replace_file

    height, width = labels.shape
    picture = Image.frombytes("P", (width, height), labels.astype("uint8").tobytes())
    picture.putpalette(colors.tobytes())
    with replace_file(path) as partial:
        picture.save(partial, format="png")


def _write_overlay(path: Path, raster: np.ndarray, labels: np.ndarray, k: int) -> None:
    from PIL import Image

    from visionshare.files.durable import replace_file
    from visionshare.reading.segmentation import overlay

    with replace_file(path) as partial:
        Image.fromarray(overlay(raster, labels, k)).save(partial, format="png")
