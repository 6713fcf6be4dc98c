"""A layer that takes the slant out of images."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from visionshare.errors import InputError
from visionshare.generators.contributions import clipped_boxes
from visionshare.generators.layers.layer import Fitted, Layer, LayerCode, Shape
from visionshare.generators.states import Arrays, State

#: Sums of a row's values and of their moments, and the two pixels that each one is made of.
MACS_PER_VALUE = 4


class Sheared(Fitted):
    """Images whose rows are moved so that their slant goes, in floats or in fixed point."""

    integer_rank = 0
    in_shape: Shape

    @property
    def out_shape(self) -> Shape:
        """That of the inputs."""
        return self.in_shape

    def macs(self, outputs: np.ndarray | None = None) -> int:
        return MACS_PER_VALUE * int(np.prod(self.in_shape))

    @property
    def code(self) -> LayerCode:
        """The layer as compiled functions read it."""
        return LayerCode(np.array(self.in_shape, np.int64), np.empty(0, np.float32), 0)

    @classmethod
    def from_state(cls, state: State, arrays: Arrays, in_shape: Shape) -> Any:
        """Return the layer."""
        return cls(in_shape)  # type: ignore[call-arg]


@dataclass(frozen=True, eq=False)
class DeslantLayer(Sheared):
    """Images whose rows are moved so that their slant goes."""

    kind = "deslant"
    keeps_bytes = True
    in_shape: Shape

    def outer_boxes(self, inputs: np.ndarray, boxes: np.ndarray) -> np.ndarray:
        """Return the smallest boxes of the image that hold the sheared ones."""
        from visionshare.generators.layers.deslant.kernels import slant_of

        slant, middle = slant_of(np.asarray(inputs).reshape(self.in_shape))
        top = slant * (boxes[:, 0] - middle)
        bottom = slant * (boxes[:, 1] - 1 - middle)
        # A moved pixel lies between two others.
        least = np.floor(np.minimum(top, bottom))
        most = np.ceil(np.maximum(top, bottom))
        moved = np.stack([boxes[:, 0], boxes[:, 1], boxes[:, 2] + least, boxes[:, 3] + most], 1)
        return clipped_boxes(moved, self.in_shape)

    def describe(self, output: int) -> dict[str, Any]:
        """Return the pixel."""
        return {"kind": "deslanted pixel", "pixel": np.unravel_index(int(output), self.in_shape)}


class Deslant(Layer):
    """Removes slant by shearing the rows of an image; for handwriting.

    The shear is along the rows, about the center of mass, by the slope of the columns' mean over
    the rows, at most 1. Values are weights: light ink on a dark ground.

    Examples
    --------
    >>> leaning = np.eye(5, dtype=np.uint8)[None, :, :, None]
    >>> Deslant().fit(leaning, None, np.random.default_rng(0)).out_shape
    (5, 5, 1)
    """

    kind = "deslant"
    integer_rank = 0

    def __init__(self) -> None:
        pass

    def fit(self, inputs: Any, y: np.ndarray | None, rng: np.random.Generator) -> DeslantLayer:
        """Return the layer: nothing is learned."""
        rows, columns, channels = (int(side) for side in inputs.shape[1:])
        if rows == 1:
            raise InputError("images", inputs.shape, "images of shape (n, H, W) or (n, H, W, C)")
        return DeslantLayer((rows, columns, channels))
