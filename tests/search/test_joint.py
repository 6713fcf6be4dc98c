"""The search for shared stumps against plain loops over thresholds, and over all subsets."""

from itertools import combinations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from visionshare.generators.stumps import StumpColumns
from visionshare.machine.resources import thread_limit
from visionshare.search.joint_kernels import best_shared_stumps, grown_subset


def _problem(seed, m=40, p=4, k=4, ties=False):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, p))
    X = np.round(2 * X) if ties else X
    y = rng.integers(0, k, m)
    w = rng.random((m, k)) * (rng.random((m, k)) < 0.9)
    return X.astype(np.float32), y, w


def _squared_error(x, w, z, subset):
    """The weighted squared error of the best h, by its definition: weighted means."""
    blocks = [(z[side][:, subset], w[side][:, subset]) for side in (x, ~x)]
    blocks += [(z[:, c], w[:, c]) for c in range(w.shape[1]) if c not in subset]
    error = 0.0
    for values, weights in blocks:
        if (total := weights.sum()) > 0:
            error += (weights * (values - (weights * values).sum() / total) ** 2).sum()
    return error


def _greedy(x, w, z):
    """Grow a subset by the class that leaves least error; return the best on the way."""
    subset, errors, rest = [], [], list(range(w.shape[1]))
    while rest:
        trials = {c: _squared_error(x, w, z, [*subset, c]) for c in rest}
        subset = [*subset, min(trials, key=trials.get)]
        rest.remove(subset[-1])
        errors.append((trials[subset[-1]], sorted(subset)))
    return min(errors, key=lambda pair: pair[0])


def _exhaustive(x, w, z):
    classes = range(w.shape[1])
    subsets = [list(c) for n in range(1, len(classes) + 1) for c in combinations(classes, n)]
    return min((_squared_error(x, w, z, subset), subset) for subset in subsets)


def _stumps(X):
    return [X[:, r] <= value for r in range(X.shape[1]) for value in np.unique(X[:, r])[:-1]]


def _signs(y, k):
    return np.where(y[:, None] == np.arange(k), 1.0, -1.0)


def _found(X, y, w):
    columns = StumpColumns.from_images(X)
    return best_shared_stumps(columns.order, columns.starts, columns.counts, w, y.astype(np.int64))


def _constants_error(w, z):
    means = (w * z).sum(axis=0) / w.sum(axis=0)
    return np.sum(w * (z - means) ** 2)


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_the_walk_finds_what_loops_find(seed, ties):
    X, y, w = _problem(seed, ties=ties)
    z, stumps = _signs(y, 4), _stumps(X)
    numbers, gains = _found(X, y, w)
    errors = np.array([_greedy(x, w, z)[0] for x in stumps])
    assert_allclose(gains.max(), _constants_error(w, z) - errors.min(), rtol=1e-9)
    assert numbers[np.argmax(gains)] == np.argmin(errors)


@pytest.mark.parametrize("seed", range(4))
def test_the_subset_is_the_greedy_one(seed):
    X, y, w = _problem(seed, k=6)
    z = _signs(y, 6)
    for x in _stumps(X)[::7]:
        sides = np.stack([x, ~x]).astype(float)
        members = np.empty(6, np.int64)
        gain, size = grown_subset(sides @ w, sides @ (w * z), -np.inf, members)
        error, subset = _greedy(x, w, z)
        assert sorted(members[:size]) == subset
        assert_allclose(gain, _constants_error(w, z) - error, rtol=1e-9)


def test_greedy_growth_loses_little_against_all_subsets():
    losses = []
    for seed in range(6):
        X, y, w = _problem(seed, k=5)
        z = _signs(y, 5)
        best = _constants_error(w, z) - min(_exhaustive(x, w, z)[0] for x in _stumps(X))
        gain = _found(X, y, w)[1].max()
        assert gain <= best * (1 + 1e-9)
        losses.append(gain / best)
    # Of all subsets 31 are looked at 15 times; what is lost is a few per cent at most.
    assert min(losses) > 0.9
    assert max(losses) > 1 - 1e-9


def test_the_bound_ends_the_growth_only_where_nothing_is_left():
    X, y, w = _problem(0, k=6)
    z = _signs(y, 6)
    members = np.empty(6, np.int64)
    for x in _stumps(X)[::5]:
        sides = np.stack([x, ~x]).astype(float)
        weight, signed = sides @ w, sides @ (w * z)
        whole = grown_subset(weight, signed, -np.inf, members)[0]
        for share in (0.5, 0.999, 1.001, 2.0):
            bounded = grown_subset(weight, signed, share * whole, members)[0]
            if share < 1:
                assert_allclose(bounded, whole, rtol=1e-12)
            else:
                assert bounded <= whole


def test_examples_of_no_class_count_as_negatives():
    X, y, w = _problem(2, k=1)
    z = np.where(y == 0, 1.0, -1.0)[:, None]
    z[:10] = -1
    positive = np.where(z[:, 0] > 0, 0, -1)
    errors = [_squared_error(x, w, z, [0]) for x in _stumps(X)]
    gain = _found(X, positive, w)[1].max()
    assert_allclose(gain, _constants_error(w, z) - min(errors), rtol=1e-9)


def test_threads_change_no_bit():
    X, y, w = _problem(3, m=300, p=20)
    results = []
    for n_jobs in (1, 2):
        with thread_limit(n_jobs):
            results.append(_found(X, y, w))
    assert (results[0][0] == results[1][0]).all()
    assert (results[0][1] == results[1][1]).all()
