"""The command that maps the classes of a large image."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from visionshare.cli.options import Classifier, Jobs, Json, Memory, Picture
from visionshare.cli.outputs import check_file, write_png
from visionshare.cli.text import say
from visionshare.errors import DataError, InputError

# An indexed PNG has no more.
_MOST_CLASSES = 256


def segment(
    classifier: Classifier,
    image: Picture,
    out: Annotated[
        Path,
        typer.Option(
            metavar="FILE", help="Map to write (.png). Each pixel is the number of its class."
        ),
    ],
    step: Annotated[int, typer.Option(help="Distance between classified pixels.")] = 1,
    overlay: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Picture to write (.png): the image under the colors of the map."
        ),
    ] = None,
    smooth: Annotated[
        int, typer.Option(help="Side of the majority filter's square, an odd number.")
    ] = 1,
    memory: Memory = "256MiB",
    threads: Jobs = -1,
    as_json: Json = False,
) -> None:
    """Segment an image: each pixel gets the class of the window around it.

    Example: visionshare segment out/textures/classifier.safetensors wall.png --out map.png

    Example: visionshare segment CLASSIFIER scan.tiff --out map.png --overlay seen.png --smooth 9
    """
    import numpy as np
    from PIL import Image

    from visionshare import load
    from visionshare.class_labels import class_names
    from visionshare.datasets.folders import read_image
    from visionshare.reading import segmentation

    segmentation.check_side(smooth)
    check_file("--out", out, suffix=".png", inputs=[classifier, image])
    if overlay is not None:
        check_file("--overlay", overlay, suffix=".png", inputs=[classifier, image])
        if overlay.absolute() == out.absolute():
            raise InputError("--overlay", str(overlay), "a file other than --out")
    model = load(classifier)
    k = len(model.classes_)
    shape = model.image_shape
    if len(shape) == 1:
        raise DataError(f"{classifier}: classifies vectors, not images")
    if k > _MOST_CLASSES:
        raise DataError(f"{classifier}: {k} classes; a map has at most {_MOST_CLASSES}")
    raster = read_image(image, mode="color" if shape[2:] == (3,) else "gray")
    pixels = raster[..., None] if shape[2:] == (1,) else raster
    labels = segmentation.label_map(model, pixels, step, smooth, threads, memory)
    # A pixel's value is its class, the palette its color.
    colors = segmentation.class_colors(k)
    size = (labels.shape[1], labels.shape[0])
    drawn = Image.frombytes("P", size, labels.astype("uint8").tobytes())
    drawn.putpalette(colors.tobytes())
    write_png(out, drawn)
    if overlay is not None:
        write_png(overlay, Image.fromarray(segmentation.overlay(raster, labels, k)))
    shares = (np.bincount(labels.ravel(), minlength=k) / labels.size).round(6).tolist()
    legend = [
        {"index": c, "class": name, "color": f"#{bytes(colors[c]).hex()}", "share": shares[c]}
        for c, name in enumerate(class_names(model.classes_))
    ]
    if as_json:
        say(json.dumps({"image": str(image), "map": str(out), "classes": legend}))
        return
    for entry in legend:
        say(f"{entry['color']}  {100 * entry['share']:6.2f} %  {entry['class']}")
    say(f"map      {out}")
