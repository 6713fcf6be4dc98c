"""A layer of templates: the maximum of each one's responses in each cell, at least 0."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from visionshare.errors import InputError
from visionshare.generators.checks import check_choice, check_memory, check_whole
from visionshare.generators.contributions import clipped_boxes
from visionshare.generators.layers.layer import Layer, LayerCode, Shape
from visionshare.generators.layers.states import check_cells, check_pads, float_array, int_vector
from visionshare.generators.layers.templates.cells import CellTemplates
from visionshare.generators.layers.templates.tables import FEW, code_of, packed_taps
from visionshare.generators.states import Arrays, State

# Templates that are computed together, for columns.
_BLOCK = 128
CONTRASTS = ("none", "mean", "unit")


@dataclass(frozen=True, eq=False)
class TemplateLayer(CellTemplates):
    """Templates with biases, and the cells whose maxima are kept."""

    kind = "templates"
    moves = True
    integer_rank = 1
    has_places = True
    per_template: ClassVar[tuple[str, ...]] = ("templates", "biases")
    in_shape: Shape
    templates: np.ndarray
    biases: np.ndarray
    pads: tuple[int, int]
    row_cells: np.ndarray
    col_cells: np.ndarray

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """Templates and biases."""
        return {"templates": self.templates, "biases": self.biases}

    @cached_property
    def cell_areas(self) -> np.ndarray:
        """Number of positions in each cell, (rows · columns,) int64."""
        rows = np.bincount(self.row_cells[self.row_cells >= 0])
        columns = np.bincount(self.col_cells[self.col_cells >= 0])
        return np.outer(rows, columns).ravel()

    def macs(self, outputs: np.ndarray | None = None) -> int:
        """Return the multiply-accumulates per image: of each output, its template in its cell."""
        taps = int(np.prod(self.templates.shape[1:]))
        if outputs is None:
            return taps * int(self.cell_areas.sum()) * len(self.templates)
        cells = np.unique(outputs) // len(self.templates)
        return taps * int(self.cell_areas[cells].sum())

    def added_macs(self, outputs: np.ndarray, chosen: np.ndarray) -> np.ndarray | None:
        """Return what each output alone adds to the cost of chosen ones."""
        return np.where(np.isin(outputs, chosen), 0, self.output_macs(outputs))

    def output_macs(self, outputs: np.ndarray) -> np.ndarray:
        """Return the multiply-accumulates per image of each output alone, int64."""
        taps = int(np.prod(self.templates.shape[1:]))
        return np.asarray(taps * self.cell_areas[outputs // len(self.templates)])

    def ordered_outputs(self) -> np.ndarray:
        return super().ordered_outputs().reshape(-1, len(self.templates)).T.ravel()

    def blocks(self, outputs: np.ndarray) -> np.ndarray:
        """Return the block of templates of each output."""
        return outputs % len(self.templates) // _BLOCK

    def scaled(self, factor: float | np.float32) -> TemplateLayer:
        """Return the layer with its templates multiplied."""
        return replace(self, templates=np.asarray(self.templates * np.float32(factor), np.float32))

    @property
    def templates_code(self) -> LayerCode:
        """The part of the code that templates and cells are."""
        return self.code

    @cached_property
    def code(self) -> LayerCode:
        """The layer as compiled functions read it."""
        cells = (self.row_cells, self.col_cells)
        return code_of(self.in_shape, self.templates, self.biases, self.pads, cells)

    @property
    def _packed(self) -> np.ndarray:
        return packed_taps(self.templates, self.biases, bool(self.templates_code.ints[FEW]))

    def with_templates(self, templates: np.ndarray, biases: np.ndarray) -> TemplateLayer:
        """Return the layer with other templates; what is known of its cells is kept."""
        made = replace(self, templates=templates, biases=biases)
        vars(made).update(code=self.code, out_shape=self.out_shape)
        vars(made)["code"] = self.code._replace(weights=made._packed)
        return made

    def outer_boxes(self, inputs: np.ndarray, boxes: np.ndarray) -> np.ndarray:
        """Return the pixels that whole cells see."""
        seen = []
        for axis, cells in enumerate((self.row_cells, self.col_cells)):
            first = boxes[:, 2 * axis]
            last = boxes[:, 2 * axis + 1]
            n_cells = int(cells.max()) + 1
            begins = np.array([np.flatnonzero(cells == cell)[0] for cell in range(n_cells)])
            ends = np.array([np.flatnonzero(cells == cell)[-1] for cell in range(n_cells)])
            low = np.clip(np.floor(first), 0, n_cells - 1).astype(np.int64)
            high = np.clip(np.ceil(last) - 1, 0, n_cells - 1).astype(np.int64)
            seen.append(begins[low] - self.pads[axis])
            seen.append(ends[high] - self.pads[axis] + self.templates.shape[1])
        return clipped_boxes(np.stack(seen, axis=1), self.in_shape)

    def place_boxes(self, places: np.ndarray) -> np.ndarray:
        """Return the pixels of the patches that begin at places of the padded image, (n, 4)."""
        q = self.templates.shape[1]
        rows, columns = self.place_starts(places)
        rows = rows - self.pads[0]
        columns = columns - self.pads[1]
        boxes = np.stack([rows, rows + q, columns, columns + q], axis=1)
        return clipped_boxes(boxes, self.in_shape)

    def place_starts(self, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the rows and columns of the positions at places of the padded image."""
        line = (self.in_shape[1] + 2 * self.pads[1]) * self.in_shape[2]
        return places // line, places % line // self.in_shape[2]

    def describe(self, output: int) -> dict[str, Any]:
        """Return the template of the output, and the cell whose maximum it is."""
        cell, template = divmod(int(output), len(self.templates))
        row, column = divmod(cell, self.out_shape[1])
        mask = np.outer(self.row_cells == row, self.col_cells == column)
        return {
            "kind": "template",
            "template": self.templates[template],
            "bias": float(self.biases[template]),
            "mask": mask.astype(np.float32),
        }

    def to_state(self) -> dict[str, Any]:
        """Return the pads and the cells."""
        return {
            "pads": [int(pad) for pad in self.pads],
            "row_cells": self.row_cells.tolist(),
            "col_cells": self.col_cells.tolist(),
        }

    @classmethod
    def from_state(cls, state: State, arrays: Arrays, in_shape: Shape) -> TemplateLayer:
        templates = float_array(arrays, "templates", 4)
        n, q = templates.shape[:2]
        if n < 1 or templates.shape != (n, q, q, in_shape[2]):
            raise InputError("templates", templates.shape, f"shape (n, q, q, {in_shape[2]})")
        biases = float_array(arrays, "biases", 1)
        if biases.shape != (n,):
            raise InputError("biases", biases.shape, f"shape ({n},)")
        pads = check_pads(state.get("pads"))
        cells = [int_vector(state, name) for name in ("row_cells", "col_cells")]
        for side, pad, axis in zip(in_shape, pads, cells, strict=False):
            check_cells(axis, side + 2 * pad - q + 1)
        return cls(in_shape, templates, biases, pads, cells[0], cells[1])


@dataclass(eq=False, repr=False)
class Templates(Layer):
    """Small templates, k-means centers of patches; of their responses, the maximum in each cell.

    Parameters
    ----------
    n_templates : int, default 16
    size : int, default 3
        q, the side of a template in pixels.
    pool : int, default 1
        Side of the cells in positions; 1 keeps every response. Positions that fill no cell at the
        end of an axis are left out.
    grid : int, optional
        Number of cells per side, which cover all positions; ``pool`` is ignored then.
    stride : int, default 1
        Every so many rows and columns of positions are a cell each; the others are not computed.
        Above 1 only without ``pool`` and ``grid``.
    padding : int, default 0
        Zero pixels around the image; more where the image is smaller than a template.
    contrast : {"unit", "mean", "none"}, default "unit"
        Whether patches are brought to zero mean and unit norm, to zero mean, or left as they are.
    n_patches : int, default 100_000
        Number of patches drawn for k-means.

    References
    ----------
    A. Coates, H. Lee, A. Y. Ng, "An analysis of single-layer networks in unsupervised feature
    learning", AISTATS 2011: templates by k-means.

    Examples
    --------
    >>> images = np.random.default_rng(0).random((5, 9, 9, 1), np.float32)
    >>> layer = Templates(4, 3, pool=2).fit(images, None, np.random.default_rng(0))
    >>> layer.out_shape, layer.macs()
    ((3, 3, 4), 1296)
    """

    kind = "templates"
    moves = True
    integer_rank = 1
    n_templates: int = 16
    size: int = 3
    pool: int = 1
    grid: int | None = None
    padding: int = 0
    contrast: str = "unit"
    n_patches: int = 100_000
    stride: int = 1

    def check_parameters(self) -> None:
        check_whole("n_templates", self.n_templates, most=2**20)
        check_whole("size", self.size, most=64)
        check_whole("pool", self.pool, most=64)
        check_whole("grid", self.grid, most=1024, optional=True)
        check_whole("padding", self.padding, least=0, most=64)
        check_choice("contrast", self.contrast, CONTRASTS)
        check_whole("n_patches", self.n_patches)
        check_whole("stride", self.stride, most=64)
        if self.stride > 1 and (self.pool > 1 or self.grid is not None):
            raise InputError("stride", self.stride, "1 with a pool or a grid")

    def fit(self, inputs: Any, y: np.ndarray | None, rng: np.random.Generator) -> TemplateLayer:
        """Return the templates of inputs: centers of patches that have contrast."""
        from visionshare.generators.layers.templates.fitting import sampled_templates

        rows, columns, channels = (int(side) for side in inputs.shape[1:])
        pads, row_cells, col_cells = self.geometry((rows, columns))
        patches = 4.0 * self.size**2 * channels * (3 * self.n_patches + 2 * self.n_templates)
        check_memory("n_patches", self.n_patches, patches)
        templates = sampled_templates(
            inputs, self.size, pads, self.n_templates, self.n_patches, self.contrast, rng
        )
        biases = np.zeros(self.n_templates, np.float32)
        shape = (rows, columns, channels)
        return TemplateLayer(shape, templates, biases, pads, row_cells, col_cells)

    def geometry(self, sides: tuple[int, int]) -> tuple[tuple[int, int], np.ndarray, np.ndarray]:
        """Return the pads, and the cell of each row and column of positions, of such images."""
        pads = self._pads(sides)
        cells = [
            self._cells(side + 2 * pad - self.size + 1, sides)
            for side, pad in zip(sides, pads, strict=True)
        ]
        return pads, cells[0], cells[1]

    def _pads(self, sides: tuple[int, int]) -> tuple[int, int]:
        """Return the zero pixels above and at the sides: enough for one position in a grid."""
        if self.grid is None:
            return self.padding, self.padding
        needed = [max(self.padding, -(-(self.size - side) // 2)) for side in sides]
        return needed[0], needed[1]

    def _cells(self, positions: int, sides: tuple[int, int]) -> np.ndarray:
        """Return the cell of each position along an axis."""
        if self.grid is not None:
            return grid_cells(positions, self.grid)
        if self.stride > 1 and positions > 0:
            every = np.arange(positions)
            return np.where(every % self.stride == 0, every // self.stride, -1)
        n_cells = positions // self.pool
        if n_cells < 1:
            least = self.size + self.pool - 1 - 2 * self.padding
            raise InputError("images", sides, f"images of at least {least}×{least} pixels")
        cells = np.repeat(np.arange(n_cells), self.pool)
        return np.concatenate([cells, np.full(positions - len(cells), -1)])


def grid_cells(positions: int, grid: int) -> np.ndarray:
    """Return the cell of each position where a grid divides an axis into equal parts, int64."""
    # With fewer positions than cells, each position is a cell.
    return np.arange(positions) * min(grid, positions) // positions
