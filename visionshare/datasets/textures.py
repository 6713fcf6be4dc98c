"""Patches cut from images of textures; no training patch shares a pixel with a test patch."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from visionshare.datasets.checks import check_number
from visionshare.datasets.folders import find_images, read_image
from visionshare.datasets.imageset import ImageSet
from visionshare.errors import DataError
from visionshare.machine.memory import check_fits


@dataclass(frozen=True)
class Cut:
    """How patches are cut from textures.

    Attributes
    ----------
    size : int
        Side of a patch, in pixels.
    per_class : int
        Patches per class, of each split.
    seed : int
        Of the patches' positions.

    Examples
    --------
    >>> Cut(size=20).per_class
    1000
    """

    size: int = 16
    per_class: int = 1000
    seed: int = 0

    def __post_init__(self) -> None:
        for name, least in (("size", 2), ("per_class", 1), ("seed", 0)):
            check_number(name, getattr(self, name), least, whole=True)


def cut_patches(
    plate: np.ndarray,
    n: int,
    size: int,
    rng: np.random.Generator,
    taken: np.ndarray | None = None,
) -> np.ndarray:
    """Return ``n`` patches of a plate, at random positions; they may overlap."""
    import cv2

    height, width = (side - size + 1 for side in plate.shape[:2])
    if height < 1 or width < 1:
        shape = "×".join(map(str, plate.shape[:2]))
        raise DataError(f"a plate, or its half, of {shape} pixels has no patch of {size}×{size}")
    if taken is None:
        ys = rng.integers(height, size=n)
        xs = rng.integers(width, size=n)
    else:
        window = np.ones((size, size), np.uint8)
        # Of each pixel, the largest value in the patch that begins there.
        blocked = cv2.dilate(taken.astype(np.uint8), window, anchor=(0, 0))
        free = np.argwhere(blocked[:height, :width] == 0)
        if len(free) == 0:
            raise DataError(f"no patch of {size}×{size} pixels is free of the pixels taken")
        ys, xs = free[rng.integers(len(free), size=n)].T
    return np.stack([plate[y : y + size, x : x + size] for y, x in zip(ys, xs, strict=True)])


def texture_patches(
    plates: Mapping[str, np.ndarray], split: str, cut: Cut | None = None, name: str = "textures"
) -> ImageSet:
    """Return patches of textures: the left half of each plate trains, the right half tests."""
    # Pixels keep their values: what classifies a window of a larger image later has the window
    # alone, and knows neither the plate's mean nor the image's. Where brightness should not
    # count, the features can ignore it, such as Gabor filters with ``zero_mean``.
    cut = cut or Cut()
    rng = np.random.default_rng([cut.seed, split == "test"])
    n = cut.per_class
    one = next(iter(plates.values()))
    patch = (cut.size, cut.size, *one.shape[2:])
    needed = len(plates) * n * float(np.prod(patch)) * one.itemsize
    check_fits(f"{n} patches of each of {len(plates)} textures", needed, "fewer (data.cut)")
    images = np.empty((len(plates) * n, *patch), one.dtype)
    for number, (title, plate) in enumerate(plates.items()):
        middle = plate.shape[1] // 2
        half = plate[:, middle:] if split == "test" else plate[:, :middle]
        try:
            images[number * n : (number + 1) * n] = cut_patches(half, n, cut.size, rng)
        except DataError as error:
            raise DataError(f"{name}: {title}: {error}") from None
    labels = np.repeat(np.arange(len(plates)), n)
    return ImageSet(images, labels, tuple(plates), name)


def read_plates(folder: str | os.PathLike[str], mode: str = "gray") -> dict[str, np.ndarray]:
    """Return the images of textures in a folder by their file names without ending."""
    files = find_images(folder)
    names = [file.stem for file in files]
    if len(files) < 2:
        raise DataError(f"{folder}: {len(files)} images; it needs two textures or more")
    if len(set(names)) < len(names):
        twice = max(names, key=names.count)
        raise DataError(f"{folder}: several textures have the name {twice!r}")
    return {name: read_image(file, mode=mode) for name, file in zip(names, files, strict=True)}
