"""What the C of whole numbers keeps in memory: images between layers, and where values lie."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from visionshare.codegen.templates import render_file
from visionshare.errors import InputError
from visionshare.generators.quantized.layers import CellLayer, DeslantLayer, UnitLayer

if TYPE_CHECKING:
    from visionshare.generators.quantized.family import QuantizedLayers

__all__ = ["Image", "deslant_source", "edges_of", "parts", "place_of"]


class Image(NamedTuple):
    """An image in memory: rows, columns, channels, and zeros around it."""

    shape: tuple[int, int, int]
    pads: tuple[int, int]

    @property
    def line(self) -> int:
        return (self.shape[1] + 2 * self.pads[1]) * self.shape[2]

    @property
    def begin(self) -> int:
        return self.pads[0] * self.line + self.pads[1] * self.shape[2]

    @property
    def size(self) -> int:
        return (self.shape[0] + 2 * self.pads[0]) * self.line

    @property
    def clear(self) -> int:
        """Values that are zero before the image is written."""
        return self.size if any(self.pads) else 0


def parts(
    family: QuantizedLayers,
) -> tuple[list[CellLayer | UnitLayer], DeslantLayer | None, list[Image]]:
    """Return the layers of templates, what comes before, and the images between them.

    Raises
    ------
    InputError
        If the layers are in another order.
    """
    weighted = [layer for layer in family.layers_ if isinstance(layer, (CellLayer, UnitLayer))]
    deslant = next((layer for layer in family.layers_ if isinstance(layer, DeslantLayer)), None)
    if (
        not weighted
        or [*weighted] != family.layers_[-len(weighted) :]
        or len(family.layers_) > (len(weighted) + 1)
    ):
        raise InputError("family", "layers", "deslanting, then layers of templates")
    images = [Image(layer.in_shape, getattr(layer, "pads", (0, 0))) for layer in weighted]
    images.append(Image(family.layers_[-1].out_shape, (0, 0)))
    return weighted, deslant, images


def edges_of(layer: CellLayer) -> np.ndarray:
    """Return the first position of each cell and the one after the last, rows then columns."""
    edges = []
    for cells in (layer.row_cells, layer.col_cells):
        for cell in range(int(cells.max()) + 1):
            (positions,) = np.nonzero(cells == cell)
            if positions[-1] - positions[0] + 1 != len(positions):
                raise InputError("family", "cells in pieces", "cells that are rectangles")
            edges.append([positions[0], positions[-1] + 1])
    return np.array(edges)


def place_of(image: Image) -> str:
    """Return the C of where a value of the image is in memory."""
    if not image.clear:
        return "number"
    values = image.shape[1] * image.shape[2]
    return f"{image.begin} + number / {values} * {image.line} + number % {values}"


def deslant_source(layer: DeslantLayer | None, image: Image) -> Callable[[str], str]:
    """Return what gives the C that removes the slant, for the name of a unit."""

    def source(name: str) -> str:
        assert layer is not None
        rows, cols, channels = layer.in_shape
        place = {"begin": image.begin, "line": image.line}
        values = {"rows": rows, "cols": cols, "channels": channels, **place}
        template = Path(__file__).with_name("deslant.c.j2")
        named = {"name": name, "deslant": values, "moment": _moment_type(layer)}
        return render_file(template, named).strip()

    return source


def _moment_type(layer: DeslantLayer) -> str:
    """Return the C type that holds the moments of an image."""
    rows, cols, channels = layer.in_shape
    return "int32_t" if 255 * rows * cols * channels * max(rows, cols) ** 2 < 2**31 else "int64_t"
