"""Patches drawn from images: what templates are learned from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from visionshare.errors import InputError
from visionshare.generators.lazy_images import WORKING_BYTES

# Patches whose images are padded together.
PATCHES_AT_ONCE = 8192


def drawn_patches(
    images: Any,
    which: np.ndarray,
    corners: tuple[np.ndarray, np.ndarray],
    size: int,
    pads: tuple[int, int],
    budget: int = WORKING_BYTES,
) -> np.ndarray:
    """Return patches (n, size, size, C), float32, bytes as 0 to 1."""
    ys, xs = corners
    unit = np.float32(1 / 255) if images.dtype == np.uint8 else np.float32(1)
    _, height, width, channels = images.shape
    patches = np.empty((len(which), size, size, channels), np.float32)
    margins = ((0, 0), (pads[0], pads[0]), (pads[1], pads[1]), (0, 0))
    area = (height + 2 * pads[0]) * (width + 2 * pads[1]) * channels
    # Beside the padded images there are those that were drawn.
    most = max(1, budget // (2 * images.dtype.itemsize * area))
    dy = np.arange(size)[:, None]
    dx = np.arange(size)[None, :]
    for part in _parts(which, most):
        drawn, index = np.unique(which[part], return_inverse=True)
        block = np.pad(images[drawn], margins)
        y = ys[part][:, None, None] + dy
        x = xs[part][:, None, None] + dx
        patches[part] = block[index[:, None, None], y, x] * unit
    return patches


def check_contrast(n_patches: int, name: str, n_templates: int) -> None:
    """Refuse to make more templates than there are patches with contrast."""
    if n_patches == 0:
        accepted = "pictures with edges; of plain colors learn with another family, such as Pixels"
        raise InputError("images", "patches of one color alone", accepted)
    if n_patches < n_templates:
        raise InputError(name, n_templates, f"at most {n_patches}, the patches with contrast")


def _parts(which: np.ndarray, most: int) -> Iterator[slice]:
    """Yield parts of ascending draws, of so many patches and of at most so many images."""
    number = np.cumsum(np.diff(which, prepend=which[:1]) != 0)
    start = 0
    while start < len(which):
        images = int(np.searchsorted(number, number[start] + most))
        stop = min(start + PATCHES_AT_ONCE, images)
        yield slice(start, stop)
        start = stop
