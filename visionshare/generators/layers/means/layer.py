"""A layer of means of channels over the plane."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from visionshare.errors import InputError
from visionshare.generators.layers.layer import Fitted, Layer, LayerCode, Selection, Shape
from visionshare.generators.layers.states import check_sources, int_vector
from visionshare.generators.states import Arrays, State


@dataclass(frozen=True, eq=False)
class MeanLayer(Fitted):
    """Means over rows and columns: out[t] = mean of image[:, :, sources_t]."""

    kind = "means"
    moves = True
    integer_rank = 1
    weighs_pixels = False
    reads_some_channels = True
    in_shape: Shape
    #: Channels, ascending.
    sources: np.ndarray

    @property
    def out_shape(self) -> Shape:
        """One row and column of as many channels as there are means."""
        return 1, 1, len(self.sources)

    @property
    def n_positions(self) -> int:
        """Values of a mean."""
        return self.in_shape[0] * self.in_shape[1]

    def macs(self, outputs: np.ndarray | None = None) -> int:
        """Return the additions per image."""
        n = len(self.sources) if outputs is None else len(np.unique(outputs))
        return n * self.n_positions

    def added_macs(self, outputs: np.ndarray, chosen: np.ndarray) -> np.ndarray | None:
        """Return the additions of each mean that is not chosen."""
        return np.where(np.isin(outputs, chosen), 0, self.n_positions)

    @property
    def code(self) -> LayerCode:
        """The layer as compiled functions read it."""
        ints = np.array([self.n_positions, self.in_shape[2], *self.sources], np.int64)
        return LayerCode(ints, np.empty(0, np.float32), 0)

    def take(self, outputs: np.ndarray) -> Selection:
        """Return the means in use, and the channels that they see."""
        used, places = np.unique(outputs, return_inverse=True)
        sources = self.sources[used]
        return Selection(replace(self, sources=sources), places.reshape(-1), sources)

    def take_channels(self, channels: np.ndarray) -> MeanLayer:
        in_shape = (*self.in_shape[:2], len(channels))
        return MeanLayer(in_shape, np.searchsorted(channels, self.sources))

    def describe(self, output: int) -> dict[str, Any]:
        """Return the channel."""
        return {"kind": "mean", "channel": int(self.sources[output])}

    def to_state(self) -> dict[str, Any]:
        """Return the channels."""
        return {"sources": self.sources.tolist()}

    @classmethod
    def from_state(cls, state: State, arrays: Arrays, in_shape: Shape) -> MeanLayer:
        sources = int_vector(state, "sources")
        check_sources(sources, len(sources), in_shape[2])
        if (np.diff(sources) <= 0).any():
            raise InputError("sources", sources.tolist()[:20], "ascending channels")
        return cls(in_shape, sources)


class Means(Layer):
    """The mean of each channel over all rows and columns: few features of many templates.

    References
    ----------
    M. Lin, Q. Chen, S. Yan, "Network in network", ICLR 2014, §3.2.

    Examples
    --------
    >>> images = np.random.default_rng(0).random((5, 9, 9, 4), np.float32)
    >>> Means().fit(images, None, np.random.default_rng(0)).out_shape
    (1, 1, 4)
    """

    kind = "means"
    moves = True
    integer_rank = 1
    weighs_pixels = False

    def fit(self, inputs: Any, y: np.ndarray | None, rng: np.random.Generator) -> MeanLayer:
        """Return the means of inputs of a shape."""
        rows, columns, channels = (int(side) for side in inputs.shape[1:])
        return MeanLayer((rows, columns, channels), np.arange(channels))
