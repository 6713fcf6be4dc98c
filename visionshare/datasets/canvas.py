"""A picture on a black canvas: the size of its box, and where the box lies."""

from __future__ import annotations

import numpy as np

CENTERS = ("box", "mass")


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


def on_canvas(picture: np.ndarray, size: tuple[int, int], center: str = "box") -> np.ndarray:
    """Return a picture in the middle of a black canvas."""
    top, bottom, left, right = canvas_place(picture, size, center)
    canvas = np.zeros((*size, *picture.shape[2:]), np.uint8)
    canvas[top:bottom, left:right] = picture
    return canvas


def canvas_place(
    picture: np.ndarray, size: tuple[int, int], center: str = "box"
) -> tuple[int, int, int, int]:
    """Return where :func:`on_canvas` lays a picture."""
    # First and last row, first and last column. The last ones are exclusive.
    height, width = picture.shape[:2]
    y, x = (size[0] - height) // 2, (size[1] - width) // 2
    if center == "mass":
        y, x = _mass_offsets(picture, size)
    return y, y + height, x, x + width


def _mass_offsets(picture: np.ndarray, size: tuple[int, int]) -> tuple[int, int]:
    """Return where a picture must begin for its center of mass to be in the canvas's middle."""
    weights = to_gray(picture).astype(np.float64)
    total = weights.sum()
    if total == 0:
        weights, total = np.ones_like(weights), float(weights.size)
    offsets = []
    for axis, side in enumerate(size):
        length = weights.shape[axis]
        mean = float(weights.sum(axis=1 - axis) @ np.arange(length) / total)
        offsets.append(min(max(round((side - 1) / 2 - mean), 0), side - length))
    return offsets[0], offsets[1]
