"""A layer of templates that see one channel each: few multiplications."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from visionshare.generators.checks import check_whole
from visionshare.generators.layers.layer import LayerCode, Shape
from visionshare.generators.layers.states import check_sources, int_vector
from visionshare.generators.layers.templates.cells import OneChannelTemplates
from visionshare.generators.layers.templates.fitting import sampled_templates
from visionshare.generators.layers.templates.layer import TemplateLayer, Templates
from visionshare.generators.states import Arrays, State


@dataclass(frozen=True, eq=False)
class DepthwiseLayer(OneChannelTemplates, TemplateLayer):
    """Templates of one channel each; otherwise as :class:`TemplateLayer`."""

    kind = "depthwise"
    moves = True
    integer_rank = 1
    per_template = ("templates", "biases", "sources")
    sources: np.ndarray

    @cached_property
    def code(self) -> LayerCode:
        rows = len(self.row_cells)
        columns = len(self.col_cells)
        n, q = self.templates.shape[:2]
        header = [*self.in_shape, *self.pads, n, q, rows, columns, self.out_shape[1]]
        parts = [header, self.row_cells, self.col_cells, self.sources]
        ints = np.concatenate([np.asarray(part, np.int64) for part in parts])
        height = self.in_shape[0] + 2 * self.pads[0]
        width = self.in_shape[1] + 2 * self.pads[1]
        return LayerCode(ints, self._packed, n * (1 + height * width))

    @property
    def _packed(self) -> np.ndarray:
        taps = self.templates.reshape(len(self.templates), -1)
        return np.concatenate([self.biases, taps.T.ravel()]).astype(np.float32)

    def place_starts(self, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the rows and columns of positions, whose numbers places are."""
        columns = len(self.col_cells)
        return places // columns, places % columns

    def describe(self, output: int) -> dict[str, Any]:
        """Return the template of the output, the channel that it sees, and its cell."""
        channel = int(self.sources[int(output) % len(self.sources)])
        return super().describe(output) | {"channel": channel}

    def to_state(self) -> dict[str, Any]:
        """Return pads, cells and channels."""
        return super().to_state() | {"sources": self.sources.tolist()}

    @classmethod
    def from_state(cls, state: State, arrays: Arrays, in_shape: Shape) -> DepthwiseLayer:
        plain = TemplateLayer.from_state(state, arrays, (*in_shape[:2], 1))
        sources = int_vector(state, "sources")
        check_sources(sources, len(plain.templates), in_shape[2])
        return cls(**vars(plain) | {"in_shape": in_shape, "sources": sources})


class Depthwise(Templates):
    """Templates that each see one channel; every channel gets the same number.

    Parameters
    ----------
    multiplier : int, default 1
        Templates per channel.
    size, pool, grid, padding, contrast, n_patches, stride
        As of :class:`Templates`.

    References
    ----------
    A. G. Howard et al., "MobileNets: efficient convolutional neural networks for mobile vision
    applications", 2017, §3.1.

    Examples
    --------
    >>> images = np.random.default_rng(0).random((5, 9, 9, 2), np.float32)
    >>> layer = Depthwise(3, 3, n_patches=900).fit(images, None, np.random.default_rng(0))
    >>> layer.out_shape, layer.sources.tolist()
    ((7, 7, 6), [0, 0, 0, 1, 1, 1])
    """

    kind = "depthwise"
    moves = True
    integer_rank = 1

    def __init__(
        self,
        multiplier: int = 1,
        size: int = 3,
        pool: int = 1,
        grid: int | None = None,
        padding: int = 0,
        contrast: str = "none",
        n_patches: int = 20_000,
        stride: int = 1,
    ) -> None:
        self.multiplier = multiplier
        self.size = size
        self.pool = pool
        self.grid = grid
        self.padding = padding
        self.contrast = contrast
        self.n_patches = n_patches
        self.stride = stride

    @property
    def n_templates(self) -> int:  # type: ignore[override]
        """Templates that are learned at a time: one channel's."""
        return self.multiplier

    def check_parameters(self) -> None:
        check_whole("multiplier", self.multiplier, most=1024)
        super().check_parameters()

    def fit(self, inputs: Any, y: np.ndarray | None, rng: np.random.Generator) -> DepthwiseLayer:
        """Return templates that are centers of the patches of each channel."""
        rows, columns, channels = (int(side) for side in inputs.shape[1:])
        pads, row_cells, col_cells = self.geometry((rows, columns))
        # Patches of few images: their channels are computed together.
        which = np.linspace(0, len(inputs) - 1, min(len(inputs), 500)).astype(np.int64)
        seen = np.asarray(inputs[which])
        templates = [
            sampled_templates(
                seen[..., channel : channel + 1],
                self.size,
                pads,
                self.multiplier,
                self.n_patches,
                self.contrast,
                rng,
            )
            for channel in range(channels)
        ]
        sources = np.repeat(np.arange(channels), self.multiplier)
        biases = np.zeros(len(sources), np.float32)
        shape = (rows, columns, channels)
        every = np.concatenate(templates)
        return DepthwiseLayer(shape, every, biases, pads, row_cells, col_cells, sources)
