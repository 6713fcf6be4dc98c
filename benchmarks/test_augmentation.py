"""Augmentation of color images against plain numpy, an image at a time; on one thread."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from benchmarks.measuring import Paired
from visionshare.datasets import Augmentation, augmented_copies

PAD = 4
CROPS = Augmentation(
    alpha=0.0, rotation=0.0, scale=0.0, shear=0.0, flip=0.5, shift=PAD, border="reflect"
)  # fmt: skip


@pytest.fixture(scope="module")
def images() -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (4096, 32, 32, 3), np.uint8)


def _crop(image: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return a random crop of the reflected image, mirrored half of the time."""
    padded = np.pad(image, ((PAD, PAD), (PAD, PAD), (0, 0)), mode="reflect")
    top, left = rng.integers(0, 2 * PAD + 1, 2)
    crop = padded[top : top + 32, left : left + 32]
    return crop[:, ::-1] if rng.random() < 0.5 else crop


def _recolored(image: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return an image of other saturation, contrast and brightness."""
    s, c, b = (rng.uniform(0.8, 1.2, 3)).astype(np.float32)
    values = image.astype(np.float32)
    gray = values @ np.array([0.299, 0.587, 0.114], np.float32)
    values = gray[..., None] + s * (values - gray[..., None])
    values = b * (gray.mean() + c * (values - gray.mean()))
    return np.clip(values + 0.5, 0, 255).astype(np.uint8)


def test_crops(paired: Paired, images: np.ndarray) -> None:
    """Mirrors and shifts by up to 4 pixels."""

    def plain() -> None:
        rng = np.random.default_rng(0)
        np.stack([_crop(image, rng) for image in images])

    with threadpool_limits(1):
        paired(lambda: list(augmented_copies(images, CROPS)), plain)


def test_crops_and_colors(paired: Paired, images: np.ndarray) -> None:
    """The same, and three changes of color."""
    settings = replace(CROPS, brightness=0.2, contrast=0.2, saturation=0.2)

    def plain() -> None:
        rng = np.random.default_rng(0)
        np.stack([_recolored(_crop(image, rng), rng) for image in images])

    with threadpool_limits(1):
        paired(lambda: list(augmented_copies(images, settings)), plain)
