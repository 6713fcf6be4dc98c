"""A layer of templates in integers of few bits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from visionshare.errors import InputError
from visionshare.generators.layers.integer_layer import (
    WeightedIntegerLayer,
    weighted_values,
    whole_vector,
)
from visionshare.generators.layers.layer import Selection, Shape
from visionshare.generators.layers.states import check_pads
from visionshare.generators.layers.templates.layer import kept_cells

if TYPE_CHECKING:
    from visionshare.codegen.onnx_graph import Graph

__all__ = ["IntegerTemplates"]


@dataclass(frozen=True, eq=False)
class IntegerTemplates(WeightedIntegerLayer):
    """Largest responses of templates in cells: rectified, shifted, cut off at 255."""

    in_shape: Shape
    weights: np.ndarray
    bits: int | str
    biases: np.ndarray
    shifts: np.ndarray
    pads: tuple[int, int]
    row_cells: np.ndarray
    col_cells: np.ndarray
    kind: ClassVar[str] = "templates-int"

    def __post_init__(self) -> None:
        self._check_sums()
        q = self.weights.shape[1] if self.weights.ndim == 4 else 0
        shape = (len(self.weights), q, q, self.in_shape[2])
        if q < 1 or self.weights.shape != shape:
            raise InputError("weights", self.weights.shape, f"(n, q, q, {self.in_shape[2]})")
        axes = zip(self.in_shape[:2], self.pads, (self.row_cells, self.col_cells), strict=True)
        for side, pad, cells in axes:
            fits = pad >= 0 and cells.ndim == 1 and 0 < len(cells) <= side + 2 * pad - q + 1
            if not fits or cells.dtype.kind != "i" or int(cells.min()) < -1:
                raise InputError("cells", cells.shape, f"cells of positions in {side} + 2 · {pad}")
            used = np.unique(cells[cells >= 0])
            if len(used) == 0 or not np.array_equal(used, np.arange(len(used))):
                raise InputError("cells", used.tolist(), "cells 0, 1, 2, …")

    @property
    def out_shape(self) -> Shape:
        """Rows and columns of cells, and the number of templates."""
        return int(self.row_cells.max()) + 1, int(self.col_cells.max()) + 1, len(self.weights)

    @property
    def n_templates(self) -> int:
        """Number of templates."""
        return len(self.weights)

    def macs(self, outputs: np.ndarray | None = None) -> int:
        """Return the multiply-accumulates per image: of each template in use, all its cells."""
        down = int((self.row_cells >= 0).sum())
        across = int((self.col_cells >= 0).sum())
        n = len(self.weights)
        used = n if outputs is None else len(np.unique(outputs % n))
        return down * across * self.weights[0].size * used

    def take(self, outputs: np.ndarray) -> Selection:
        """Return the layer with the templates in use, and where the outputs are then."""
        n = len(self.weights)
        used, number = np.unique(outputs % n, return_inverse=True)
        kept = replace(
            self, weights=self.weights[used], biases=self.biases[used], shifts=self.shifts[used]
        )
        return kept_cells(kept, outputs // n, number.reshape(-1))

    def groups(self, outputs: np.ndarray) -> np.ndarray | None:
        """Return the template of each output."""
        return outputs % len(self.weights)

    @cached_property
    def _taps(self) -> np.ndarray:
        n, q = self.weights.shape[:2]
        lines = self.weights.reshape(n, q, -1)
        return np.ascontiguousarray(lines.transpose(1, 2, 0), np.int32)

    def transform(self, images: np.ndarray) -> np.ndarray:
        """Return the layer's bytes."""
        from visionshare.generators.layers.integers.kernels import cells_of_block

        rows, columns, channels = self.in_shape
        lines = np.ascontiguousarray(images).reshape(len(images), rows, columns * channels)
        out = np.empty((len(images), *self.out_shape), np.uint8)
        cells_of_block(
            lines, self._taps, self.biases.astype(np.int32), self.shifts.astype(np.int32),
            (self.pads[0], self.pads[1] * channels), self.row_cells.astype(np.int64),
            self.col_cells.astype(np.int64), out,
        )  # fmt: skip
        return out

    def describe(self, output: int) -> dict[str, Any]:
        """Return the weights and the bias of the template of an output."""
        number = int(output) % len(self.weights)
        return {
            "kind": "quantized",
            "place": int(output),
            "weights": self.weights[number],
            "bias": int(self.biases[number]),
        }

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """Packed weights, biases, shifts and cells."""
        cells = {"row_cells": self.row_cells, "col_cells": self.col_cells}
        return super().arrays | {name: c.astype(np.int64) for name, c in cells.items()}

    def to_state(self) -> dict[str, Any]:
        """Return bits, shape and pads."""
        return super().to_state() | {"pads": [int(pad) for pad in self.pads]}

    @classmethod
    def from_state(
        cls, state: Mapping[str, Any], arrays: Mapping[str, np.ndarray], in_shape: Shape
    ) -> IntegerTemplates:
        """Return the layer that :meth:`to_state` described."""
        return cls(
            in_shape,
            pads=check_pads(state.get("pads")),
            row_cells=whole_vector(arrays, "row_cells"),
            col_cells=whole_vector(arrays, "col_cells"),
            **weighted_values(state, arrays),
        )

    def to_onnx(self, images: str, graph: Graph) -> str:
        """Return the name of the layer's bytes in a graph, as floats."""
        from visionshare.generators.layers.integers.onnx import applied

        return applied(self, images, graph)
