"""One classifier a class: features of all of them, and the path."""

import numpy as np
from numpy.testing import assert_array_equal

from scripts.reproduce.one_against_rest import OneAgainstRest
from visionshare import ShareBoost
from visionshare.columns import ArrayColumns


def test_every_class_brings_features_of_its_own():
    rng = np.random.default_rng(0)
    y = np.arange(150) % 3
    X = rng.normal(size=(150, 20))
    X[np.arange(150), y] += 2
    model = OneAgainstRest(3, alpha=1e-4).fit(ArrayColumns(X), y)
    alone = [ShareBoost(3, alpha=1e-4).fit(ArrayColumns(X), y == c) for c in range(3)]
    assert set(model.support_) == {j for one in alone for j in one.support_}
    assert {0, 1, 2} <= set(model.support_)
    last = model.path_[-1]
    assert last.n_features == len(model.support_)
    scores = X[:, model.support_] @ last.weights.T + last.intercept
    expected = np.stack([one.decision_function(ArrayColumns(X)) for one in alone], axis=1)
    assert_array_equal(scores > 0, expected > 0)
    assert np.mean(np.argmax(scores, axis=1) == y) > 0.8
