"""Closed forms of boosting updates against numerical minimizers."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize_scalar

from visionshare.solvers.bounds import exponential_l1, exponential_max


def _l1(delta, w, up, down, a, alpha):
    return a * up * np.exp(-delta / a) + a * down * np.exp(delta / a) + alpha * abs(delta + w)


@pytest.mark.parametrize("seed", range(60))
def test_one_weight_is_the_minimizer(seed):
    rng = np.random.default_rng(seed)
    w, up, down = rng.normal(), *rng.exponential(1, 2)
    up, down = (0.0, down) if seed % 7 == 0 else (up, 0.0) if seed % 7 == 1 else (up, down)
    a, alpha = rng.uniform(0.2, 3), 10 ** rng.uniform(-3, 1)
    delta = float(exponential_l1(np.array([w]), np.array([up]), np.array([down]), a, alpha)[0])
    solution = minimize_scalar(
        _l1, bounds=(-30, 30), args=(w, up, down, a, alpha), method="bounded",
        options={"xatol": 1e-12},
    )  # fmt: skip
    assert _l1(delta, w, up, down, a, alpha) <= solution.fun + 1e-9


def _max(row, w, up, down, a, alpha):
    delta = row - w
    bound = a * np.sum(up * np.exp(-delta / a) + down * np.exp(delta / a))
    return bound + alpha * np.abs(row).max()


@pytest.mark.parametrize("seed", range(80))
def test_a_row_is_the_minimizer(seed):
    rng = np.random.default_rng(seed)
    k = rng.integers(1, 6)
    w, up, down = rng.normal(size=k), rng.exponential(1, k), rng.exponential(1, k)
    if seed % 5 == 0:
        down[0] = 0
    if seed % 5 == 1:
        up[-1] = 0
    a, alpha = rng.uniform(0.2, 3), 10 ** rng.uniform(-2, 1)
    row = exponential_max(w, up, down, a, alpha)
    value = _max(row, w, up, down, a, alpha)
    # For every level the best row below it is known weight by weight; search the level.
    with np.errstate(divide="ignore"):
        free = w + 0.5 * a * (np.log(up) - np.log(down))

    def at(level):
        return _max(np.clip(free, -level, level), w, up, down, a, alpha)

    levels = np.concatenate([np.linspace(0, 12, 4001), [np.abs(row).max()]])
    assert value <= min(at(x) for x in levels) + 1e-6
    assert_allclose(value, at(np.abs(row).max()), rtol=1e-9)


def test_many_rows_are_single_rows():
    rng = np.random.default_rng(5)
    w, up, down = rng.normal(size=(40, 4)), *rng.exponential(1, (2, 40, 4))
    down[::3, 0], up[::5, 1], a = 0, 0, rng.uniform(0.3, 2, 40)
    rows = exponential_max(w, up, down, a, 1.5)
    for i in range(40):
        assert_allclose(rows[i], exponential_max(w[i], up[i], down[i], a[i], 1.5), atol=1e-15)
    assert 0 < np.sum(~rows.any(axis=1)) < 40


def test_a_row_of_one_is_the_l1_update():
    rng = np.random.default_rng(1)
    for _ in range(50):
        w, up, down = rng.normal(size=1), rng.exponential(1, 1), rng.exponential(1, 1)
        a, alpha = rng.uniform(0.3, 2), rng.uniform(0.01, 2)
        row = exponential_max(w, up, down, a, alpha)
        assert_allclose(row, w + exponential_l1(w, up, down, a, alpha), atol=1e-12)
