"""Boosting's criterion: the decrease of each violator's bound, against single evaluations."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from visionshare.columns import ArrayColumns
from visionshare.errors import InputError
from visionshare.learners.task_targets import coupled_targets
from visionshare.losses import Multinomial
from visionshare.penalties import make_norm
from visionshare.search import BoundState, Pool, make_task_criterion
from visionshare.solvers import MovingRows, TaskProblem, majorizer


def _state(penalty, groups=None, alpha=4.0, d=12):
    rng = np.random.default_rng(1)
    m = 60
    y, omega = rng.integers(0, 3, m), rng.uniform(0.5, 2, m)
    X = rng.normal(size=(m, d))
    X[np.arange(m), y] += 1
    columns = ArrayColumns(X, dtype="float64", groups=groups)
    columns.fit_scaling("none")
    targets = coupled_targets(y, omega, 3)
    problem = TaskProblem(targets.tasks, Multinomial(targets.classes), make_norm(penalty), alpha)
    start = problem.empty()
    z = problem.slack(start)
    state = BoundState(
        problem.residual(z), 1, np.empty(0, np.int64), problem.importance(z),
        problem.targets.omega[None], {},
    )  # fmt: skip
    return problem, Pool(columns), state, X


@pytest.mark.parametrize(("solver", "penalty"), [("adaboost", "l1/linf"), ("gradboost", "l1/l2")])
def test_scores_are_those_of_single_updates(solver, penalty):
    problem, pool, state, X = _state(penalty)
    scores = make_task_criterion("bound", problem, solver, 0.0).score(pool, state, None)
    bound, starts = majorizer(solver, problem), np.zeros(1, np.int64)
    for j in range(12):
        x = X.T[[j]]
        gradient = x @ state.residual
        if problem.norm.dual_norms(gradient, starts)[0] <= 4.0:
            assert scores[j] == -np.inf
            continue
        size = bound.sized(bound.measure(x, state.omegas), starts)
        total = np.abs(x) @ state.importance
        alone = bound.decrease(MovingRows(np.zeros((1, 3)), gradient, total, size, starts))
        assert scores[j] > 0
        assert_allclose(scores[j], alone[0], rtol=1e-12)
    assert 0 < np.isfinite(scores).sum() < 12


def test_many_groups_of_any_size_score_as_each_alone():
    """More groups than are scored together, shuffled, some of them active."""
    rng = np.random.default_rng(2)
    groups = rng.permutation(np.repeat(np.arange(600), rng.integers(1, 5, 600)))
    problem, pool, state, _ = _state("l1/linf", groups, 0.5, len(groups))
    active = {c: rng.normal(size=(len(pool.features(c)), 3)) for c in (3, 250, 251, 599)}
    state = replace(state, active=active)
    criterion = make_task_criterion("bound", problem, "gradboost", 0.0)
    scores = criterion.score(pool, state, None)
    assert np.isfinite(scores).sum() > 300
    alone = [criterion.score(pool, state, np.array([c]))[0] for c in range(600)]
    assert_allclose(scores, alone, rtol=1e-10)
    some = rng.permutation(600)[:400]
    assert_allclose(criterion.score(pool, state, some), scores[some], rtol=1e-10)


def test_active_candidates_count_with_their_weights():
    problem, pool, state, _ = _state("l1/l2")
    criterion = make_task_criterion("bound", problem, "gradboost", 0.0)
    scores = criterion.score(pool, state, None)
    out = int(np.flatnonzero(~np.isfinite(scores))[0])
    active = BoundState(
        state.residual, 1, np.array([out]), state.importance, state.omegas, {out: np.ones((1, 3))}
    )
    assert criterion.score(pool, active, None)[out] > 0
    assert_array_equal(np.delete(criterion.score(pool, active, None), out), np.delete(scores, out))


def test_groups_are_scored_together():
    groups = np.arange(12) // 3
    problem, pool, state, X = _state("l1/l2", groups)
    scores = make_task_criterion("bound", problem, "gradboost", 0.0).score(pool, state, None)
    bound, starts = majorizer("gradboost", problem), np.zeros(1, np.int64)
    x = X.T[:3]
    gradient = x @ state.residual
    size = bound.sized(bound.measure(x, state.omegas), starts)
    alone = bound.decrease(MovingRows(np.zeros((3, 3)), gradient, np.zeros((3, 3)), size, starts))
    assert_allclose(scores[0], alone[0], rtol=1e-12)
    selected = make_task_criterion("bound", problem, "gradboost", 0.0).score(
        pool, state, np.array([2, 0])
    )
    assert_array_equal(selected, scores[[2, 0]])


def test_unknown_criteria_are_refused():
    problem = _state("l1")[0]
    with pytest.raises(InputError, match=r"^criterion: got"):
        make_task_criterion("gradient", problem, "gradboost", 0.0)
