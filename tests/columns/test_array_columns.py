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


@pytest.mark.parametrize("scaling", ["none", "unit_variance", "unit_norm", "max_abs"])
def test_columns_far_from_zero_are_not_constant(scaling):
    near = np.random.default_rng(0).normal(size=(60, 5))
    omega = np.random.default_rng(1).uniform(0, 2, 60)
    far = near + 1e9
    far[:, 4] = 1e9
    columns = ArrayColumns(far, dtype="float64")
    columns.fit_scaling(scaling, omega)
    assert (columns.scale == 0).tolist() == [False] * 4 + [True]
    exact = np.average((far - 1e9)[:, :4] ** 2, 0, omega)
    exact -= np.average((far - 1e9)[:, :4], 0, omega) ** 2
    assert_allclose(columns.variance[:4], exact * columns.scale[:4] ** 2, rtol=1e-6)
    if scaling == "unit_variance":
        assert_allclose(columns.take()[:, :4].std(0), 1, rtol=0.2)


@pytest.mark.parametrize("value", [1e5, -1e5, np.inf, np.nan])
def test_values_that_float16_cannot_hold_are_refused(value):
    X = np.random.default_rng(0).normal(size=(60, 3))
    X[7, 1] = value
    with np.errstate(over="ignore"):
        columns = ArrayColumns(X, dtype="float16")
    with pytest.raises(InputError, match=r"^dtype: got 'float16, but column 1 has a value beyond"):
        columns.fit_scaling("unit_variance")
    X[7, 1] = 65504
    ArrayColumns(X, dtype="float16").fit_scaling("unit_variance")


@pytest.mark.parametrize("scaling", ["none", "unit_norm", "max_abs"])
def test_another_value_is_another_fingerprint(scaling):
    X = np.random.default_rng(0).integers(0, 2, (60, 4)).astype(float)
    X[0] = 1
    prints = set()
    for other in (X, X[::-1], -X, 1 - X, np.where(np.arange(60)[:, None] == 5, 1 - X, X)):
        columns = ArrayColumns(other)
        columns.fit_scaling(scaling)
        prints.add(columns.fingerprint)
    assert len(prints) == 5


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


@pytest.mark.parametrize("factor", [2.0**700, 2.0**-700])
@pytest.mark.parametrize("scaling", ["unit_variance", "unit_norm", "max_abs"])
def test_values_whose_squares_float64_cannot_hold_are_scaled_as_others(scaling, factor):
    X = np.random.default_rng(0).normal(size=(20, 3))
    usual, extreme = ArrayColumns(X, dtype="float64"), ArrayColumns(X * factor, dtype="float64")
    for columns in (usual, extreme):
        columns.fit_scaling(scaling)
    assert_allclose(extreme.take(), usual.take(), rtol=1e-9, atol=1e-12)
    assert_allclose(extreme.variance, usual.variance, rtol=1e-9)


@pytest.mark.parametrize(
    ("scaling", "dtype", "value", "problem"),
    [
        ("unit_variance", "float64", 1e305, "large"), ("unit_norm", "float64", 1e-310, "small"),
        ("max_abs", "float32", 1e36, "large"), ("unit_variance", "float32", 1e-40, "small"),
        ("none", "float64", 1e40, "large"), ("unit_variance", "float32", np.inf, "large"),
    ],
)  # fmt: skip
def test_columns_that_cannot_be_scaled_are_refused(scaling, dtype, value, problem):
    X = np.random.default_rng(0).normal(size=(20, 3))
    X[:, 1] = 0
    X[4, 1] = value
    with pytest.raises(InputError, match=rf"^X: got 'values up to .* in column 1'.*too {problem}"):
        ArrayColumns(X, dtype=dtype).fit_scaling(scaling)


def test_unscaled_columns_are_refused_where_all_are_too_small():
    X = np.full((4, 2), 1e-200)
    with pytest.raises(InputError, match=r"^X: got .* too small"):
        ArrayColumns(X, dtype="float64").fit_scaling("none")
