"""Kernels of monomials beside plain numpy."""

import numpy as np
import pytest

from visionshare.generators.monomials.kernels import pair_products


@pytest.mark.parametrize("n", [0, 1, 7])
@pytest.mark.parametrize("m", [1, 33, 1000])
def test_products_of_pairs_are_plain_products(n, m):
    rng = np.random.default_rng(0)
    columns = rng.normal(size=(5, m)).astype(np.float32)
    first, second = rng.integers(0, 5, (2, n))
    out = np.empty((n, m), np.float32)
    pair_products(columns, first, second, out)
    np.testing.assert_array_equal(out, columns[first] * columns[second])
