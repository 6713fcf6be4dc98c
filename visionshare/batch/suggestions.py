"""Which pictures to label next: those that a classifier is unsure of, and that differ."""

from __future__ import annotations

import numpy as np

from visionshare.errors import InputError

# So many times the pictures that are asked for are compared: the least sure ones.
_COMPARED = 10


def suggested(probabilities: np.ndarray, features: np.ndarray, count: int) -> np.ndarray:
    """Return the numbers of pictures that teach most, the most useful first.

    Examples
    --------
    >>> probabilities = np.array([[0.9, 0.1], [0.5, 0.5], [0.5, 0.5], [0.4, 0.6]])
    >>> suggested(probabilities, np.array([[0.0], [1.0], [1.0], [3.0]]), 2).tolist()
    [1, 3]
    """
    # One after the other, the picture is taken whose doubt, times its distance to the nearest one
    # that was taken before, is the largest. Doubt is 1 minus the lead of the likeliest class.
    if count < 1:
        raise InputError("count", count, "1 or more")
    # 1) The least sure ones, and how far they are apart in standardized features.
    two = np.sort(probabilities, axis=1)[:, -2:]
    doubt = 1 - (two[:, 1] - two[:, 0])
    some = np.argsort(-doubt, kind="stable")[: _COMPARED * count]
    values = np.asarray(features[some], np.float64)
    values = (values - values.mean(axis=0)) / (values.std(axis=0) + 1e-9)
    # 2) One after the other; of the first nothing is near.
    nearest = np.ones(len(some))
    taken: list[int] = []
    for _ in range(min(count, len(some))):
        worth = doubt[some] * nearest
        worth[taken] = -1.0
        one = int(np.argmax(worth))
        away = np.sqrt(((values - values[one]) ** 2).sum(axis=1))
        nearest = away if not taken else np.minimum(nearest, away)
        taken.append(one)
    return np.asarray(some[taken])
