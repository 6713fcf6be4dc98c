"""What peers share: what a training may take, what it returns, and parts of the training images."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from scripts.reproduce.results import stopwatch
from visionshare.datasets import ImageSet
from visionshare.datasets.sampling import stratified_mask

__all__ = ["HELD_OUT", "Choice", "Effort", "Trained", "inverse_of_variance", "pixel_rows"]
__all__ += ["processor_stopwatch", "two_parts"]

# The images that ours are tuned on too: `data.held_out` of a recipe, drawn by class.
HELD_OUT = 0.16667

# Settings that held-out images chose, and how: what JSON can hold.
Choice = Mapping[str, Any]


class Effort(NamedTuple):
    """What tuning and training may use.

    Attributes
    ----------
    jobs : int
        Threads.
    quick : bool
        Whether a small run is enough.
    seed : int
        Of a training. Tuning is done once, with seed 0.
    seconds : float
        Of a training that can be as long as it likes: of networks.
    tuning : float
        Seconds in which a network's settings are chosen.
    recipe : str
        Name or file of the recipe whose [deformations] deformed peers see.
    """

    jobs: int
    quick: bool
    seed: int = 0
    seconds: float = 60.0
    tuning: float = 180.0
    recipe: str = "mnist-quick"


@dataclass(frozen=True)
class Trained:
    """A learned classifier and what is known of it before it is timed.

    Attributes
    ----------
    predict : callable
        Labels (n,) of images (n, H, W) or (n, H, W, C), bytes; on one thread where threads are
        limited to one. It can be pickled, except ours.
    macs : int or None
        Multiply-accumulates per image; None where something else is counted.
    cost : str
        The same, or what else is counted, with its unit.
    n_bytes : int
        Of the numbers that prediction needs, in the types in which it computes.
    settings : str
        What it is, what was tuned and how, what was chosen.
    seconds : float or None
        Of the processor, for training with the settings that were chosen; None where they are not
        known.
    """

    predict: Callable[[np.ndarray], np.ndarray]
    macs: int | None
    cost: str
    n_bytes: int
    settings: str
    seconds: float | None


def processor_stopwatch() -> AbstractContextManager[list[float]]:
    """Return a list that holds the seconds of the process, of all its threads, after the block."""
    return stopwatch(time.process_time)


def pixel_rows(images: np.ndarray) -> np.ndarray:
    """Return images as rows (n, p) of numbers in [0, 1], float32."""
    rows = images.reshape(len(images), -1).astype(np.float32)
    rows *= np.float32(1 / 255)
    return rows


def inverse_of_variance(rows: np.ndarray) -> float:
    """Return 1 / (inputs · variance), scikit-learn's "scale" of a Gaussian kernel."""
    return 1 / (rows.shape[1] * float(rows.var(dtype=np.float64)))


def two_parts(
    train: ImageSet, most: int | None = None, validating: int | None = None
) -> tuple[ImageSet, ImageSet]:
    """Return training images to learn from and, held out, a sixth of each class for validation.

    Both in a random order; ``most`` and ``validating`` bound how many images the parts have.
    """
    held_out = stratified_mask(train.labels, HELD_OUT, 0)
    order = np.random.default_rng(0).permutation(len(train))
    learning, validation = order[~held_out[order]], order[held_out[order]]
    return train.subset(learning[:most]), train.subset(validation[:validating])
