"""Searches against a full scan, and the 59 rule."""

from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from visionshare.columns import ArrayColumns
from visionshare.errors import InputError
from visionshare.search import Pool, RandomSubset, make_search
from visionshare.search.criteria import Gradient
from visionshare.search.subset_kernels import drawn


def _pool(groups=None, m=200, d=40, k=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, d)).astype(np.float32)
    R = rng.normal(size=(m, k)).astype(np.float32)
    return (
        X,
        R,
        Pool(ArrayColumns(X, groups=groups)),
        SimpleNamespace(residual=R, round=1, earlier=None),
    )


def test_gradient_norms_are_the_definition():
    groups = np.arange(40) % 7
    X, R, pool, state = _pool(groups)
    norms = np.abs(X.T @ R).sum(axis=1)
    assert_allclose(Gradient().score(pool, state, None), np.bincount(groups, norms), rtol=1e-5)
    ids = np.array([5, 2])
    assert_allclose(Gradient().score(pool, state, ids), np.bincount(groups, norms)[ids], rtol=1e-5)


def test_exhaustive_takes_the_best_that_is_left():
    X, R, pool, state = _pool()
    norms = np.abs(X.T @ R).sum(axis=1)
    excluded = np.zeros(40, bool)
    for expected in np.argsort(-norms):
        best = make_search("exhaustive").best(pool, state, Gradient(), excluded)[0]
        assert best.number == expected
        excluded[best.number] = True
    assert make_search("exhaustive").best(pool, state, Gradient(), excluded) == []


@pytest.mark.parametrize("groups", [None, [0, 0, 1, 1, 2]])
def test_a_candidate_is_flat_where_all_its_columns_are(groups):
    X = np.ones((6, 5))
    X[:, [1, 4]] = np.arange(6)[:, None]
    columns = ArrayColumns(X, groups=groups)
    columns.fit_scaling("unit_variance")
    flat = [True, False, True, True, False] if groups is None else [False, True, False]
    assert Pool(columns).flat().tolist() == flat


@pytest.mark.parametrize("name", ["random", "screened"])
def test_a_search_of_everything_is_exhaustive(name):
    options = {"random": {"n": 40}, "screened": {"keep": 40}}[name]
    _, _, pool, state = _pool()
    excluded = np.zeros(40, bool)
    best = make_search(name, **options).best(pool, state, Gradient(), excluded)[0]
    assert best == make_search("exhaustive").best(pool, state, Gradient(), excluded)[0]


def test_random_subset_depends_on_seed_and_round_alone():
    _, _, pool, state = _pool()
    excluded = np.zeros(40, bool)

    def draw(seed, number):
        state.round = number
        search = make_search("random", n=3, random_state=seed)
        return search.best(pool, state, Gradient(), excluded)[0].number

    assert draw(1, 5) == draw(1, 5)
    assert len({draw(s, r) for s in range(3) for r in range(4)}) > 3


@pytest.mark.parametrize(("n", "gone"), [(1, []), (3, [0, 1, 7]), (9, [4]), (40, [2, 9])])
def test_draws_are_even_among_those_that_are_left(n, gone):
    size, draws = 10, 4000
    counts = np.zeros(size)
    for number in range(draws):
        found = drawn(RandomSubset(n, 1).uniforms(number)[0], np.array(gone, np.int64), size)
        assert len(found) == min(n, size - len(gone))
        assert (np.diff(found) > 0).all()
        assert not np.isin(found, gone).any()
        counts[found] += 1
    left = np.delete(counts, gone) / draws
    share = min(n / len(left), 1)
    assert_allclose(left, share, atol=5 * np.sqrt(share * (1 - share) / draws) + 1e-12)


def test_bad_options_are_named():
    for name, value in (("n", 0), ("n", 2.5), ("n", "all"), ("random_state", None)):
        with pytest.raises(InputError, match=f"^{name}: got"):
            make_search("random", **{name: value})


def test_the_best_few_are_those_of_all_scores():
    _, _, pool, state = _pool()
    excluded = np.zeros(40, bool)
    excluded[3] = True
    scores = Gradient().score(pool, state, None)
    scores[3] = -np.inf
    best = make_search("exhaustive").best(pool, state, Gradient(), excluded, 5)
    assert [c.number for c in best] == np.argsort(-scores, kind="stable")[:5].tolist()
    assert [c.score for c in best] == scores[[c.number for c in best]].tolist()
    assert len(make_search("exhaustive").best(pool, state, Gradient(), excluded, 100)) == 39
    drawn = make_search("random", n=6).best(pool, state, Gradient(), excluded, 4)
    assert len(drawn) == 4
    assert all(a.score >= b.score for a, b in pairwise(drawn))
