"""The orthogonal criterion against projections written out, and through a resume."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from visionshare.columns import ArrayColumns
from visionshare.errors import InputError
from visionshare.learners import ShareBoost
from visionshare.search import make_criterion


def _problem(dtype="float64", groups=None, m=300, d=30, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, 12)) @ rng.normal(size=(12, d)) + 0.3 * rng.normal(size=(m, d)) + 1
    X[:, 7] = X[:, 3]
    y = np.argmax(X[:, :3] + rng.normal(size=(m, 3)), axis=1)
    return ArrayColumns(X, dtype=dtype, groups=groups), y, rng.random(m) + 0.5


class _Recorder:
    """Keeps what the learner asks, and answers like the criterion."""

    def __init__(self, **options):
        self.inner, self.seen = make_criterion("orthogonal", **options), []

    def score(self, pool, state, numbers):
        scores = self.inner.score(pool, state, numbers)
        chosen = state.active.columns[:, 1 : state.active.n + 1]
        length = state.active.n_tiles * state.active.tile
        chosen = chosen.transpose(1, 0, 2).reshape(-1, length)[:, : state.active.m]
        self.seen.append((numbers, scores, state.residual.copy(), chosen.copy()))
        return scores


def _record(columns, y, omega, **settings):
    recorder = _Recorder(**settings.pop("criterion_options", {}))
    ShareBoost(rounds=6, criterion=recorder, **settings).fit(columns, y, omega)
    return recorder.seen


def _brute_force(columns, omega, R, chosen, floor):
    X = columns.take().astype(np.float64)
    omega = omega / omega.sum()
    basis = np.column_stack([np.ones(len(X)), chosen.T.astype(np.float64)])
    root = np.sqrt(omega)[:, None]
    fitted = basis @ np.linalg.lstsq(basis * root, X * root, rcond=None)[0]
    new = omega @ (X - fitted) ** 2
    variance = omega @ (X - omega @ X) ** 2
    return np.abs(X.T @ R).sum(axis=1) / np.sqrt(np.maximum(new, floor * variance))


@pytest.mark.parametrize("scaling", ["unit_variance", "max_abs", "none"])
def test_scores_are_the_projections(scaling):
    columns, y, omega = _problem()
    seen = _record(columns, y, omega, scaling=scaling, criterion_options={"floor": 0.05})
    assert len(seen) == 6
    for numbers, scores, R, chosen in seen:
        assert numbers is None
        assert_allclose(scores, _brute_force(columns, omega, R, chosen, 0.05), rtol=1e-6)


def test_groups_add_their_columns():
    groups = np.arange(30) // 3
    columns, y, omega = _problem(groups=groups)
    for numbers, scores, R, chosen in _record(columns, y, omega):
        single = _brute_force(columns, omega, R, chosen, 0.1)
        together = np.bincount(groups, single)
        expected = together if numbers is None else together[numbers]
        assert_allclose(scores, expected, rtol=1e-6)


def test_survivors_of_a_screen_get_the_same_scores():
    columns, y, omega = _problem()
    options = {"fraction": 1.0, "keep": 9}
    seen = _record(columns, y, omega, search="screened", search_options=options)
    for numbers, scores, R, chosen in seen:
        assert len(numbers) == 9
        assert_allclose(scores, _brute_force(columns, omega, R, chosen, 0.1)[numbers], rtol=1e-6)


def test_a_copy_of_a_chosen_column_never_enters():
    columns, y, _ = _problem("float32")
    support = ShareBoost(rounds=12, criterion="orthogonal").fit(columns, y).support_
    assert not {3, 7} <= set(support.tolist())


@pytest.mark.parametrize("first", [1, 5, 11])
def test_resume_gives_the_same_bits(tmp_path, first):
    columns, y, _ = _problem("float16")
    settings = {"criterion": "orthogonal", "checkpoint": tmp_path / "rounds"}
    whole = ShareBoost(rounds=14, criterion="orthogonal").fit(columns, y)
    ShareBoost(rounds=first, **settings).fit(columns, y)
    resumed = ShareBoost(rounds=14, **settings).fit(columns, y)
    assert_array_equal(resumed.support_, whole.support_)
    assert_array_equal(resumed.coef_, whole.coef_)
    assert [s.score for s in resumed.path_] == [s.score for s in whole.path_]


def test_bad_options_are_named():
    columns, y, _ = _problem()
    for floor in (0, 1.5, "low"):
        with pytest.raises(InputError, match=r"^floor: got"):
            make_criterion("orthogonal", floor=floor)
    with pytest.raises(InputError, match="criterion_options"):
        ShareBoost(criterion="gradient", criterion_options={"floor": 0.2}).fit(columns, y)
