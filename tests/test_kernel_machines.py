"""CSI and infinite kernel learning: on data whose answer is known."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from scripts.reproduce.kernel_machines import gaussian, infinite_kernels, side_information


@pytest.fixture(scope="module")
def rings():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 2))
    return X, np.where((X**2).sum(axis=1) > 1.4, 1.0, -1.0)


def test_a_decomposition_of_full_rank_is_the_ridge_of_the_whole_kernel(rings):
    X, signs = rings
    X, signs, ridge = X[:25], signs[:25], 0.1
    model = side_information(X, signs, 25, 0.5, ridge)
    K = gaussian(X, X, 0.5)
    assert model.size == 25
    assert_allclose(model.factor @ model.factor.T, gaussian(model.pivots, model.pivots, 0.5))
    center = np.eye(25) - 1 / 25
    dual = np.linalg.solve(center @ K @ center + ridge * np.eye(25), signs - signs.mean())
    expected = center @ K @ center @ dual + signs.mean()
    assert_allclose(model.scores(X), expected, atol=1e-6)


def test_few_pivots_that_heed_the_labels_tell_rings_apart(rings):
    X, signs = rings
    model = side_information(X[:90], signs[:90], 8, 0.5, 1e-3)
    assert model.size == 8
    assert np.mean(np.sign(model.scores(X[90:])) == signs[90:]) >= 0.9


def test_infinite_kernels_find_the_width_that_one_kernel_lacks(rings):
    X, signs = rings
    # The middle of the interval tells no two examples apart.
    model = infinite_kernels(X[:90], signs[:90], 10.0, (1e-9, 100.0))
    assert model.shares.sum() == pytest.approx(1, abs=0.01)
    assert np.mean(np.sign(model.scores(X[90:])) == signs[90:]) >= 0.9
