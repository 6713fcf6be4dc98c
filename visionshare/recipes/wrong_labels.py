"""Which labels of pictures are probably wrong: by classifiers that did not learn them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from visionshare.datasets.copies import groups_of_copies
from visionshare.errors import InputError
from visionshare.generators.layers.network import Network
from visionshare.generators.layers.templates import Templates
from visionshare.machine.resources import single_threaded_blas

_FOLDS = 5
# Smaller images have room for one layer.
_ONE_LAYER = 14
_LAYER = 150
# Two classes that look alike are less apart: confident learning's averages doubt their labels.
_CLEARLY = 5.0


class DoubtfulLabels(NamedTuple):
    """All pictures in the order of doubt, how many labels are doubted, and probabilities (n, k)."""

    order: np.ndarray
    n_doubted: int
    probabilities: np.ndarray


def doubtful_labels(
    images: np.ndarray,
    labels: np.ndarray,
    groups: np.ndarray | None = None,
    seed: int = 0,
    n_jobs: int = 1,
) -> DoubtfulLabels:
    """Return which labels of images are probably wrong.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> digits = load_digits(n_class=3)
    >>> labels = digits.target[:120].copy()
    >>> labels[7] = 2
    >>> int(doubtful_labels(digits.images[:120].astype(np.uint8) * 15, labels).order[0])
    7
    """
    probabilities = out_of_fold(images, labels, groups, seed, n_jobs)
    order, doubted = ranked_doubts(labels, probabilities)
    return DoubtfulLabels(order, int(doubted.sum()), probabilities)


def out_of_fold(
    images: np.ndarray,
    labels: np.ndarray,
    groups: np.ndarray | None = None,
    seed: int = 0,
    n_jobs: int = 1,
) -> np.ndarray:
    """Return probabilities (n, k) of classifiers that did not learn the label of an image."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import StratifiedGroupKFold, cross_val_predict
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    groups = groups_of_copies(images) if groups is None else groups
    fewest = min(len(np.unique(groups[labels == c])) for c in np.unique(labels))
    if fewest < 2:
        raise InputError("labels", "a class of one picture", "two pictures a class, or more")
    # Some processors round float32 products by the row's place: copies would differ.
    values = picture_features(images, seed, n_jobs).astype(np.float64)
    # Each fold's probabilities come from a logistic regression on the others.
    folds = StratifiedGroupKFold(min(_FOLDS, fewest), shuffle=True, random_state=seed)
    steps = make_pipeline(StandardScaler(), LogisticRegression(C=0.01, max_iter=200))
    # Products this small take longer with more threads.
    with single_threaded_blas():
        made = cross_val_predict(
            steps, values, labels, groups=groups, cv=folds, method="predict_proba"
        )
    return np.asarray(made)


def picture_features(images: np.ndarray, seed: int = 0, n_jobs: int = 1) -> np.ndarray:
    """Return features (n, p) that need no labels: templates of patches, fitted to the images."""
    layers = [Templates(_LAYER, 3, grid=2)]
    if min(images.shape[1:3]) >= _ONE_LAYER:
        layers.insert(0, Templates(8, 5, pool=2))
    family = Network(layers, random_state=seed).fit(images)
    return np.asarray(family.transform(images, None, n_jobs))


def ranked_doubts(labels: np.ndarray, probabilities: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return all examples by the probability of their label, and which labels are doubted."""
    # A label is doubted where another class is five times as probable.
    of_label = probabilities[np.arange(len(labels)), labels]
    doubted = probabilities.max(axis=1) >= _CLEARLY * of_label
    return np.argsort(of_label, kind="stable"), doubted
