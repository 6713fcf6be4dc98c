"""Newton's steps where they are hard: collinear columns, zeros to come, few digits."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from visionshare.losses import make_task_loss
from visionshare.penalties import GroupNorm
from visionshare.solvers import Fista, TaskProblem, TaskTargets
from visionshare.solvers.newton import Newton


def _problem(X, q, alpha, tasks=3, loss="squared_hinge", dtype=np.float64, size=1):
    rng = np.random.default_rng(1)
    m = len(X)
    s = rng.choice([-1.0, 1.0], (m, tasks))
    targets = TaskTargets(s, np.ones((m, tasks)), np.ones(m))
    problem = TaskProblem(targets, make_task_loss(loss), GroupNorm(q), alpha, dtype=np.dtype(dtype))
    for i in range(0, X.shape[1], size):
        problem.append(X.T[i : i + size])
    return problem


def _solved(problem, tol, most=2000):
    return Newton(problem).solve(problem.empty().padded(problem.n), tol, most)


@pytest.mark.parametrize("q", [1, 2])
def test_more_weights_than_examples_at_work(q):
    """The Hessian of the squared hinge is singular where most examples are beyond the margin."""
    X = np.random.default_rng(0).normal(size=(40, 30))
    problem = _problem(X, q, 0.02)
    solved = _solved(problem, 1e-8)
    assert solved.converged
    longest = Fista(problem).solve(solved.weights, 1e-9, 50)
    assert_allclose(solved.value, longest.value, rtol=1e-9)
    from_zero = Fista(problem).solve(problem.empty().padded(problem.n), 1e-8, 3000)
    assert solved.value <= from_zero.value * (1 + 1e-9)


def test_groups_that_are_not_needed_become_zero():
    """Near-copies of a column: most groups end at zero, which no smooth step reaches."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 2)).repeat(8, axis=1) + 0.02 * rng.normal(size=(80, 16))
    problem = _problem(X, 2, 3.0, size=2)
    solved = _solved(problem, 1e-9, 500)
    assert solved.converged
    zero = ~problem.norm.norms(solved.weights.W, problem.starts).astype(bool)
    assert 0 < zero.sum() < len(zero)


def test_single_precision_gets_as_far_as_its_digits():
    """Steps are judged by their gradient where rounding hides what they gain."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 3)) @ rng.normal(size=(3, 24)) + 0.1 * rng.normal(size=(4000, 24))
    reference = _solved(_problem(X, 2, 0.5, tasks=1), 1e-9)
    result = _solved(_problem(X, 2, 0.5, tasks=1, dtype=np.float32), 1e-2)
    assert reference.converged
    assert result.converged
    assert result.iterations <= 60
    assert_allclose(result.value, reference.value, rtol=1e-6)


def test_tasks_that_stand_apart_are_solved_as_if_alone():
    X = np.random.default_rng(0).normal(size=(60, 10))
    together = _problem(X, 1, 2.0)
    solved = _solved(together, 1e-10)
    targets = together.targets
    for task in range(3):
        alone = TaskTargets(targets.s[:, [task]], targets.c[:, [task]], targets.omega)
        problem = TaskProblem(alone, together.loss, GroupNorm(1), 2.0)
        problem.append(X.T, [1] * 10)
        single = _solved(problem, 1e-10)
        assert_allclose(solved.weights.W[:, task], single.weights.W[:, 0], atol=1e-8)


def test_no_columns():
    problem = _problem(np.zeros((20, 0)), 1, 1.0)
    assert _solved(problem, 1e-8).converged
