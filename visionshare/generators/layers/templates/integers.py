"""A layer of templates in integers of few bits."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from visionshare.errors import InputError
from visionshare.generators.layers.integer_layer import (
    WeightedIntegerLayer,
    weighted_values,
    whole_vector,
)
from visionshare.generators.layers.layer import LayerCode, Shape
from visionshare.generators.layers.states import check_cells, check_pads
from visionshare.generators.layers.templates.cells import CellTemplates
from visionshare.generators.layers.templates.integer_kernels import PLAIN
from visionshare.generators.layers.templates.layer import TemplateLayer
from visionshare.generators.states import Arrays, State


@dataclass(frozen=True, eq=False)
class IntegerTemplates(WeightedIntegerLayer, CellTemplates):
    """Largest responses of templates in cells: rectified, shifted, cut off at 255.

    out[r, c, t] = min(255, shifted(max(0, max over the cell of (image ⊗ weights_t) + bias_t), s_t))
    with zeros around the image.
    """

    in_shape: Shape
    weights: np.ndarray
    bits: int | str
    biases: np.ndarray
    shifts: np.ndarray
    pads: tuple[int, int]
    row_cells: np.ndarray
    col_cells: np.ndarray
    kind = "templates-int"
    slides = True
    per_template: ClassVar[tuple[str, ...]] = ("weights", "biases", "shifts")
    #: What the kernel computes.
    code_kind: ClassVar[int] = PLAIN

    def __post_init__(self) -> None:
        self._check_sums(self.most_added)
        q = self.weights.shape[1] if self.weights.ndim == 4 else 0
        shape = (len(self.weights), q, q, self.depth)
        if q < 1 or self.weights.shape != shape:
            raise InputError("weights", self.weights.shape, f"(n, q, q, {self.depth})")
        axes = zip(self.in_shape[:2], self.pads, (self.row_cells, self.col_cells), strict=True)
        for side, pad, cells in axes:
            if pad < 0 or cells.ndim != 1 or len(cells) == 0 or cells.dtype.kind != "i":
                raise InputError("cells", cells.shape, f"cells of positions in {side} + 2 · {pad}")
            check_cells(cells, side + 2 * pad - q + 1)

    @property
    def depth(self) -> int:
        """Number of channels that a template sees."""
        return self.in_shape[2]

    @property
    def margins(self) -> tuple[int, int]:
        return self.pads

    @property
    def cell_edges(self) -> np.ndarray:
        edges = []
        for cells in (self.row_cells, self.col_cells):
            for cell in range(int(cells.max()) + 1):
                (positions,) = np.nonzero(cells == cell)
                if positions[-1] - positions[0] + 1 != len(positions):
                    raise InputError("family", "cells in pieces", "cells that are rectangles")
                edges.append([positions[0], positions[-1] + 1])
        return np.array(edges)

    @property
    def most_added(self) -> int:
        """The largest number that is added to a sum."""
        return 0

    def macs(self, outputs: np.ndarray | None = None) -> int:
        """Return the multiply-accumulates per image: of each template in use, all its cells."""
        down = int((self.row_cells >= 0).sum())
        across = int((self.col_cells >= 0).sum())
        n = len(self.weights)
        used = n if outputs is None else len(np.unique(outputs % n))
        return down * across * self.weights[0].size * used

    @cached_property
    def code(self) -> LayerCode:
        """The layer as compiled functions read it."""
        n, q = self.weights.shape[:2]
        down, across, _ = self.out_shape
        sides = [len(self.row_cells), len(self.col_cells), down * across, across]
        header = [*self.in_shape, n, q, *self.pads, *sides, self.code_kind]
        tables = (header, self.row_cells, self.col_cells, self.shifts, *self._tables)
        ints = np.concatenate([np.asarray(table, np.int64) for table in tables])
        taps = self.weights.reshape(n, -1).T.ravel()
        weights = np.concatenate([self.biases, taps]).astype(np.int32)
        return LayerCode(ints, weights.view(np.float32), n * (1 + down * across))

    @property
    def steps(self) -> list[tuple[Any, LayerCode]]:
        if self._exact_in_floats:
            return [*self._in_floats.steps, self._rounding()]
        return self._whole_steps

    @property
    def _whole_steps(self) -> list[tuple[Any, LayerCode]]:
        """The kernel of all kinds of templates, whose sums floats may not hold."""
        from visionshare.generators.layers.templates.integer_kernels import forward

        return [(forward, self.code)]

    @property
    def _in_floats(self) -> TemplateLayer:
        """The layer before its sums are rounded."""
        return TemplateLayer(**self._float_values())

    def _float_values(self) -> dict[str, Any]:
        return {
            "in_shape": self.in_shape,
            "templates": self.weights.astype(np.float32),
            "biases": self.biases.astype(np.float32),
            "pads": self.pads,
            "row_cells": self.row_cells,
            "col_cells": self.col_cells,
        }

    @property
    def _tables(self) -> tuple[np.ndarray, ...]:
        """Return the channel of each template, and shifts of what is added to its sums."""
        return ()

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """Packed weights, biases, shifts and cells."""
        cells = {"row_cells": self.row_cells, "col_cells": self.col_cells}
        return super().arrays | {name: c.astype(np.int64) for name, c in cells.items()}

    def to_state(self) -> dict[str, Any]:
        """Return bits, shape and pads."""
        return super().to_state() | {"pads": [int(pad) for pad in self.pads]}

    @classmethod
    def from_state(cls, state: State, arrays: Arrays, in_shape: Shape) -> IntegerTemplates:
        return cls(in_shape, **cls._values(state, arrays))

    @classmethod
    def _values(cls, state: State, arrays: Arrays) -> dict[str, Any]:
        return {
            "pads": check_pads(state.get("pads")),
            "row_cells": whole_vector(arrays, "row_cells"),
            "col_cells": whole_vector(arrays, "col_cells"),
            **weighted_values(state, arrays),
        }
