"""Columns in memory: what scaling makes of them, and what is refused."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from visionshare.columns import ArrayColumns
from visionshare.errors import InputError
from visionshare.testing import check_columns


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_every_rule_of_columns(dtype):
    X = np.random.default_rng(0).normal(size=(70, 9)).astype(dtype)
    check_columns(ArrayColumns(X, dtype=dtype), X)
    transposed = ArrayColumns(columns=np.ascontiguousarray(X.T), dtype=dtype)
    assert_array_equal(transposed.take(), ArrayColumns(X, dtype=dtype).take())


def test_weights_count_in_the_scaling():
    rng = np.random.default_rng(3)
    X, times = rng.normal(size=(50, 4)), rng.integers(0, 4, 50)
    one, two = (
        ArrayColumns(X, dtype="float64"),
        ArrayColumns(np.repeat(X, times, 0), dtype="float64"),
    )
    one.fit_scaling("unit_variance", times)
    two.fit_scaling("unit_variance")
    assert_allclose(one.scale, two.scale, rtol=1e-12)
    assert_allclose(one.offset, two.offset, rtol=1e-9, atol=1e-12)


def test_constant_columns_become_zero():
    X = np.column_stack([np.full(100, 0.1), np.zeros(100), np.arange(100.0)])
    for dtype in ("float32", "float64"):
        for scaling in ("unit_variance", "none"):
            columns = ArrayColumns(X, dtype=dtype)
            columns.fit_scaling(scaling)
            assert (columns.scale == 0).tolist() == [True, True, False]
            assert (columns.take()[:, 1] == 0).all()


def test_a_sample_may_reuse_the_memory_of_an_earlier_one():
    X = np.random.default_rng(5).normal(size=(50, 4)).astype(np.float32)
    columns = ArrayColumns(X)
    columns.fit_scaling("unit_variance")
    first = columns.sample(np.arange(20))
    second = columns.sample(np.arange(30, 48), old=first)
    assert_array_equal(second.take(), columns.take()[30:48])
    assert np.shares_memory(first.table(), second.table())


def test_bad_arguments_are_named():
    with pytest.raises(InputError, match=r"^dtype: got"):
        ArrayColumns(np.eye(3), dtype="int8")
    with pytest.raises(InputError, match=r"^X: got"):
        ArrayColumns(np.array([["a"]]))
    with pytest.raises(InputError, match=r"^X: got"):
        ArrayColumns()
    weights = (np.zeros(3), np.ones(2), -np.ones(3), np.full(3, np.nan), np.full(3, np.inf))
    for omega in weights:
        with pytest.raises(InputError, match=r"^omega: got"):
            ArrayColumns(np.eye(3)).fit_scaling("none", omega)
    with pytest.raises(InputError, match=r"^groups: got"):
        ArrayColumns(np.eye(3), groups=np.zeros(2))
    columns = ArrayColumns(np.eye(3))
    for bad in ([3], [-1], [0.5]):
        with pytest.raises(InputError, match=r"^ids: got"):
            columns.columns_of(bad)
    with pytest.raises(InputError, match=r"^R: got"):
        columns.correlate(np.zeros((2, 1)))
    with pytest.raises(InputError, match=r"^scaling: got"):
        columns.fit_scaling("cube")
