"""A convolutional Tsetlin machine of binary pixels: learned by tmu, computed here.

tmu 0.8 needs NumPy 1, and so an environment of its own; what it learned is pickled without it.

References
----------
O.-C. Granmo, S. Glimsdal, L. Jiao, M. Goodwin, C. W. Omlin, G. T. Berge, "The convolutional
Tsetlin machine", 2019.
"""

from __future__ import annotations

import itertools
import logging
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import numba
import numpy as np

from benchmarks.peers.peer import Choice, Effort, Trained, processor_stopwatch, two_parts
from scripts.reproduce.results import listed, render
from visionshare.datasets import ImageSet

__all__ = ["TsetlinMachine", "learn", "literals", "tune"]

# Clauses of a class, the side of the patches that they see, and the pixels that count as ink.
CLAUSES, QUICK_CLAUSES, SIDE, INK = 200, 20, 10, 75
EPOCHS, TUNING_EPOCHS = 15, 5
# Margins as multiples of the clauses, and specificities.
MARGINS, SPECIFICITIES = (0.6, 1.25, 2.5), (5.0, 10.0)
MOST, VALIDATION = 5_000, 5_000


def literals(images: np.ndarray) -> np.ndarray:
    """Return the literals of all patches, packed: uint32 (n, patches, words).

    First whether a patch lies below each row and right of each column where another may be, then
    its pixels; then the negations of all.
    """
    ink = images > INK
    windows = np.lib.stride_tricks.sliding_window_view(ink, (SIDE, SIDE), axis=(1, 2))
    n, rows, cols = windows.shape[:3]
    below = np.arange(rows)[:, None] > np.arange(rows - 1)
    right = np.arange(cols)[:, None] > np.arange(cols - 1)
    shape = (n, rows, cols)
    parts = [
        np.broadcast_to(below[None, :, None], (*shape, rows - 1)),
        np.broadcast_to(right[None, None], (*shape, cols - 1)),
        windows.reshape(*shape, SIDE * SIDE),
    ]
    features = np.concatenate(parts, axis=3).reshape(n, rows * cols, -1)
    bits = np.concatenate([features, ~features], axis=2)
    missing = -bits.shape[2] % 32
    packed = np.packbits(np.pad(bits, ((0, 0), (0, 0), (0, missing))), axis=2, bitorder="little")
    return packed.view("<u4")


@dataclass(frozen=True)
class TsetlinMachine:
    """Weighted clauses: one is true of an image if all its literals are true of some patch.

    Attributes
    ----------
    included : ndarray of uint32, shape (k, clauses, words)
        The literals of each clause of each class.
    weights : ndarray of int32, shape (k, clauses)
    """

    included: np.ndarray
    weights: np.ndarray

    def __call__(self, images: np.ndarray) -> np.ndarray:
        """Return the labels of images (n, H, W) of bytes."""
        scores = np.empty((len(images), len(self.weights)), np.int64)
        for i in range(0, len(images), 100):
            part = literals(images[i : i + 100])
            _scores(part, self.included, self.weights, scores[i : i + 100])
        return np.argmax(scores, axis=1)


@numba.njit(cache=True)
def _scores(
    patches: np.ndarray, included: np.ndarray, weights: np.ndarray, out: np.ndarray
) -> None:
    n, n_patches, words = patches.shape
    for i in range(n):
        for k in range(weights.shape[0]):
            total = 0
            for c in range(weights.shape[1]):
                empty, found = True, False
                for w in range(words):
                    empty &= included[k, c, w] == 0
                if empty:
                    continue
                for p in range(n_patches):
                    held = True
                    for w in range(words):
                        if included[k, c, w] & ~patches[i, p, w]:
                            held = False
                            break
                    if held:
                        found = True
                        break
                if found:
                    total += weights[k, c]
            out[i, k] = total


def _machine(clauses: int, margin: float, specificity: float, seed: int) -> Any:
    # It warns that it was not built for CUDA.
    logging.getLogger("tmu").setLevel(logging.ERROR)
    from tmu.models.classification.vanilla_classifier import TMClassifier

    return TMClassifier(
        clauses,
        round(margin * clauses),
        specificity,
        weighted_clauses=True,
        patch_dim=(SIDE, SIDE),
        platform="CPU",
        seed=seed + 1,
    )


def _fitted(machine: Any, train: ImageSet, epochs: int) -> TsetlinMachine:
    ink = (train.images > INK).astype(np.uint32)
    for _ in range(epochs):
        machine.fit(ink, train.labels.astype(np.uint32), shuffle=True)
    classes = range(len(train.classes))
    banks = [machine.clause_banks[k] for k in classes]
    # The highest bit of a literal's state says whether its clause includes it.
    included = [
        bank.clause_bank.reshape(bank.number_of_clauses, -1, bank.number_of_state_bits_ta)[..., -1]
        for bank in banks
    ]
    weights = [machine.weight_banks[k].get_weights() for k in classes]
    return TsetlinMachine(np.stack(included), np.stack(weights).astype(np.int32))


def tune(train: ImageSet, effort: Effort) -> Choice:
    """Choose margin and specificity on parts of the training images."""
    part, validation = two_parts(train, MOST, VALIDATION)
    clauses = QUICK_CLAUSES if effort.quick else CLAUSES
    errors = {}
    for margin, specificity in itertools.product(MARGINS, SPECIFICITIES):
        found = _fitted(_machine(clauses, margin, specificity, 0), part, TUNING_EPOCHS)
        errors[margin, specificity] = float(np.mean(found(validation.images) != validation.labels))
    best = min(errors, key=lambda key: errors[key])
    return {
        "margin": best[0],
        "specificity": best[1],
        "error": errors[best],
        "n_train": len(part),
        "n_validation": len(validation),
    }


def learn(train: ImageSet, effort: Effort, choice: Choice) -> Trained:
    """Train on all images."""
    clauses, epochs = (QUICK_CLAUSES, 1) if effort.quick else (CLAUSES, EPOCHS)
    with processor_stopwatch() as seconds:
        machine = _machine(clauses, choice["margin"], choice["specificity"], effort.seed)
        found = _fitted(machine, train, epochs)
    n_classes, _, words = found.included.shape
    patches = (train.images.shape[1] - SIDE + 1) * (train.images.shape[2] - SIDE + 1)
    settings = render(
        "peers/tsetlin",
        version=version("tmu"),
        clauses=clauses,
        side=SIDE,
        ink=INK,
        epochs=epochs,
        margin=choice["margin"],
        margins=listed(MARGINS),
        specificity=choice["specificity"],
        specificities=listed(SPECIFICITIES),
        error=f"{100 * choice['error']:.2f}",
        n_train=choice["n_train"],
        n_validation=choice["n_validation"],
    )
    cost = f"{n_classes * clauses:,} clauses of {words} words, in up to {patches} patches"
    size = found.included.nbytes + found.weights.nbytes
    return Trained(found, None, cost, size, settings, seconds[0])
