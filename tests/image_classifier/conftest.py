"""Small images that are quickly told apart: bars that lie, stand or lean."""

import numpy as np
import pytest

from visionshare import ImageClassifier

# Enough for three layers; each trial is short.
BUDGET = 3000
NAMES = np.array(["lying", "standing"])


def _bars(n, seed=0, side=9):
    """Return images of one bar each, and the name of its direction."""
    rng = np.random.default_rng(seed)
    images = rng.integers(0, 60, (n, side, side)).astype(np.uint8)
    labels = rng.permutation(n) % 2
    for image, label in zip(images, labels, strict=True):
        position = rng.integers(1, side - 2)
        rows = image if label == 0 else image.T
        rows[position : position + 2] = rng.integers(180, 256)
    return images, NAMES[labels]


@pytest.fixture(scope="session")
def bars():
    return _bars


@pytest.fixture(scope="session")
def pictures():
    return _bars(60)


@pytest.fixture(scope="session")
def fitted(pictures):
    return ImageClassifier(budget=BUDGET, size=9, n_jobs=1).fit(*pictures)
