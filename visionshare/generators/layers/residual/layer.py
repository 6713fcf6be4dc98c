"""A layer of templates whose responses are added to its input."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from visionshare.errors import InputError
from visionshare.generators.checks import check_choice, check_whole
from visionshare.generators.layers.layer import Layer, LayerCode, Shape
from visionshare.generators.layers.states import check_sources, int_vector
from visionshare.generators.layers.templates.fitting import sampled_templates
from visionshare.generators.layers.templates.layer import CONTRASTS, TemplateLayer
from visionshare.generators.states import Arrays, State


@dataclass(frozen=True, eq=False)
class ResidualLayer(TemplateLayer):
    """Rectified responses of templates, each added to the value in the middle of its patch.

    out[r, c, t] = max(0, (image ⊗ templates_t)[r, c] + bias_t) + image[r, c, sources_t]
    """

    kind = "residual"
    moves = True
    integer_rank = 1
    weighs_pixels = False
    per_template = ("templates", "biases", "sources")
    #: The channel that each template is added to.
    sources: np.ndarray

    def macs(self, outputs: np.ndarray | None = None) -> int:
        """Return the multiply-accumulates per image; a sum is one more."""
        n = int(np.prod(self.out_shape)) if outputs is None else len(np.unique(outputs))
        return super().macs(outputs) + n

    def output_macs(self, outputs: np.ndarray) -> np.ndarray:
        return super().output_macs(outputs) + 1

    @cached_property
    def middles(self) -> np.ndarray:
        """Where in a flattened input the value is that each output is added to, int64."""
        return residual_places(self)

    @property
    def templates_code(self) -> LayerCode:
        """The part of the code that templates and cells are: it comes after the sums."""
        return self.code._replace(ints=self.code.ints[len(self.middles) + 1 :])

    @cached_property
    def code(self) -> LayerCode:
        plain = super().code
        ints = np.concatenate([[len(self.middles)], self.middles, plain.ints])
        return plain._replace(ints=ints)

    def to_state(self) -> dict[str, Any]:
        """Return pads, cells and channels."""
        return super().to_state() | {"sources": self.sources.tolist()}

    @classmethod
    def from_state(cls, state: State, arrays: Arrays, in_shape: Shape) -> ResidualLayer:
        plain = TemplateLayer.from_state(state, arrays, in_shape)
        sources = int_vector(state, "sources")
        check_sources(sources, len(plain.templates), in_shape[2])
        made = cls(**vars(plain) | {"sources": sources})
        check_middles(made)
        return made


def check_middles(layer: Any) -> None:
    """Check that each cell is one position, whose middle lies in the image."""
    for cells, side, pad in zip(
        (layer.row_cells, layer.col_cells), layer.in_shape, layer.pads, strict=False
    ):
        middles = np.flatnonzero(cells >= 0) + layer.size // 2 - pad
        alone = len(np.unique(cells[cells >= 0])) == len(middles)
        if not alone or middles[0] < 0 or middles[-1] >= side:
            raise InputError("cells", cells.tolist()[:20], "one position each, inside the image")


def residual_places(layer: Any) -> np.ndarray:
    """Return where in a flattened input the value is that each output is added to, int64."""
    rows, columns = (
        np.array([np.flatnonzero(cells == cell)[0] for cell in range(int(cells.max()) + 1)])
        for cells in (layer.row_cells, layer.col_cells)
    )
    rows = rows + layer.size // 2 - layer.pads[0]
    columns = columns + layer.size // 2 - layer.pads[1]
    _, width, channels = layer.in_shape
    pixels = (rows[:, None] * width + columns).ravel() * channels
    return np.asarray((pixels[:, None] + layer.sources).ravel(), np.int64)


class Residual(Layer):
    """Adds the rectified responses of templates, one per channel, to the channels.

    Parameters
    ----------
    size : int, default 3
        q, the side of a template in pixels; an odd number.
    contrast : {"unit", "mean", "none"}, default "unit"
        Whether patches are brought to zero mean and unit norm, to zero mean, or left as they are.
    n_patches : int, default 20_000
        Number of patches drawn for k-means.

    References
    ----------
    K. He, X. Zhang, S. Ren, J. Sun, "Deep residual learning for image recognition", CVPR 2016.

    Examples
    --------
    >>> images = np.random.default_rng(0).random((5, 9, 9, 4), np.float32)
    >>> Residual(3, n_patches=900).fit(images, None, np.random.default_rng(0)).out_shape
    (9, 9, 4)
    """

    kind = "residual"
    moves = True
    integer_rank = 1
    weighs_pixels = False

    def __init__(self, size: int = 3, contrast: str = "unit", n_patches: int = 20_000) -> None:
        self.size = size
        self.contrast = contrast
        self.n_patches = n_patches

    def check_parameters(self) -> None:
        check_whole("size", self.size, most=63)
        if self.size % 2 == 0:
            raise InputError("size", self.size, "an odd number")
        check_choice("contrast", self.contrast, CONTRASTS)
        check_whole("n_patches", self.n_patches)

    def fit(self, inputs: Any, y: np.ndarray | None, rng: np.random.Generator) -> ResidualLayer:
        """Return the templates of inputs: centers of patches that have contrast."""
        rows, columns, channels = (int(side) for side in inputs.shape[1:])
        pads = (self.size // 2, self.size // 2)
        templates = sampled_templates(
            inputs, self.size, pads, channels, self.n_patches, self.contrast, rng
        )
        return ResidualLayer(
            (rows, columns, channels),
            templates,
            np.zeros(channels, np.float32),
            pads,
            np.arange(rows),
            np.arange(columns),
            np.arange(channels),
        )
