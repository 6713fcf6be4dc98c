"""Data sets that come inside Python packages: digits and textures. Nothing is downloaded."""

from __future__ import annotations

import numpy as np

from visionshare.datasets.imageset import ImageSet
from visionshare.datasets.sampling import stratified_mask
from visionshare.datasets.textures import Cut, texture_patches

__all__ = ["load_digits", "load_textures"]

TEXTURES = ("brick", "grass", "gravel")


def load_digits(split: str, random_state: int = 0) -> ImageSet:
    """Return scikit-learn's 8×8 digits: two thirds of each class train, a third tests."""
    from sklearn.datasets import load_digits as sklearn_digits

    digits = sklearn_digits()
    tests = stratified_mask(digits.target, 1 / 3, random_state)
    chosen = tests if split == "test" else ~tests
    images = np.round(digits.images[chosen] * (255 / 16)).astype(np.uint8)
    return ImageSet(images, digits.target[chosen].astype(np.int64), tuple("0123456789"), "digits")


def load_textures(split: str, cut: Cut | None = None) -> ImageSet:
    """Return patches of scikit-image's textures: the left halves train, the right halves test."""
    from skimage import data

    # Files of the package itself, unlike most of its images: nothing is downloaded.
    plates = {name: getattr(data, name)() for name in TEXTURES}
    return texture_patches(plates, split, cut)
