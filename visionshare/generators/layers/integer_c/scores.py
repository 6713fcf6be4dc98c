"""The table of a classifier's weights, where they are whole numbers of few bits."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from visionshare.generators.layers.integers.rounding import FORMATS
from visionshare.generators.layers.layer import LayerList

_LARGEST_SCORE = 2**31 - 1


class ScoreTable(NamedTuple):
    """Whole weights of all that the last layer gives, (k, n), their bits, and intercepts (k,)."""

    weights: np.ndarray
    bits: int | str
    intercept: np.ndarray


def score_table(family: LayerList, weights: np.ndarray, intercept: np.ndarray) -> ScoreTable | None:
    """Return the weights of a classifier as a table."""
    # None where they are not whole, or too large.
    if (np.abs(intercept) > _LARGEST_SCORE).any():
        return None
    if not (np.array_equal(weights, np.rint(weights)) and (intercept == np.rint(intercept)).all()):
        return None
    every = np.zeros((len(weights), int(np.prod(family.layers_[-1].out_shape))))
    np.add.at(every.T, family.places_, weights.T.astype(np.float64))
    bits = next((bits for bits in ("ternary", 2, 4, 8) if FORMATS[bits].holds(every)), None)
    largest = 255 * np.abs(every).sum(axis=1) + np.abs(intercept)
    if bits is None or largest.max() > _LARGEST_SCORE:
        return None
    return ScoreTable(every.astype(np.int64), bits, intercept.astype(np.int64))
