"""Deslanting in fixed point."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from visionshare.errors import InputError
from visionshare.generators.layers.deslant.layer import MACS_PER_VALUE
from visionshare.generators.layers.integer_layer import IntegerLayer
from visionshare.generators.layers.layer import Selection, Shape

if TYPE_CHECKING:
    from visionshare.codegen.onnx_graph import Graph

__all__ = ["IntegerDeslant"]


@dataclass(frozen=True, eq=False)
class IntegerDeslant(IntegerLayer):
    """Images whose rows are moved so that their slant goes, in fixed point."""

    in_shape: Shape
    kind: ClassVar[str] = "deslant-int"

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

    def take(self, outputs: np.ndarray) -> Selection:
        """Return the whole layer: every row needs all of the image."""
        return Selection(self, outputs)

    def transform(self, images: np.ndarray) -> np.ndarray:
        """Return the deslanted images."""
        from visionshare.generators.layers.integers.kernels import deslanted_block

        out = np.empty_like(images)
        deslanted_block(np.ascontiguousarray(images), out)
        return out

    def describe(self, output: int) -> dict[str, Any]:
        """Return the place."""
        return {"kind": "quantized", "place": int(output)}

    def to_state(self) -> dict[str, Any]:
        """Return nothing: the inputs' shape says all."""
        return {}

    @classmethod
    def from_state(
        cls, state: Mapping[str, Any], arrays: Mapping[str, np.ndarray], in_shape: Shape
    ) -> IntegerDeslant:
        """Return the layer."""
        return cls(in_shape)

    def to_onnx(self, images: str, graph: Graph) -> str:
        """Return the name of the deslanted bytes in a graph, as floats."""
        from visionshare.generators.layers.integers.onnx import applied

        return applied(self, images, graph)
