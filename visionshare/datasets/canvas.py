"""A picture on a black canvas: the size of its box, and where the box lies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from PIL import Image

#: First row, last row (exclusive), first column, last column (exclusive).
Box = tuple[int, int, int, int]
CENTERS = ("box", "mass")


@dataclass(frozen=True)
class Placement:
    """Which part of a picture became which part of an image."""

    part: Box
    place: Box

    def in_picture(self, boxes: np.ndarray) -> np.ndarray:
        """Return boxes of the image in pixels of the picture; canvas lies outside of its part."""
        moved = np.array(boxes, np.float64).reshape(-1, 4)
        for first in (0, 2):
            (start, stop), (low, high) = (box[first : first + 2] for box in (self.part, self.place))
            scale = (stop - start) / max(1, high - low)
            moved[:, first : first + 2] = start + (moved[:, first : first + 2] - low) * scale
        return moved


def array_of(image: Image.Image) -> np.ndarray:
    """Return the pixels of a picture of mode "L" or "RGB"; Pillow's own way costs more for each."""
    shape = (image.height, image.width, 3)[: 2 if image.mode == "L" else 3]
    return np.frombuffer(image.tobytes(), np.uint8).reshape(shape)


def image_of(pixels: np.ndarray) -> Image.Image:
    """Return bytes (H, W) or (H, W, 3) as a picture, without a copy where they lie in order."""
    from PIL import Image

    mode = "L" if pixels.ndim == 2 else "RGB"
    size = (pixels.shape[1], pixels.shape[0])
    return Image.frombuffer(mode, size, np.ascontiguousarray(pixels), "raw", mode, 0, 1)


def to_gray(picture: np.ndarray) -> np.ndarray:
    """Return 0.299 R + 0.587 G + 0.114 B of a picture (H, W, 3)."""
    # A gray one is returned itself.
    from PIL import Image

    return picture if picture.ndim == 2 else np.asarray(Image.fromarray(picture).convert("L"))


def box_size(
    shape: tuple[int, ...], size: tuple[int, int], margin: int = 0
) -> tuple[tuple[int, int], float]:
    """Return the largest size inside a canvas that keeps a picture's proportions."""
    # And its scale.
    scale = min((a - 2 * margin) / b for a, b in zip(size, shape, strict=False))
    height, width = (max(1, round(side * scale)) for side in shape[:2])
    return (height, width), scale


def on_canvas(
    picture: np.ndarray, size: tuple[int, int], center: str = "box"
) -> tuple[np.ndarray, Box]:
    """Return a picture in the middle of a black canvas, and its box there."""
    height, width = picture.shape[:2]
    if center == "mass":
        y, x = _mass_offsets(to_gray(picture).astype(np.float64), size)
    else:
        y = (size[0] - height) // 2
        x = (size[1] - width) // 2
    canvas = np.zeros((*size, *picture.shape[2:]), np.uint8)
    canvas[y : y + height, x : x + width] = picture
    return canvas, (y, y + height, x, x + width)


def _mass_offsets(weights: np.ndarray, size: tuple[int, int]) -> list[int]:
    """Return where a picture must begin for its center of mass to be in the canvas's middle."""
    if not weights.any():
        weights = np.ones_like(weights)
    total = weights.sum()
    offsets = []
    for axis, side in enumerate(size):
        length = weights.shape[axis]
        mean = float(weights.sum(axis=1 - axis) @ np.arange(length) / total)
        offsets.append(min(max(round((side - 1) / 2 - mean), 0), side - length))
    return offsets


def border_of(gray: np.ndarray) -> np.ndarray:
    """Return the values of a picture's border; corners count once."""
    return np.concatenate([gray[0], gray[-1], gray[1:-1, 0], gray[1:-1, -1]])


def box_of(mask: np.ndarray) -> Box:
    """Return the smallest box of what is marked."""
    import cv2

    left, top, width, height = cv2.boundingRect(np.ascontiguousarray(mask, np.uint8))
    return top, top + height, left, left + width
