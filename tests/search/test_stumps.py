"""The search over all thresholds: a full scan's choice, whatever the ties, weights and threads."""

from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import visionshare
from visionshare import ShareBoost, Stumps
from visionshare.columns import ArrayColumns
from visionshare.errors import InputError
from visionshare.generators.stumps import StumpColumns
from visionshare.search import Pool, make_criterion, make_search


def _inputs(kind, m=240):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(m, 5))
    if kind == "ties":
        return np.round(2 * X).astype(np.float32)
    if kind == "gray":
        return rng.integers(0, 256, (m, 2, 3), np.uint8)
    return np.insert(X, 2, 7.0, axis=1) if kind == "constant" else X


def _classes(images, k=4):
    """Return classes that several inputs tell apart."""
    rows = images.reshape(len(images), -1).astype(float)
    mixed = (rows - rows.mean(axis=0)) @ np.random.default_rng(1).normal(size=(rows.shape[1], k))
    return np.argmax(mixed, axis=1)


def _brute_force(images, R, kind, omega):
    """Return every (input, threshold)'s norm, by the definition, one after the other."""
    omega = omega / omega.sum()
    rows = images.reshape(len(images), -1)
    norms = []
    for column in rows.T:
        for value in np.unique(column)[:-1]:
            x = (column <= value).astype(np.float64)
            mean = omega @ x
            deviation = np.sqrt(omega @ (x - mean) ** 2)
            if deviation < 1e-9:
                norms.append(0.0)
                continue
            scaled = (x - mean) / deviation if kind == "unit_variance" else x
            norms.append(np.abs(scaled @ R.astype(np.float64)).sum())
    return np.array(norms)


@pytest.mark.parametrize("k", [1, 3, 17])
@pytest.mark.parametrize("scaling", ["none", "unit_variance", "max_abs"])
@pytest.mark.parametrize("kind", ["numbers", "ties", "gray", "constant"])
def test_the_best_is_the_definitions(kind, scaling, k):
    images = _inputs(kind)
    rng = np.random.default_rng(2)
    omega = rng.random(len(images)) * (rng.random(len(images)) < 0.8)
    R = rng.normal(size=(len(images), k)).astype(np.float32) + np.float32(0.2)
    columns = StumpColumns.from_images(images)
    columns.fit_scaling(scaling, omega)
    pool, state = Pool(columns), SimpleNamespace(residual=R, round=1)
    norms = _brute_force(images, R, scaling, omega)
    assert len(norms) == pool.size
    excluded = np.zeros(pool.size, bool)
    for expected in np.argsort(-norms, kind="stable")[:30]:
        best = make_search("stumps").best(pool, state, make_criterion("gradient"), excluded)[0]
        assert_allclose(best.score, norms[expected], rtol=1e-5)
        assert best.number == expected
        assert best.features.tolist() == [expected]
        excluded[best.number] = True
    excluded[:] = True
    assert make_search("stumps").best(pool, state, make_criterion("gradient"), excluded) == []


def test_all_scores_are_those_of_a_full_scan():
    columns = StumpColumns.from_images(_inputs("ties"))
    columns.fit_scaling("unit_variance")
    R = np.random.default_rng(3).normal(size=(240, 4)).astype(np.float32)
    pool, state = Pool(columns), SimpleNamespace(residual=R, round=1)
    norms = pool.gradient_norms(R)
    criterion = make_criterion("gradient")
    for number in range(pool.size):
        alone = np.arange(pool.size) != number
        best = make_search("stumps").best(pool, state, criterion, alone)[0]
        assert best.number == number
        assert_allclose(best.score, norms[number], rtol=1e-12)


@pytest.mark.parametrize("k", [1, 10, 40])
@pytest.mark.parametrize("scaling", ["none", "unit_variance"])
@pytest.mark.parametrize("residual", ["noise", "few", "steps", "tiny"])
def test_norms_that_are_left_out_are_never_the_best(residual, scaling, k):
    rng = np.random.default_rng(7)
    images = rng.normal(size=(3000, 6))
    R = rng.normal(size=(3000, k))
    if residual == "few":
        # Long stretches without change, then a jump.
        R *= (rng.random((3000, 1)) < 0.003) * 1e4
    if residual == "steps":
        R = R * 0.01 + np.sign(images[:, [3]] - 1)
    if residual == "tiny":
        R *= 1e-30
    columns = StumpColumns.from_images(images)
    columns.fit_scaling(scaling, rng.random(3000))
    pool = Pool(columns)
    state = SimpleNamespace(residual=R.astype(np.float32), round=1)
    norms = pool.gradient_norms(state.residual)
    excluded = rng.random(pool.size) < 0.5
    for _ in range(20):
        winner = make_search("stumps").best(pool, state, make_criterion("gradient"), excluded)[0]
        best = norms[~excluded].max()
        assert_allclose([winner.score, norms[winner.number]], best, rtol=1e-9)
        excluded[winner.number] = True


def test_the_lowest_number_wins_among_equals():
    X = np.random.default_rng(4).normal(size=(100, 2))
    # Inputs 1 and 3 are input 0 in other units: the same order, and so the same bits.
    images = np.column_stack([X[:, 0], 2 * X[:, 0] + 1, X[:, 1], X[:, 0]])
    columns = StumpColumns.from_images(images)
    columns.fit_scaling("unit_variance")
    R = np.random.default_rng(5).normal(size=(100, 3)).astype(np.float32)
    pool, state = Pool(columns), SimpleNamespace(residual=R, round=1)
    excluded = np.zeros(pool.size, bool)
    excluded[columns.family.inputs_ == 2] = True
    best = make_search("stumps").best(pool, state, make_criterion("gradient"), excluded)[0]
    norms = pool.gradient_norms(R) * ~excluded
    assert np.sum(norms == norms.max()) == 3
    assert best.number == np.argmax(norms) < 99


@pytest.mark.parametrize("weights", ["equal", "some"])
@pytest.mark.parametrize("scaling", ["none", "unit_variance", "max_abs"])
@pytest.mark.parametrize("kind", ["numbers", "ties", "gray", "constant"])
def test_shareboost_chooses_what_an_exhaustive_search_chooses(kind, scaling, weights):
    images = _inputs(kind)
    y = _classes(images)
    omega = None
    if weights == "some":
        omega = np.random.default_rng(6).random(len(y)) * (np.arange(len(y)) % 5 > 0)
    columns = StumpColumns.from_images(images)
    memory = ArrayColumns.from_family(columns.family, images)
    settings = {"rounds": 8, "scaling": scaling, "alpha": 1e-3}
    model = ShareBoost(search="stumps", **settings).fit(columns, y, omega)
    expected = ShareBoost(**settings).fit(memory, y, omega)
    assert model.support_.tolist() == expected.support_.tolist()
    assert_allclose(model.coef_, expected.coef_, rtol=1e-3, atol=1e-3)
    assert_array_equal(model.predict(columns), expected.predict(memory))


def test_threads_and_resume_give_the_same_bits(tmp_path):
    images = _inputs("gray")
    y, columns = _classes(images), StumpColumns.from_images(images)
    settings = {"search": "stumps", "alpha": 1e-3}
    whole = ShareBoost(rounds=6, **settings).fit(columns, y)
    part = {**settings, "checkpoint": tmp_path / "rounds"}
    ShareBoost(rounds=2, **part).fit(columns, y)
    resumed = ShareBoost(rounds=6, n_jobs=2, **part).fit(StumpColumns.from_images(images), y)
    assert_array_equal(resumed.support_, whole.support_)
    assert_array_equal(resumed.coef_, whole.coef_)
    assert [step.score for step in resumed.path_] == [step.score for step in whole.path_]
    with pytest.raises(InputError, match="checkpoint"):
        ShareBoost(rounds=6, **part).fit(StumpColumns.from_images(255 - images), y)


def test_a_classifier_carries_the_stumps(tmp_path):
    images = _inputs("gray")
    y, columns = _classes(images), StumpColumns.from_images(images, n_thresholds=20)
    model = ShareBoost(rounds=15, search="stumps", n_backward=3).fit(columns, y)
    model.to_classifier(columns.family).save(tmp_path / "c.safetensors")
    again = visionshare.load(tmp_path / "c.safetensors")
    assert_array_equal(again.predict(images), model.predict(columns))
    assert again.macs == model.coef_.size


def test_other_columns_and_criteria_are_refused():
    images = _inputs("numbers")
    y = _classes(images)
    memory = ArrayColumns.from_family(Stumps().fit(images), images)
    with pytest.raises(InputError, match="StumpColumns, for the search 'stumps'"):
        ShareBoost(search="stumps").fit(memory, y)
    with pytest.raises(InputError, match="'line'; accepted: 'gradient'; the search 'screened'"):
        ShareBoost(search="stumps", criterion="line").fit(StumpColumns.from_images(images), y)


@pytest.mark.parametrize("search", ["exhaustive", "screened", "random"])
@pytest.mark.parametrize("criterion", ["orthogonal", "column"])
def test_other_searches_take_stumps_too(search, criterion):
    images = _inputs("ties")
    y, columns = _classes(images), StumpColumns.from_images(images)
    memory = ArrayColumns.from_family(columns.family, images)
    settings = {"rounds": 2, "search": search, "criterion": criterion}
    model = ShareBoost(**settings).fit(columns, y)
    assert model.support_.tolist() == ShareBoost(**settings).fit(memory, y).support_.tolist()
