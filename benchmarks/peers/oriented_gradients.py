"""Histograms of oriented gradients, classified by a Gaussian support vector machine.

References
----------
N. Dalal, B. Triggs, "Histograms of oriented gradients for human detection", CVPR 2005.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmarks.peers.peer import Choice, Effort, Trained, processor_stopwatch
from benchmarks.peers.svm import fit, searched
from scripts.reproduce.results import listed, render
from visionshare.datasets import ImageSet

__all__ = ["Histograms", "learn", "tune"]

ORIENTATIONS, GRIDS = 9, (4, 7)
COSTS, WIDTHS = (3.0, 10.0), (0.5, 1.0, 2.0)


@dataclass(frozen=True)
class Histograms:
    """scikit-image's histograms in about ``grid`` × ``grid`` cells, in blocks of 2 × 2."""

    grid: int

    def __call__(self, images: np.ndarray) -> np.ndarray:
        """Return rows (n, p), float32, of images (n, H, W) or (n, H, W, C)."""
        from skimage.feature import hog

        side = max(1, min(images.shape[1:3]) // self.grid)
        axis = -1 if images.ndim == 4 else None
        rows = [
            hog(image, ORIENTATIONS, (side, side), (2, 2), channel_axis=axis) for image in images
        ]
        return np.stack(rows).astype(np.float32)


def tune(train: ImageSet, effort: Effort) -> Choice:
    """Choose cells, C and γ on a part of the training images."""
    found = [searched(train, Histograms(g), COSTS, WIDTHS, effort.jobs) for g in GRIDS]
    best = int(np.argmin([choice["error"] for choice in found]))
    return {**found[best], "grid": GRIDS[best]}


def learn(train: ImageSet, effort: Effort, choice: Choice) -> Trained:
    """Train on all images."""
    with processor_stopwatch() as seconds:
        predict = fit(train, Histograms(choice["grid"]), choice)
    votes = predict.votes
    settings = render(
        "peers/oriented_gradients",
        orientations=ORIENTATIONS,
        grid=choice["grid"],
        grids=listed(GRIDS),
        n_pairs=choice["n_pairs"],
        costs=listed(COSTS),
        widths=listed(WIDTHS),
        n_validation=choice["n_validation"],
        n_train=choice["n_train"],
        cost=f"{choice['cost']:g}",
        gamma=f"{choice['gamma']:.4f}",
        error=f"{100 * choice['error']:.2f}",
        n_vectors=f"{votes.n_vectors:,}",
    )
    cost = f"{votes.macs:,} after the histograms"
    return Trained(predict, votes.macs, cost, 4 * votes.macs, settings, seconds[0])
