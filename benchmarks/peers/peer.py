"""What peers share: what a training may take, what it returns, and parts of the training images."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from visionshare.datasets import ImageSet

__all__ = ["Effort", "Trained", "pixel_rows", "two_parts"]

VALIDATION = 1 / 6


class Effort(NamedTuple):
    """How many cores training may use, and whether a small run is enough."""

    jobs: int
    quick: bool


@dataclass(frozen=True)
class Trained:
    """A learned classifier and what is known of it before it is timed.

    Attributes
    ----------
    predict : callable
        Labels (n,) of images (n, H, W), bytes; on one thread where threads are limited to one.
    cost : str
        Multiply-accumulates per image, or what else is counted, with its unit.
    settings : str
        What it is, what was tuned and how, what was chosen.
    seconds : float or None
        Of training with the settings that were chosen; None where they are not known.
    tuning : float
        Seconds of choosing the settings.
    """

    predict: Callable[[np.ndarray], np.ndarray]
    cost: str
    settings: str
    seconds: float | None
    tuning: float = 0.0


def pixel_rows(images: np.ndarray) -> np.ndarray:
    """Return images as rows (n, p) of numbers in [0, 1], float32."""
    rows = images.reshape(len(images), -1).astype(np.float32)
    rows *= np.float32(1 / 255)
    return rows


def two_parts(
    train: ImageSet, most: int | None = None, validating: int | None = None
) -> tuple[ImageSet, ImageSet]:
    """Return a random part of the training images to learn from, and a sixth for validation.

    ``most`` and ``validating`` bound how many images the parts have.
    """
    order = np.random.default_rng(0).permutation(len(train))
    cut = round(len(train) * (1 - VALIDATION))
    learning, validation = order[:cut], order[cut:]
    return train.subset(learning[:most]), train.subset(validation[:validating])
