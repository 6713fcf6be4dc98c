"""Boosting's coordinate steps: falling objectives, and the minimum that other solvers reach."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from visionshare.errors import InputError
from visionshare.losses import make_task_loss
from visionshare.penalties import GroupNorm
from visionshare.solvers import SOLVERS, Fista, TaskProblem, TaskTargets


def _problem(loss, q, sizes=(1,) * 6, alpha=0.7, shared=np.inf):
    rng = np.random.default_rng(0)
    m = 60
    s = rng.choice([-1.0, 1.0], (m, 3))
    c = np.ones_like(s)
    if loss == "squared":
        s, c = np.ones_like(s), s + 0.5
    targets = TaskTargets(s, c, rng.uniform(0.5, 2, m))
    problem = TaskProblem(targets, make_task_loss(loss), GroupNorm(q), alpha, shared)
    for size in sizes:
        problem.append(rng.normal(size=(size, m)) * rng.uniform(0.3, 2))
    return problem


CASES = [
    ("gradboost", "logistic", 1, (1,) * 6),
    ("gradboost", "logistic", 2, (2, 1, 3)),
    ("gradboost", "logistic", np.inf, (1,) * 6),
    ("gradboost", "squared_hinge", 2, (1,) * 6),
    ("gradboost", "squared", np.inf, (2, 2, 2)),
    ("adaboost", "logistic", 1, (1,) * 6),
    ("adaboost", "logistic", np.inf, (1,) * 6),
]


@pytest.mark.parametrize(("solver", "loss", "q", "sizes"), CASES)
def test_they_reach_the_minimum(solver, loss, q, sizes):
    problem = _problem(loss, q, sizes)
    start = problem.empty().padded(problem.n)
    solved = SOLVERS[solver](problem).solve(start, 1e-7, 20000)
    assert solved.converged
    reference = Fista(problem).solve(start, 1e-8, 20000)
    assert_allclose(solved.value, reference.value, rtol=1e-8)


@pytest.mark.parametrize(("solver", "loss", "q", "sizes"), CASES)
def test_the_objective_never_rises(solver, loss, q, sizes):
    problem = _problem(loss, q, sizes)
    solver, weights, values = SOLVERS[solver](problem), problem.empty().padded(problem.n), []
    for _ in range(15):
        solved = solver.solve(weights, 0.0, 1)
        weights = solved.weights
        values.append(solved.value)
    assert (np.diff(values) <= 1e-10).all()


def test_other_problems_are_refused():
    with pytest.raises(InputError, match=r"^loss: got"):
        SOLVERS["adaboost"](_problem("squared_hinge", 1))
    with pytest.raises(InputError, match=r"^q: got"):
        SOLVERS["adaboost"](_problem("logistic", 2))
    with pytest.raises(InputError, match=r"^shared_alpha: got"):
        SOLVERS["gradboost"](_problem("logistic", 2, shared=1.0))
    problem = _problem("logistic", 1, (2, 1))
    with pytest.raises(InputError, match=r"^groups: got"):
        SOLVERS["adaboost"](problem).solve(problem.empty().padded(3), 1e-3, 5)
