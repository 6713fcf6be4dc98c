"""What a report draws of a family: panels of small pictures, without any drawing.

A family with pictures has a module ``pictures`` beside its own, with a function
``pictures(family, sample)`` that returns an object like :class:`Pictures`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from visionshare.generators.checks import check_images

# Templates or features on a panel, at most.
SHOWN = 30


@dataclass(frozen=True)
class Tile:
    """A small picture."""

    values: np.ndarray
    signed: bool = False


@dataclass(frozen=True)
class Row:
    """Tiles side by side, and what is written below them."""

    tiles: tuple[Tile, ...]
    label: str = ""


@dataclass(frozen=True)
class Stack:
    """Rows of tiles under a title: all that is shown of one template or feature."""

    title: str
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Panel:
    """Stacks with a heading and a caption."""

    heading: str
    caption: str
    stacks: tuple[Stack, ...]

    def with_note(self, note: str) -> Panel:
        """Return the panel with a sentence more in its caption."""
        return replace(self, caption=f"{self.caption} {note}")


@dataclass(frozen=True)
class Field:
    """Receptive fields: position i sees ``side`` pixels, the first is ``start + stride · i``."""

    stride: int = 1
    start: int = 0
    side: int = 1

    def after(self, size: int, pool: int = 1, padding: int = 0) -> Field:
        """Return what a position sees after templates, and maxima of cells."""
        return Field(
            self.stride * pool,
            self.start - self.stride * padding,
            self.side + self.stride * (size + pool - 2),
        )


@dataclass(frozen=True)
class Sample:
    """A sample of images, and what a family sees of them."""

    images: np.ndarray
    inputs: np.ndarray
    rows: Field = Field()
    cols: Field = Field()
    layer: int = 1
    called: str = "images"

    def through(self, size: int, paddings: tuple[int, ...], pool: int = 1) -> Sample:
        """Return the same with the fields of responses of templates, or of their maps."""
        rows, cols = (
            field.after(size, pool, padding)
            for field, padding in zip((self.rows, self.cols), paddings, strict=True)
        )
        return replace(self, rows=rows, cols=cols)

    @property
    def draws_templates(self) -> bool:
        """Whether a template of what is seen is itself a picture: of gray or color pixels."""
        return self.inputs is self.images and self.raster.shape[3] in (1, 3)

    @property
    def raster(self) -> np.ndarray:
        """Images (n, H, W, C)."""
        return check_images(self.images)

    def mean(self, which: np.ndarray) -> Tile:
        """Return the mean of whole images."""
        return Tile(_plain(self._pixels(which).mean(axis=0)))

    def patches(self, which: np.ndarray, rows: np.ndarray, cols: np.ndarray) -> np.ndarray:
        """Return what positions of images see, (n, h, w[, 3]), from 0 to 1."""
        # 0 outside of an image.
        pixels = self._pixels(which)
        y, y_inside = _covered(self.rows, rows, pixels.shape[1])
        x, x_inside = _covered(self.cols, cols, pixels.shape[2])
        patches = pixels[np.arange(len(which))[:, None, None], y[:, :, None], x[:, None]]
        return _plain(patches * (y_inside[:, :, None] & x_inside[:, None])[..., None])

    def _pixels(self, which: np.ndarray) -> np.ndarray:
        """Return images from 0 to 1; of other channels than colors, their mean."""
        raster = self.raster
        low, high = (0, 255) if raster.dtype == np.uint8 else (raster.min(), raster.max())
        pixels = (raster[which].astype(np.float32) - np.float32(low)) / np.float32(high - low or 1)
        return pixels if pixels.shape[3] in (1, 3) else pixels.mean(axis=3, keepdims=True)


class Pictures:
    """What is drawn of a family; of one without pictures, nothing."""

    def panels(self, numbers: Sequence[int]) -> list[Panel]:
        """Return the panels, beginning with the first layer's."""
        return []

    def tiles(self, feature: int) -> tuple[Tile, ...]:
        """Return a picture of one feature, of several tiles; none where there is no picture."""
        return ()


def template_tile(template: np.ndarray) -> Tile:
    """Return a template (h, w, C) of pixels as a tile."""
    return Tile(_plain(template), signed=True)


def _covered(field: Field, positions: np.ndarray, side: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the pixels (n, field.side) that positions see, and which of them there are."""
    pixels = (field.start + field.stride * positions)[:, None] + np.arange(field.side)
    return np.clip(pixels, 0, side - 1), (pixels >= 0) & (pixels < side)


def _plain(values: np.ndarray) -> np.ndarray:
    """Return an array without its last axis, if that is of one channel."""
    return values[..., 0] if values.shape[-1] == 1 else values
