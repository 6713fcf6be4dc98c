"""Bounds on ShareBoost against the formulas by hand."""

import math

import numpy as np
import pytest

from visionshare import ShareBoost
from visionshare.errors import InputError
from visionshare.learners import generalization_gap, shareboost_features, shareboost_rounds


def test_shareboost_pays_for_features_and_the_logarithm_of_the_pool():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 12)), np.arange(200) % 4
    model = ShareBoost(rounds=3).fit(X, y)
    T, k, m, d, delta = 3, 4, 200, 12, 0.1
    expected = math.sqrt(
        (T * k * math.log(T * k) * math.log(k) + T * math.log(d) + math.log(1 / delta)) / m
    )
    assert generalization_gap(model, m, d, delta) == pytest.approx(expected)
    more = generalization_gap(model, m, d**2, delta) ** 2 - expected**2
    assert more == pytest.approx(T * math.log(d) / m)


@pytest.mark.parametrize("wrong", [{"n_examples": 0}, {"n_columns": 0}, {"delta": 1.0}])
def test_wrong_numbers_are_refused(wrong):
    model = ShareBoost(rounds=1).fit(np.eye(8)[:, :3], np.arange(8) % 2)
    with pytest.raises(InputError, match=f"^{next(iter(wrong))}"):
        generalization_gap(model, **{"n_examples": 8, "n_columns": 3, **wrong})


def test_few_bounded_weights_need_the_rounds_of_their_norm():
    weights = np.zeros((4, 9))
    weights[1, :3] = [2, -2, 2]
    assert shareboost_rounds(weights, 0.5) == 4 * 6**2 / 0.5
    assert shareboost_features(3, 2.0, 0.5) == shareboost_rounds(weights, 0.5)
    with pytest.raises(InputError, match=r"^eps"):
        shareboost_rounds(weights, math.nan)
    with pytest.raises(InputError, match=r"^weights"):
        shareboost_rounds(np.full((2, 2), np.inf), 0.5)
    with pytest.raises(InputError, match=r"^n_features"):
        shareboost_features(0, 2.0, 0.5)
