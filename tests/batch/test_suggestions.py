"""Pictures to label next: unsure ones, and none beside one that was taken."""

import numpy as np
import pytest

from visionshare.batch.suggestions import suggested
from visionshare.errors import InputError


def test_sure_pictures_and_copies_are_left_out():
    rng = np.random.default_rng(0)
    features = np.repeat(rng.normal(size=(5, 4)), 10, axis=0)
    lead = np.tile(np.linspace(0, 0.5, 10), 5)
    probabilities = np.stack([0.5 + lead / 2, 0.5 - lead / 2], axis=1)
    chosen = suggested(probabilities, features, 5)
    # One of each heap, the least sure one.
    assert sorted((chosen // 10).tolist()) == [0, 1, 2, 3, 4]
    assert (chosen % 10 == 0).all()


def test_all_are_suggested_where_there_are_fewer_than_asked_for():
    probabilities = np.array([[0.5, 0.5], [0.9, 0.1], [0.5, 0.5]])
    assert sorted(suggested(probabilities, np.zeros((3, 2)), 9).tolist()) == [0, 1, 2]
    with pytest.raises(InputError, match="count"):
        suggested(probabilities, np.zeros((3, 2)), 0)
