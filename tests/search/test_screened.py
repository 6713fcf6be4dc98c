"""Screened search: samples by share of the residual, estimates, survivors and resumed runs."""

from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from visionshare import ShareBoost
from visionshare.columns import ArrayColumns, Columns
from visionshare.errors import InputError
from visionshare.search import Pool, Screened, make_search
from visionshare.search.criteria import Gradient
from visionshare.search.novelty import Novelty
from visionshare.search.screened import inclusion


def _problem(m=600, d=300, k=3, seed=0, dtype="float32", groups=None):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, d)) + rng.normal(size=d)
    columns = ArrayColumns(X, dtype=dtype, groups=groups)
    columns.fit_scaling("unit_variance")
    R = rng.normal(size=(m, k)) * rng.exponential(size=(m, 1)) ** 4
    R -= R.mean(axis=0)
    return columns, R.astype(np.float32)


@pytest.mark.parametrize("n", [1, 30, 599, 600])
def test_chances_are_a_sample_of_that_size(n):
    sizes = np.random.default_rng(n).exponential(size=600) ** 4
    sizes[:50] = 0
    chances = inclusion(sizes, n)
    assert chances.max() <= 1
    assert chances.min() > 0
    assert_allclose(chances.sum(), n, rtol=0.02)
    order = np.argsort(sizes)
    assert (np.diff(chances[order]) >= 0).all()


def test_without_a_residual_all_examples_are_alike():
    assert_allclose(inclusion(np.zeros(10), 4), 0.4)


def test_estimates_are_right_in_the_mean():
    columns, R = _problem()
    pool, truth, estimates = Pool(columns), columns.correlate(R), []
    for number in range(1, 401):
        state = SimpleNamespace(residual=R, round=number, earlier=None)
        estimates.append(Screened(0.2).estimate(pool, state))
    scatter = np.std(estimates, axis=0) / np.sqrt(len(estimates))
    assert (np.abs(np.mean(estimates, axis=0) - truth) < 6 * scatter + 1e-6).all()
    uniform = np.sqrt((R.astype(np.float64) ** 2).sum(axis=0) * (1 / 0.2 - 1))
    assert (np.std(estimates, axis=0).mean(axis=0) < 0.6 * uniform).all()


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_few_examples_that_hold_the_residual_are_enough(dtype):
    columns, R = _problem(dtype=dtype)
    R[60:] *= 1e-3
    search, state = Screened(0.2, keep=5), SimpleNamespace(residual=R, round=1, earlier=None)
    excluded = np.zeros(300, bool)
    for _ in range(20):
        best = search.best(Pool(columns), state, Gradient(), excluded)
        assert best == make_search("exhaustive").best(Pool(columns), state, Gradient(), excluded)
        excluded[best[0].number] = True


class Computed(ArrayColumns):
    """Columns that cannot be sampled."""

    def sample(self, rows, old=None):
        return Columns.sample(self, rows, old)


@pytest.mark.parametrize("groups", [None, np.arange(300) // 3])
def test_columns_that_are_computed_give_the_same_features(groups):
    columns, R = _problem(groups=groups)
    alike = Computed(columns.table().T, groups=groups)
    y = np.argmax(R, axis=1)
    options = {"search": "screened", "search_options": {"fraction": 0.5, "keep": 20}}
    supports = [ShareBoost(rounds=6, **options).fit(c, y).support_ for c in (columns, alike)]
    assert_array_equal(*supports)


def test_a_sample_serves_some_rounds_where_the_learner_can_look_back():
    columns, R = _problem()
    asked = []

    def earlier(number):
        asked.append(number)
        return R

    search = Screened(0.2, rounds=4)
    pool = Pool(columns)
    for number in (1, 2, 4, 5, 6):
        search.estimate(pool, SimpleNamespace(residual=R, round=number, earlier=earlier))
    assert asked == []
    Screened(0.2, rounds=4).estimate(pool, SimpleNamespace(residual=R, round=7, earlier=earlier))
    assert asked == [5]


@pytest.mark.parametrize("first", [1, 5, 7, 12])
@pytest.mark.parametrize("criterion", ["gradient", "orthogonal"])
def test_resume_gives_the_same_bits(tmp_path, criterion, first):
    columns, R = _problem(dtype="float16")
    y = np.argmax(R, axis=1)
    settings = {
        "criterion": criterion,
        "search": "screened",
        "search_options": {"fraction": 0.1, "keep": 8},
    }
    whole = ShareBoost(rounds=14, **settings).fit(columns, y)
    settings["checkpoint"] = tmp_path / "rounds"
    ShareBoost(rounds=first, **settings).fit(columns, y)
    resumed = ShareBoost(rounds=14, **settings).fit(columns, y)
    assert_array_equal(resumed.support_, whole.support_)
    assert_array_equal(resumed.coef_, whole.coef_)


def test_tiny_problems_and_many_wanted():
    columns, R = _problem(m=3, d=200)
    search, state = Screened(0.1, keep=5), SimpleNamespace(residual=R, round=1, earlier=None)
    best = search.best(Pool(columns), state, Gradient(), np.zeros(200, bool), 9)
    assert len({c.number for c in best}) == 9
    assert all(a.score >= b.score for a, b in pairwise(best))


def test_a_sample_stays_within_its_memory():
    class Sampled(ArrayColumns):
        def sample(self, rows, old=None):
            samples.append(len(rows))
            return super().sample(rows, old)

    samples, (columns, R) = [], _problem()
    search = Screened(0.5, max_bytes=300 * 4 * 25)
    pool = Pool(Sampled(columns.table().T))
    search.estimate(pool, SimpleNamespace(residual=R, round=1, earlier=None))
    assert len(samples) == 1
    assert 10 <= samples[0] <= 40


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_a_sample_takes_the_memory_of_the_one_before(dtype):
    columns, _ = _problem(dtype=dtype)
    first = columns.sample(np.arange(100))
    address = next(first.spans(None)).buffer.__array_interface__["data"][0]
    for rows in (np.arange(50, 155), np.arange(7)):
        again = columns.sample(rows, first)
        assert next(again.spans(None)).buffer.__array_interface__["data"][0] == address
        assert_array_equal(again.take(), columns.take()[rows])
        first = again
    assert_array_equal(columns.sample(np.arange(300), first).take(), columns.take()[:300])


@pytest.mark.parametrize("weighted", [False, True])
def test_what_is_new_in_columns_is_what_no_chosen_one_explains(weighted):
    columns, _ = _problem()
    omega = np.random.default_rng(5).random(600) if weighted else np.ones(600)
    omega[:100] = 0
    omega /= omega.sum()
    novelty, support = Novelty(columns, omega), np.empty(0, np.int64)
    X, root = columns.take().astype(np.float64), np.sqrt(omega)
    for chosen in ([], [4], [4, 9, 200], [4, 9, 200, 9, 17]):
        support = np.array(chosen, np.int64)
        A = root[:, None] * np.c_[np.ones(600), X[:, support]]
        B = root[:, None] * X
        left = np.square(B - A @ np.linalg.lstsq(A, B, rcond=None)[0]).sum(axis=0)
        assert_allclose(novelty.variances(support), left, atol=1e-5)


def test_bad_options_are_named():
    wrong = {
        "fraction": (0, 1.5, "a"),
        "keep": (0, 2.5),
        "rounds": (0, True),
        "random_state": (-1,),
    }
    for name, value in ((name, value) for name, values in wrong.items() for value in values):
        with pytest.raises(InputError, match=f"^{name}: got"):
            make_search("screened", **{name: value})
