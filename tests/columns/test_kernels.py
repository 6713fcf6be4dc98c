"""Products of columns and residuals of any size, with bits that scales do not change."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from visionshare.columns.kernels import correlate

M, D, K = 1500, 40, 3


def _columns(dtype):
    """Return columns (D, M) of sizes 1e-3 to 1e3, a third of them zero, and the buffer."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(D, M)) * 10 ** rng.uniform(-3, 3, (D, 1)) * (rng.random((D, M)) < 0.7)
    X = X.astype(dtype)
    buffer = X.ravel()
    return X.astype(np.float64), buffer.view(np.uint16) if dtype == np.float16 else buffer


def _residual():
    return np.random.default_rng(1).normal(size=(M, K))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("size", [1e-30, 1e-12, 1e-7, 1.0, 1e6])
def test_products_are_those_of_the_matrix_for_residuals_of_any_size(dtype, size):
    """A mean over many images makes residuals so small that products of halves would lose bits."""
    X, buffer = _columns(dtype)
    R = _residual() * size
    G = correlate(buffer, np.arange(D) * M, R)
    within = np.abs(G - X @ R) <= 2e-6 * (np.abs(X) @ np.abs(R))
    assert within.all()


def test_powers_of_two_change_no_bit():
    """Columns of R of other sizes beside it, or the same example weights halved, change nothing."""
    _, buffer = _columns(np.float16)
    R = _residual().astype(np.float32)
    G = correlate(buffer, np.arange(D) * M, R)
    powers = np.array([2.0**-60, 1.0, 2.0**30])
    assert_array_equal(correlate(buffer, np.arange(D) * M, R * powers), G * powers)


def test_columns_of_r_that_are_zero_or_not_finite():
    _, buffer = _columns(np.float16)
    R = _residual()
    R[:, 0] = 0
    R[7, 1] = np.nan
    G = correlate(buffer, np.arange(D) * M, R)
    alone = correlate(buffer, np.arange(D) * M, _residual())
    assert_array_equal(G[:, 0], 0)
    assert np.isnan(G[:, 1]).all()
    assert_array_equal(G[:, 2], alone[:, 2])


def test_no_examples_give_zeros():
    G = correlate(np.zeros(0, np.uint16), np.zeros(2, np.int64), np.zeros((0, K)))
    assert_array_equal(G, np.zeros((2, K)))
