"""Arrays inside a kernel that are not counted."""

import sys

import numpy as np
from numba import njit

from visionshare.generators.emitter import uncounted


def test_slices_of_uncounted_arrays_are_those_of_the_array():
    @njit
    def sums(values, out):
        values, out = uncounted(values), uncounted(out)
        for i in range(len(values)):
            out[i] = values[i][1:].sum()

    values = np.arange(12.0).reshape(3, 4)
    out = np.empty(3)
    sums(values, out)
    assert out.tolist() == values[:, 1:].sum(axis=1).tolist()
    assert sys.getrefcount(values) == 2
