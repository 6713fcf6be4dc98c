"""Means in integers: weighted sums over the plane."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from visionshare.errors import InputError
from visionshare.generators.layers.depthwise.integers import IntegerDepthwise
from visionshare.generators.layers.layer import LayerCode
from visionshare.generators.layers.templates.integer_kernels import MEANS

WEIGHT_BITS = 8


@dataclass(frozen=True, eq=False)
class IntegerMeans(IntegerDepthwise):
    """Templates of one pixel of one channel each, whose responses in the one cell are summed.

    out[t] = min(255, shifted(weights_t · sum of image[:, :, sources_t], s_t))
    """

    kind = "means-int"
    adds_cells = True
    code_kind = MEANS

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.size > 1 or self.biases.any() or self.row_cells.max() or self.col_cells.max():
            raise InputError("weights", self.weights.shape, "one pixel in one cell, biases of 0")

    @property
    def most_added(self) -> int:
        """The largest sum of all positions but one."""
        largest = int(np.abs(self.weights).max(initial=0))
        return 255 * largest * (len(self.row_cells) * len(self.col_cells) - 1)

    @property
    def steps(self) -> list[tuple[Any, LayerCode]]:
        return self._whole_steps
