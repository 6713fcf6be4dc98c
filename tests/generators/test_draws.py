"""Draws of families that draw."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from visionshare import GaborBank, RandomFourier
from visionshare.generators.draws import Draws

IMAGES = np.random.default_rng(0).random((6, 8, 8)).astype(np.float32)


@pytest.mark.parametrize("family", [RandomFourier(4), GaborBank()], ids=lambda f: type(f).__name__)
def test_no_features_can_be_taken(family):
    """Those of a learner that chose none."""
    draws = Draws(family.fit(IMAGES), n=5, rounds=3, random_state=0)
    none = np.empty(0, np.int64)
    assert draws.take(none).n_features_ == 0
    assert_array_equal(draws.transform_columns(IMAGES, none), np.empty((0, len(IMAGES))))
