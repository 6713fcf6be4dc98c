"""Deslanting in fixed point."""

from __future__ import annotations

from dataclasses import dataclass

from visionshare.errors import InputError
from visionshare.generators.layers.deslant.layer import DeslantLayer, Sheared
from visionshare.generators.layers.integer_layer import IntegerLayer
from visionshare.generators.layers.layer import Shape


@dataclass(frozen=True, eq=False)
class IntegerDeslant(IntegerLayer, Sheared):
    """Images whose rows are moved so that their slant goes, in fixed point."""

    in_shape: Shape
    kind = "deslant-int"

    def __post_init__(self) -> None:
        rows, columns, channels = self.in_shape
        mass = 255 * rows * columns * channels
        if mass * mass * max(rows, columns) ** 2 >= 2**61 or rows >= 2000:
            raise InputError("image_shape", self.in_shape, "smaller images, such as 128×128")


def of_layer(layer: DeslantLayer) -> IntegerDeslant:
    """Return the layer of integers that takes the place of one of floats."""
    return IntegerDeslant(layer.in_shape)
