"""The small pictures of families, as PNGs that stand in the page."""

from __future__ import annotations

import base64
import io
from typing import Any

import numpy as np

from visionshare.classifier import CompactClassifier
from visionshare.generators.pictures import Plate, Row, Seen, Tile

__all__ = ["plates"]

# Images that show what templates respond to: so many, and so many values of them, at most.
_IMAGES, _VALUES = 500, 2**22
# Of a picture in color.
_COLORS = 32


def plates(
    classifier: CompactClassifier, images: np.ndarray, called: str = "test images"
) -> list[dict[str, Any]]:
    """Return the plates of a classifier's features, with a source for each tile."""
    if len(images) == 0:
        return []
    n = min(_IMAGES, _VALUES // int(np.prod(classifier.image_shape)), len(images))
    sample = images[np.linspace(0, len(images) - 1, max(1, n)).astype(int)]
    seen = Seen(sample, sample, called=called)
    numbers = range(1, classifier.n_features + 1)
    return [_shown(plate) for plate in classifier.family.pictures(seen).plates(numbers)]


def _shown(plate: Plate) -> dict[str, Any]:
    stacks = [
        {"title": stack.title, "rows": [_sources(row) for row in stack.rows]}
        for stack in plate.stacks
    ]
    return {"heading": plate.heading, "caption": plate.caption, "stacks": stacks}


def _sources(row: Row) -> dict[str, Any]:
    return {"sources": [_png(tile) for tile in row.tiles], "label": row.label}


def _png(tile: Tile) -> str:
    from PIL import Image

    data, image = io.BytesIO(), Image.fromarray(_bytes(tile))
    # A palette is a third of the bytes, and on so few pixels it does not show.
    few = image.quantize(_COLORS) if image.mode == "RGB" and not tile.signed else image
    few.save(data, "PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(data.getvalue()).decode()


def _bytes(tile: Tile) -> np.ndarray:
    """Return what is drawn, uint8, (h, w) or (h, w, 3)."""
    from matplotlib import colormaps

    values = np.nan_to_num(np.asarray(tile.values, np.float64), posinf=0, neginf=0)
    if not tile.signed:
        return np.rint(255 * np.clip(values, 0, 1)).astype(np.uint8)
    values = 0.5 + 0.5 * values / (float(np.abs(values).max(initial=0)) or 1.0)
    if values.ndim == 3:
        return np.rint(255 * values).astype(np.uint8)
    colors: np.ndarray = colormaps["RdBu_r"](values, bytes=True)[..., :3]
    return np.ascontiguousarray(colors)
