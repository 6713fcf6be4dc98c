"""A layer of channels: maps that fixed formulas make of the pixels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from typing import Any

import numpy as np

from visionshare.errors import InputError
from visionshare.generators.checks import check_choice, check_whole
from visionshare.generators.contributions import clipped_boxes, seen_boxes
from visionshare.generators.layers.channels.formulas import (
    COLORS,
    GRADIENTS,
    Formulas,
    channel_names,
    formulas,
)
from visionshare.generators.layers.channels.kernels import HEADER
from visionshare.generators.layers.layer import Fitted, Layer, LayerCode, Shape
from visionshare.generators.pictures import Field
from visionshare.generators.states import Arrays, State

NORMALIZATIONS = ("none", "local")
_KNOWN = (*COLORS, *GRADIENTS)


@dataclass(frozen=True, eq=False)
class ChannelLayer(Fitted):
    """Channels of images."""

    kind = "channels"
    in_shape: Shape
    channels: tuple[str, ...]
    n_orientations: int
    pool: int
    normalization: str
    window: int
    epsilon: float

    def __post_init__(self) -> None:
        n_values = self.in_shape[2]
        colors = [name for name in self.channels if name in COLORS and name != "gray"]
        if n_values != 3 and colors:
            raise InputError("channels", colors[0], f"{n_values} values per pixel have no colors")
        if n_values not in (1, 3) and "gray" in self.channels:
            raise InputError("channels", "gray", f"{n_values} values per pixel are no gray")
        if min(self.out_shape[:2]) < 1:
            accepted = f"images of at least {self.pool}×{self.pool} pixels"
            raise InputError("images", self.in_shape, accepted)

    @property
    def formulas(self) -> Formulas:
        """The tables that channels are computed from."""
        return formulas(self.channels, self.n_orientations, self.in_shape[2])

    @property
    def out_shape(self) -> Shape:
        """Rows and columns of cells, and the number of maps."""
        rows, columns, _ = self.in_shape
        return rows // self.pool, columns // self.pool, self.formulas.n_maps

    def scales(self, are_bytes: bool) -> tuple[np.float32, np.float32]:
        """Return epsilon in units of the pixels, and what sums over cells are multiplied with."""
        unit = 1 / 255 if are_bytes else 1.0
        of_maps = unit if self.normalization == "none" else 1.0
        return np.float32(self.epsilon / unit), np.float32(of_maps / self.pool**2)

    def macs(self, outputs: np.ndarray | None = None) -> int:
        """Return the multiply-accumulates per image of all maps."""
        # A gradient counts 2 for each value of a pixel, and 2 for each square; an orientation 4;
        # a mean over a window twice its side; a division 1; a cell 1 for each pixel and 1 more.
        tables = self.formulas
        height, width, n_values = self.in_shape
        weights = tables.colors
        each = int(np.count_nonzero(weights[(weights != 0).sum(axis=1) > 1]))
        if tables.has_gradients:
            each += 4 * n_values + 1 + 4 * len(tables.orientations)
        if self.normalization == "local":
            n_colors = len(weights)
            each += n_colors * (4 * self.window + 2) + (tables.n_maps - n_colors)
            each += 2 * self.window if tables.has_gradients else 0
        pooling = int(self.pool > 1) * tables.n_maps
        return height * width * (each + pooling) + int(np.prod(self.out_shape))

    @cached_property
    def code(self) -> LayerCode:
        """The layer as compiled functions read it."""
        tables = self.formulas
        n_colors = len(tables.colors)
        n_orientations = len(tables.orientations)
        window = self.window if self.normalization == "local" else 0
        header = np.zeros(HEADER + 1, np.int64)
        header[:3] = self.in_shape
        header[3:6] = self.out_shape
        header[6:10] = n_colors, n_orientations, self.pool, window
        header[10] = tables.magnitude_map
        header[HEADER] = tables.orientation_map
        ints = np.concatenate([header, np.asarray(tables.color_maps, np.int64)])
        epsilon = np.array([self.epsilon], np.float32)
        floats = [epsilon, tables.colors.ravel(), tables.orientations.ravel()]
        return LayerCode(ints, np.concatenate(floats).astype(np.float32), 0)

    def outer_boxes(self, inputs: np.ndarray, boxes: np.ndarray) -> np.ndarray:
        """Return the pixels that boxes of the channels are made of."""
        # A gradient needs the pixels beside its own. Windows of a normalization are left out.
        beside = int(self.formulas.has_gradients)
        field = Field(self.pool, -beside, self.pool + 2 * beside)
        return clipped_boxes(seen_boxes(boxes, field, field), self.in_shape)

    def describe(self, output: int) -> dict[str, Any]:
        """Return the name of the map, and where in it the output is."""
        row, column, number = np.unravel_index(int(output), self.out_shape)
        name = channel_names(self.channels, self.n_orientations)[int(number)]
        return {"kind": "channel", "channel": name, "row": int(row), "column": int(column)}

    def to_state(self) -> dict[str, Any]:
        """Return the parameters."""
        return {
            "channels": list(self.channels),
            "n_orientations": int(self.n_orientations),
            "pool": int(self.pool),
            "normalization": self.normalization,
            "window": int(self.window),
            "epsilon": float(self.epsilon),
        }

    @classmethod
    def from_state(cls, state: State, arrays: Arrays, in_shape: Shape) -> ChannelLayer:
        names = Channels().get_params()
        if not set(names) <= set(state):
            raise InputError("layers", sorted(state), f"values for {sorted(names)}")
        made = Channels(**{name: state[name] for name in names})
        made.check_parameters()
        return made.of_shape(in_shape)


@dataclass(eq=False, repr=False)
class Channels(Layer):
    """Channels of an image by fixed formulas: colors, gradients, orientations.

    Parameters
    ----------
    channels : sequence of str, default ("orientations",)
        In this order; each once.

        - ``"gray"``: brightness, (77 R + 150 G + 29 B) / 256.
        - ``"rgb"``, ``"ycbcr"``, ``"opponent"``: of color images the three colors; brightness, blue
          and red differences of JPEG, around 0; red−green and yellow−blue.
        - ``"magnitude"``: the length of the gradient, of the color where it is largest.
        - ``"orientations"``: the gradient by direction, ``n_orientations`` maps.
    n_orientations : int, default 6
        Directions from 0° to 180°, 2 to 64. A gradient is shared by the two that it lies between.
    pool : int, default 1
        Side of the cells whose mean is taken; 1 for every pixel.
    normalization : {"none", "local"}, default "none"
        "local": from a map of colors the mean of the window around each pixel is subtracted, and
        what is left divided by its root mean square in the window; maps of gradients are divided
        by the mean magnitude in the window.
    window : int, default 9
        Side of these windows, an odd number of pixels; at the border, the part in the image.
    epsilon : float, default 0.01
        Added to what is divided by, where bytes are between 0 and 1.

    References
    ----------
    P. Dollár, Z. Tu, P. Perona, S. Belongie, "Integral channel features", BMVC 2009.
    P. Dollár, R. Appel, S. Belongie, P. Perona, "Fast feature pyramids for object detection",
    PAMI 36, 2014.
    K. Jarrett, K. Kavukcuoglu, M. Ranzato, Y. LeCun, "What is the best multi-stage architecture
    for object recognition?", ICCV 2009: local normalization.

    Examples
    --------
    >>> images = np.zeros((5, 8, 8, 3), np.uint8)
    >>> layer = Channels(("opponent", "orientations"), pool=2)
    >>> layer.fit(images, None, np.random.default_rng(0)).out_shape
    (4, 4, 8)
    """

    kind = "channels"
    channels: Sequence[str] = ("orientations",)
    n_orientations: int = 6
    pool: int = 1
    normalization: str = "none"
    window: int = 9
    epsilon: float = 0.01

    def check_parameters(self) -> None:
        known = " or ".join(map(repr, _KNOWN))
        listed = isinstance(self.channels, (list, tuple)) and len(self.channels) > 0
        if not listed or not all(isinstance(name, str) for name in self.channels):
            raise InputError("channels", self.channels, f"a list of one or more of {known}")
        for name in self.channels:
            check_choice("channels", name, _KNOWN)
        if len(set(self.channels)) < len(self.channels):
            raise InputError("channels", self.channels, "each name once")
        check_whole("n_orientations", self.n_orientations, least=2, most=64)
        check_whole("pool", self.pool, most=64)
        check_choice("normalization", self.normalization, NORMALIZATIONS)
        check_whole("window", self.window, least=3, most=63)
        if self.window % 2 == 0:
            raise InputError("window", self.window, "an odd number")
        number = isinstance(self.epsilon, Real) and not isinstance(self.epsilon, bool)
        if not number or not 1e-6 <= float(self.epsilon) <= 1e6:
            raise InputError("epsilon", self.epsilon, "a number from 1e-6 to 1e6")

    def fit(self, inputs: Any, y: np.ndarray | None, rng: np.random.Generator) -> ChannelLayer:
        """Return the layer: nothing is learned."""
        rows, columns, n_values = (int(side) for side in inputs.shape[1:])
        return self.of_shape((rows, columns, n_values))

    def of_shape(self, in_shape: Shape) -> ChannelLayer:
        """Return the layer of images of a shape."""
        return ChannelLayer(
            in_shape,
            tuple(self.channels),
            int(self.n_orientations),
            int(self.pool),
            self.normalization,
            int(self.window),
            float(self.epsilon),
        )
