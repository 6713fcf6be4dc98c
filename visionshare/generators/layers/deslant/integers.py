"""Deslanting in fixed point."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from visionshare.errors import InputError
from visionshare.generators.layers.deslant.layer import MACS_PER_VALUE, DeslantLayer
from visionshare.generators.layers.integer_layer import IntegerLayer
from visionshare.generators.layers.layer import LayerCode, Shape

__all__ = ["IntegerDeslant", "of_layer"]


@dataclass(frozen=True, eq=False)
class IntegerDeslant(IntegerLayer):
    """Images whose rows are moved so that their slant goes, in fixed point."""

    in_shape: Shape
    kind: ClassVar[str] = "deslant-int"
    integer_rank: ClassVar[int | None] = 0

    def __post_init__(self) -> None:
        rows, columns, channels = self.in_shape
        mass = 255 * rows * columns * channels
        if mass * mass * max(rows, columns) ** 2 >= 2**61 or rows >= 2000:
            raise InputError("image_shape", self.in_shape, "smaller images, such as 128×128")

    @property
    def out_shape(self) -> Shape:
        """That of the inputs."""
        return self.in_shape

    def macs(self, outputs: np.ndarray | None = None) -> int:
        """Return the multiply-accumulates per image."""
        return MACS_PER_VALUE * int(np.prod(self.in_shape))

    @property
    def code(self) -> LayerCode:
        """The layer as compiled functions read it."""
        return LayerCode(np.array(self.in_shape, np.int64), np.empty(0, np.float32), 0)

    @classmethod
    def from_state(
        cls, state: Mapping[str, Any], arrays: Mapping[str, np.ndarray], in_shape: Shape
    ) -> IntegerDeslant:
        """Return the layer."""
        return cls(in_shape)


def of_layer(layer: DeslantLayer) -> IntegerDeslant:
    """Return the layer of integers that takes the place of one of floats."""
    return IntegerDeslant(layer.in_shape)
