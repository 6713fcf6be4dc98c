"""The transfer baselines of the reproductions, where their answers are known."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from scripts.reproduce.transfer_baselines import ALL_METHODS
from scripts.reproduce.transfer_methods import few_of, no_transfer

KNOWN = ["AverageKT", "MultiKT, ℓ2", "MultiKT, ℓ1", "dictionary learning"]


def _few(sources):
    """Return twelve examples of thirty features that say nothing, beside these sources."""
    y = np.where(np.arange(12) < 4, 1.0, -1.0)
    rng = np.random.default_rng(3)
    return few_of(np.hstack([rng.normal(size=(12, 30)), sources(y, rng)]), y, 30)


@pytest.mark.parametrize("name", ["MultiKT, ℓ2", "MultiKT, ℓ1"])
def test_without_sources_nothing_is_transferred(name):
    few = _few(lambda y, _: np.zeros((len(y), 5)))
    assert_allclose(ALL_METHODS[name](few), no_transfer(few), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", ["MultiKT, ℓ2", "MultiKT, ℓ1"])
def test_the_source_that_knows_the_class_weighs_most(name):
    few = _few(lambda y, rng: np.column_stack([rng.normal(size=(12, 4)), y]))
    weights = ALL_METHODS[name](few)
    assert np.abs(weights[30:]).argmax() == 4
    assert weights[34] > 0


@pytest.mark.parametrize("name", KNOWN)
def test_scores_of_the_few_are_right_where_all_sources_know_the_class(name):
    few = _few(lambda y, rng: y[:, None] + rng.normal(scale=0.1, size=(12, 5)))
    found = ALL_METHODS[name](few)
    scores = found(few.Z) if callable(found) else few.Z @ found
    assert scores.shape == (12,)
    assert np.array_equal(scores > 0, few.y > 0)


def test_dam_follows_sources_with_features_alone():
    few = _few(lambda y, rng: y[:, None] + rng.normal(scale=0.1, size=(12, 5)))
    weights = ALL_METHODS["DAM"](few)
    assert not weights[30:].any()
    assert few.y @ (few.Z @ weights) > 0
