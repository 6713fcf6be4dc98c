"""The compiled forward selection against the loop in Python that it stands for."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from visionshare import RandomFourier
from visionshare.columns import ArrayColumns
from visionshare.generators.draws import Draws
from visionshare.learners.ridge_rounds import RidgeSettings, ridge_rounds
from visionshare.search import Pool, RandomSubset, make_search
from visionshare.store import DrawnColumns


class _Plain:
    """A search that the compiled loops do not know: rounds are those of the loop in Python."""

    def __init__(self, search):
        self.best = search.best


PLAIN = _Plain(make_search("exhaustive"))


def _rounds(X, y, omega, dtype, groups=None, rounds=8, alpha=1.0, tol=0.0, search="exhaustive"):
    columns = ArrayColumns(X, dtype=dtype, groups=groups)
    columns.fit_scaling("unit_variance", omega)
    settings = RidgeSettings(
        rounds, alpha, tol, make_search(search) if isinstance(search, str) else search
    )
    return list(ridge_rounds(Pool(columns), y, omega, settings))


def _assert_same(fast, plain, rtol):
    assert [int(r.entered[0]) for r in fast] == [int(r.entered[0]) for r in plain]
    for one, two in zip(fast, plain, strict=True):
        assert one.number == two.number
        assert_array_equal(one.entered, two.entered)
        assert_allclose(one.score, two.score, rtol=rtol)
        assert_allclose(one.coef, two.coef, rtol=rtol, atol=rtol)
        assert_allclose(one.loss, two.loss, rtol=rtol)
        assert_allclose(one.left_out, two.left_out, rtol=rtol, atol=rtol)


@pytest.mark.parametrize(("dtype", "rtol"), [("float64", 1e-9), ("float32", 2e-4)])
@pytest.mark.parametrize("alpha", [1e-3, 1.0, 50.0])
@pytest.mark.parametrize(("m", "n"), [(12, 300), (60, 40), (30, 5000), (300, 40)])
def test_the_compiled_rounds_are_those_of_the_loop(dtype, rtol, alpha, m, n):
    rng = np.random.default_rng(n)
    X = rng.normal(size=(m, n)) * rng.uniform(0.1, 5, n) + rng.normal(size=n)
    X[:, ::7] = 3.0
    y, omega = np.sign(rng.normal(size=m)), rng.choice([0.0, 0.5, 1.0, 2.0], m)
    plain = _rounds(X, y, omega, dtype, alpha=alpha, search=PLAIN)
    _assert_same(_rounds(X, y, omega, dtype, alpha=alpha), plain, rtol)


def test_groups_enter_until_nothing_is_left():
    rng = np.random.default_rng(5)
    X, y, omega = rng.normal(size=(30, 12)), np.sign(rng.normal(size=30)), np.ones(30)
    groups = np.arange(12) // 3
    found = _rounds(X, y, omega, "float64", groups, rounds=9)
    assert sorted(int(r.entered[0]) for r in found) == [0, 1, 2, 3]
    assert _rounds(np.ones((30, 12)), y, omega, "float64", groups) == []


def test_drawn_columns_are_chosen_as_those_of_an_array():
    rng = np.random.default_rng(6)
    inputs, y = rng.normal(size=(50, 6)), np.sign(rng.normal(size=50))
    family = RandomFourier(bandwidths=(2.0,), scaling="none").fit(inputs)
    drawn = DrawnColumns(Draws(family, 5, 8, 0), inputs)
    drawn.fit_scaling("unit_variance")
    settings = RidgeSettings(6, 1.0, 0.0, make_search("exhaustive"))
    # What was asked for before, and in which order, makes no difference.
    drawn.columns_of(np.arange(80)[::-1])
    found = list(ridge_rounds(Pool(drawn), y, np.ones(50), settings))
    X = drawn.columns_of(np.arange(80), scaled=False).T
    plain = _rounds(X, y, np.ones(50), "float32", drawn.groups, rounds=6, search=PLAIN)
    assert len(plain) == 6
    _assert_same(found, plain, 2e-4)


@pytest.mark.parametrize(("n_drawn", "tol"), [(3, 0.0), (59, 0.0), (59, 0.02), (2000, 0.0)])
@pytest.mark.parametrize(("m", "n"), [(12, 300), (60, 40)])
def test_the_compiled_rounds_of_draws_are_those_of_the_loop(n_drawn, tol, m, n):
    """Also beyond a block of draws, with columns that may not enter, until nothing is left."""
    rng = np.random.default_rng(n_drawn)
    X = rng.normal(size=(m, n)) * rng.uniform(0.1, 5, n) + rng.normal(size=n)
    X[:, ::7] = 3.0
    y, omega = np.sign(rng.normal(size=m)), rng.choice([0.0, 0.5, 1.0, 2.0], m)
    search, settings = RandomSubset(n_drawn, 5), {"rounds": 80, "tol": tol}
    plain = _rounds(X, y, omega, "float64", search=_Plain(search), **settings)
    fast = _rounds(X, y, omega, "float64", search=search, **settings)
    assert len(plain) >= 5
    _assert_same(fast, plain, 1e-6)


@pytest.mark.parametrize("size", [1e-30, 1e-25, 1e-12, 1e12, 1e19, 1e25, 1e33])
@pytest.mark.parametrize("search", ["exhaustive", RandomSubset(15, 0)])
def test_no_bit_depends_on_the_size_of_single_precision(size, search):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 30)).astype(np.float32)
    y = np.sign(X[:, 4] + X[:, 7] + 0.3 * rng.normal(size=40))
    power, ones = int(np.round(np.log2(size))), np.ones(40)
    for powers in (np.full(30, power), power * (np.arange(30) % 2)):
        scaled = np.ldexp(X, powers)
        assert scaled.dtype == np.float32
        large = _rounds(scaled, y, ones, "float32", search=search, alpha=0.5)
        plain = _rounds(X, y, ones, "float32", search=search, alpha=0.5)
        assert len(plain) == 8
        assert_array_equal([r.entered for r in large], [r.entered for r in plain])
        assert_allclose(large[-1].coef, plain[-1].coef, rtol=1e-5)
        assert_allclose(large[-1].left_out, plain[-1].left_out, rtol=1e-4, atol=1e-5)


def test_what_is_explained_to_the_last_digit_still_finds_the_best():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(200, 50))
    # Each column counts a tenth of the one before: differences alone would lose the last ones.
    y = X[:, :6] @ 10.0 ** -np.arange(6)
    omega = np.ones(200)
    fast = _rounds(X, y, omega, "float32", alpha=1e-6, rounds=5)
    plain = _rounds(X, y, omega, "float32", alpha=1e-6, rounds=5, search=PLAIN)
    entered = [[int(r.entered[0]) for r in rounds] for rounds in (fast, plain)]
    assert entered == [[0, 1, 2, 3, 4]] * 2


@pytest.mark.parametrize("tol", [0.01, 0.1])
def test_both_stop_at_the_same_round(tol):
    rng = np.random.default_rng(2)
    X, y, omega = rng.normal(size=(30, 80)), np.sign(rng.normal(size=30)), np.ones(30)
    plain = _rounds(X, y, omega, "float64", rounds=60, tol=tol, search=PLAIN)
    fast = _rounds(X, y, omega, "float64", rounds=60, tol=tol)
    assert 0 < len(plain) < 60
    _assert_same(fast, plain, 1e-9)


def test_the_lowest_number_of_equals_enters_and_none_enters_twice():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(20, 6))
    twice = np.hstack([X, X, np.ones((20, 2))])
    y, omega = np.sign(X[:, 2] + 0.1 * rng.normal(size=20)), np.ones(20)
    fast = _rounds(twice, y, omega, "float64", rounds=30)
    entered = [int(r.entered[0]) for r in fast]
    assert entered[0] == 2
    assert len(set(entered)) == len(entered) <= 12


def test_nothing_enters_where_nothing_helps():
    omega = np.ones(10)
    assert _rounds(np.ones((10, 4)), np.sign(np.arange(10) - 4.5), omega, "float64") == []
    X = np.random.default_rng(0).normal(size=(10, 4))
    assert _rounds(X, np.ones(10), omega, "float32") == []


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("m", [12, 90])
def test_a_draw_of_all_candidates_is_the_search_of_all(dtype, m):
    """Also where more enter than there are examples, from whose Gram matrix gains then come."""
    rng = np.random.default_rng(m)
    X, y, omega = rng.normal(size=(m, 300)), np.sign(rng.normal(size=m)), rng.uniform(0.5, 2, m)
    every = _rounds(X, y, omega, dtype, rounds=25, search="exhaustive")
    drawn = _rounds(X, y, omega, dtype, rounds=25, search=RandomSubset(300, 0))
    assert len(every) == 25
    _assert_same(drawn, every, 1e-5)
