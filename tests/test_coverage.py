"""Coverage against sorting each example's scores."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from scripts.reproduce.coverage import coverage, ranks


def _naive(scores, y):
    result = []
    for row, true in zip(scores, y, strict=True):
        order = sorted(range(len(row)), key=lambda c: (-row[c], c))
        result.append(order.index(true))
    return np.array(result)


@pytest.mark.parametrize("seed", range(5))
def test_it_is_the_place_in_the_sorted_scores(seed):
    rng = np.random.default_rng(seed)
    # Few values: many scores are equal.
    scores, y = rng.integers(0, 4, (50, 6)).astype(float), rng.integers(0, 6, 50)
    assert_array_equal(ranks(scores, y), _naive(scores, y))
    assert coverage(scores, y) == pytest.approx(_naive(scores, y).mean())


def test_right_classes_have_no_coverage_and_wrong_ones_some():
    rng = np.random.default_rng(9)
    scores, y = rng.normal(size=(40, 5)), rng.integers(0, 5, 40)
    assert_array_equal(ranks(scores, y) == 0, np.argmax(scores, axis=1) == y)
    one = rng.normal(size=40)
    assert_array_equal(ranks(one, y % 2), (one > 0) != (y % 2))
