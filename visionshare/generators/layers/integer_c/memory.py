"""What the C of whole numbers keeps in memory: images between layers, and where values lie."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from visionshare.codegen.templates import render_file
from visionshare.errors import InputError
from visionshare.generators.layers.integer_layer import IntegerLayer, WeightedIntegerLayer

if TYPE_CHECKING:
    from visionshare.generators.layers.layer import LayerList


class Image(NamedTuple):
    """An image in memory: rows, columns, channels, and zeros around it."""

    shape: tuple[int, int, int]
    pads: tuple[int, int]
    #: Whether channels lie one after the other, each a plane: what depthwise templates read.
    planar: bool = False

    @property
    def column(self) -> int:
        """Values from a pixel to the next."""
        return 1 if self.planar else self.shape[2]

    @property
    def line(self) -> int:
        """Values from a row to the next."""
        return (self.shape[1] + 2 * self.pads[1]) * self.column

    @property
    def plane(self) -> int:
        """Values from a channel to the next."""
        return (self.shape[0] + 2 * self.pads[0]) * self.line if self.planar else 1

    @property
    def begin(self) -> int:
        return self.pads[0] * self.line + self.pads[1] * self.column

    @property
    def size(self) -> int:
        values = (self.shape[0] + 2 * self.pads[0]) * self.line
        return values * self.shape[2] if self.planar else values

    @property
    def clear(self) -> int:
        """Values that are zero before the image is written."""
        return self.size if any(self.pads) else 0

    @property
    def as_given(self) -> bool:
        """Whether pixels lie as in an image that is handed over."""
        return not self.clear and not self.planar


class MemoryPlan(NamedTuple):
    """Where everything lies in one piece of memory."""

    words: int
    images: list[int]
    numbers: list[int]

    def of_layer(self, number: int) -> list[int]:
        """Return where a layer's input, output and numbers are."""
        return [self.images[number], self.images[number + 1], self.numbers[number]]


def plan_memory(sizes: Sequence[int], counts: Sequence[int], direct: bool) -> MemoryPlan:
    """Return the smallest memory for images of these sizes, one after the other."""
    sizes = [0 if direct and i == 0 else size for i, size in enumerate(sizes)]
    words = 0
    numbers = []
    for i, count in enumerate(counts):
        together = sizes[i : i + 2]
        ends = [sum(together[(i + side) % 2 :: 2]) for side in (0, 1)]
        numbers.append(-(-ends[0] // 4))
        words = max(words, numbers[-1] + count + -(-ends[1] // 4))
    return MemoryPlan(words, [i % 2 * (4 * words - size) for i, size in enumerate(sizes)], numbers)


def parts(
    family: LayerList,
) -> tuple[list[WeightedIntegerLayer], IntegerLayer | None, list[Image]]:
    """Return the layers of templates, what comes before, and the images between them."""
    layers: list[Any] = family.layers_
    weighted = [layer for layer in layers if layer.weighted]
    deslant = next((layer for layer in layers if not layer.weighted), None)
    if not weighted or weighted != layers[-len(weighted) :] or len(layers) > (len(weighted) + 1):
        raise InputError("family", "layers", "deslanting, then layers of templates")
    images = []
    for layer in weighted:
        planar = layer.of_one_channel and layer.in_shape[2] > 1
        images.append(Image(layer.in_shape, layer.margins, planar))
    if deslant is not None and images[0].planar:
        accepted = "templates of all channels after deslanting in color"
        raise InputError("family", "depthwise templates", accepted)
    images.append(Image(layers[-1].out_shape, (0, 0)))
    return weighted, deslant, images


def place_of(image: Image) -> str:
    """Return the C of where a value of the image is in memory."""
    if image.as_given:
        return "number"
    _, columns, channels = image.shape
    row = f"number / {columns * channels} * {image.line}"
    if not image.planar:
        return f"{image.begin} + {row} + number % {columns * channels}"
    pixel = f"number / {channels} % {columns} + number % {channels} * {image.plane}"
    return f"{image.begin} + {row} + {pixel}"


def deslant_source(
    layer: IntegerLayer | None, image: Image, *, copied: bool = False
) -> Callable[[str, str], str]:
    """Return what gives the C that removes the slant, for the names of a unit and of macros."""
    # Each row is copied between zeros where ``copied``: vectors ask for no border.

    def source(name: str, macro: str) -> str:
        assert layer is not None
        rows, cols, channels = layer.in_shape
        values = {
            "rows": rows,
            "cols": cols,
            "channels": channels,
            "copied": copied,
            "begin": image.begin,
            "line": image.line,
            "row": channels * (cols + 2 * rows + 1),
            "written": cols * channels + (0 if image.clear else -cols * channels % 16),
        }
        template = Path(__file__).with_name("deslant.c.j2")
        named = {"name": name, "macro": macro, "deslant": values, "moment": _moment_type(layer)}
        return render_file(template, named).strip()

    return source


def _moment_type(layer: IntegerLayer) -> str:
    """Return the C type that holds the moments of an image."""
    rows, cols, channels = layer.in_shape
    return "int32_t" if 255 * rows * cols * channels * max(rows, cols) ** 2 < 2**31 else "int64_t"
