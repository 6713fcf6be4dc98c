"""Channels of an image, by fixed formulas, under the features of a family."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any, ClassVar

import numpy as np

from visionshare.errors import InputError
from visionshare.generators.around import FamilyAround
from visionshare.generators.base import FeatureFamily, check_images
from visionshare.generators.channels.formulas import (
    COLORS,
    GRADIENTS,
    Formulas,
    channel_names,
    formulas,
)
from visionshare.generators.checks import check_choice, check_memory, check_whole
from visionshare.generators.contributions import clipped_boxes, seen_boxes
from visionshare.generators.nested import parts_from_state, parts_to_state
from visionshare.generators.parameters import unfitted_copy
from visionshare.generators.pictures import Field
from visionshare.generators.states import family_state, unfitted
from visionshare.resources import run_blocks

__all__ = ["NORMALIZATIONS", "ChannelMaps"]

NORMALIZATIONS = ("none", "local")
_KNOWN = (*COLORS, *GRADIENTS)
# Images of one call of the kernel.
_AT_ONCE = 32


class ChannelMaps(FamilyAround):
    """The features of a family on channels of an image: colors, gradients, orientations.

    Channels are maps that fixed formulas make of the pixels. They are the values of a pixel of the
    image that the family sees, and computed once for all features. Nothing of them is learned.

    Parameters
    ----------
    family : FeatureFamily
        Unfitted, such as ``PatchTemplates(patch_size=4)``.
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

    Attributes
    ----------
    part_ : FeatureFamily
        The fitted family, of images of ``map_shape_``.
    map_shape_ : tuple of int
        Rows and columns of a map, and the number of maps.
    n_features_ : int
    image_shape_ : tuple of int

    References
    ----------
    P. Dollár, Z. Tu, P. Perona, S. Belongie, "Integral channel features", BMVC 2009.
    P. Dollár, R. Appel, S. Belongie, P. Perona, "Fast feature pyramids for object detection",
    PAMI 36, 2014.
    K. Jarrett, K. Kavukcuoglu, M. Ranzato, Y. LeCun, "What is the best multi-stage architecture
    for object recognition?", ICCV 2009: local normalization.

    Examples
    --------
    >>> from visionshare import Pixels
    >>> images = np.random.default_rng(0).integers(0, 256, (5, 8, 8, 3), np.uint8)
    >>> family = ChannelMaps(Pixels(), ("opponent", "orientations"), pool=2).fit(images)
    >>> family.map_shape_, family.n_features_
    ((4, 4, 8), 128)
    """

    name: ClassVar[str] = "channels"

    def __init__(
        self,
        family: Any = None,
        channels: Sequence[str] = ("orientations",),
        n_orientations: int = 6,
        pool: int = 1,
        normalization: str = "none",
        window: int = 9,
        epsilon: float = 0.01,
    ) -> None:
        self.family = family
        self.channels = channels
        self.n_orientations = n_orientations
        self.pool = pool
        self.normalization = normalization
        self.window = window
        self.epsilon = epsilon

    def _check_own(self) -> None:
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

    def fit(self, images: np.ndarray, y: np.ndarray | None = None) -> ChannelMaps:
        """Fit a copy of the family to the channels of images.

        Raises
        ------
        InputError
            If a parameter is out of range, the images are smaller than a cell or have no such
            channels, or their channels take more memory than there is.
        """
        self.check_parameters()
        n = len(self._see(images))
        self.map_shape_ = self._map_shape()
        # Maps of some images at a time.
        of_some = 8.0 * min(n, 16) * float(np.prod(self.map_shape_))
        check_memory("channels", self.channels, of_some)
        part = unfitted_copy(self.family).fit(self.computed(images), y)
        return self._with(part)

    def _map_shape(self) -> tuple[int, int, int]:
        """Return rows, columns and number of maps; check that images have these channels."""
        height, width, n_values = self.raster_shape
        colors = [name for name in self.channels if name in COLORS and name != "gray"]
        if n_values != 3 and colors:
            raise InputError("channels", colors[0], f"{n_values} values per pixel have no colors")
        if n_values not in (1, 3) and "gray" in self.channels:
            raise InputError("channels", "gray", f"{n_values} values per pixel are no gray")
        rows, cols = height // self.pool, width // self.pool
        if rows < 1 or cols < 1:
            accepted = f"images of at least {self.pool}×{self.pool} pixels"
            raise InputError("images", self.image_shape_, accepted)
        return rows, cols, self.formulas.n_maps

    @property
    def raster_shape(self) -> tuple[int, int, int]:
        """Rows, columns and values per pixel of an image; a vector is one row."""
        shape = tuple(self.image_shape_)
        height, width, n_values = {1: (1, *shape, 1), 2: (*shape, 1)}.get(len(shape), shape)
        return height, width, n_values

    @property
    def formulas(self) -> Formulas:
        """The tables that channels are computed from."""
        return formulas(self.channels, int(self.n_orientations), self.raster_shape[2])

    def _with(self, part: FeatureFamily) -> ChannelMaps:
        self.part_, self.n_features_ = part, part.n_features_
        return self

    def around(self, part: FeatureFamily) -> ChannelMaps:
        return self._like("map_shape_")._with(part)

    def scales(self, are_bytes: bool) -> tuple[np.float32, np.float32]:
        """Return epsilon in units of the pixels, and what sums over cells are multiplied with."""
        unit = 1 / 255 if are_bytes else 1.0
        of_maps = unit if self.normalization == "none" else 1.0
        return np.float32(self.epsilon / unit), np.float32(of_maps / self.pool**2)

    def _inner_shape(self) -> tuple[int, ...]:
        return self.map_shape_

    def inner_images(self, images: np.ndarray, n_jobs: int = 1) -> np.ndarray:
        """Return the maps (n, h, w, n_maps), float32, of images of the shape that is known.

        Raises
        ------
        InputError
            If they are of another shape.
        """
        from visionshare.generators.channels.kernels import channels_of_block

        raster = check_images(images, self.image_shape_)
        out = np.empty((len(raster), *self.map_shape_), np.float32)
        epsilon, factor = self.scales(raster.dtype == np.uint8)
        window = int(self.window) if self.normalization == "local" else 0
        tables, pool = self.formulas, int(self.pool)

        def block(start: int, stop: int) -> None:
            part = raster[start:stop]
            channels_of_block(part, tables, window, epsilon, pool, factor, out[start:stop])

        run_blocks(block, len(raster), _AT_ONCE, n_jobs)
        return out

    def outer_boxes(self, image: np.ndarray, boxes: np.ndarray) -> np.ndarray:
        """Return the pixels that boxes of the channels are made of, (n, 4).

        A gradient needs the pixels beside its own. Windows of a normalization are left out.
        """
        beside = int(self.formulas.has_gradients)
        pool = int(self.pool)
        field = Field(pool, -beside, pool + 2 * beside)
        return clipped_boxes(seen_boxes(boxes, field, field), self.image_shape_)

    @property
    def shared_macs(self) -> int:
        """Multiply-accumulates per image of all maps.

        A gradient counts 2 for each value of a pixel, and 2 for each square; an orientation 4; a
        mean over a window twice its side; a division 1; a cell 1 for each pixel and 1 more.
        """
        tables, (height, width, n_values) = self.formulas, self.raster_shape
        weights = tables.colors
        each = int(np.count_nonzero(weights[(weights != 0).sum(axis=1) > 1]))
        if tables.has_gradients:
            each += 4 * n_values + 1 + 4 * len(tables.orientations)
        if self.normalization == "local":
            n_colors = len(weights)
            each += n_colors * (4 * self.window + 2) + (tables.n_maps - n_colors)
            each += 2 * self.window if tables.has_gradients else 0
        pooling = int(self.pool > 1) * tables.n_maps
        cells = int(np.prod(self.map_shape_))
        return height * width * (each + pooling) + cells

    def describe(self, feature: int) -> dict[str, Any]:
        """Return the names of the maps, and what the family says of the feature on them."""
        inner = self.part_.describe(feature)
        names = channel_names(self.channels, int(self.n_orientations))
        return {"kind": "channels", "channels": names, "feature": inner}

    def to_state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        parameters = self.get_params(deep=False)
        del parameters["family"]
        states, arrays = parts_to_state([self.part_])
        return family_state(self, parameters=parameters, parts=states), arrays

    @classmethod
    def from_state(cls, state: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> ChannelMaps:
        """Return the family that :meth:`to_state` described."""
        family = unfitted(cls, state, arrays, {}, without=("family",))
        family._check_own()
        family.channels = tuple(family.channels)
        family.map_shape_ = family._map_shape()
        _, parts = parts_from_state(state, arrays, family.map_shape_)
        if len(parts) != 1:
            raise InputError("parts", len(parts), "one family")
        family.family = unfitted_copy(parts[0])
        return family._with(parts[0])
