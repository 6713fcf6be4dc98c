"""Boosting's bounds: they hold, their minimizers are numerical ones', and they score both alike."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize

from visionshare.errors import InputError
from visionshare.learners.task_targets import class_targets, coupled_targets, number_targets
from visionshare.losses import Multinomial, make_task_loss
from visionshare.penalties import make_norm
from visionshare.solvers import MovingRows, TaskProblem, TaskWeights, majorizer


def _problem(loss, penalty, seed=0, m=30):
    rng = np.random.default_rng(seed)
    y, omega = rng.integers(0, 3, m), rng.uniform(0.5, 2, m)
    if loss == "multinomial":
        targets = coupled_targets(y, omega, 3)
        task_loss = Multinomial(targets.classes)
    elif loss == "insensitive":
        targets = number_targets(rng.normal(size=(m, 3)), omega)
        task_loss = make_task_loss(loss, eps=0.3)
    else:
        targets = class_targets(y, omega, 3)
        task_loss = make_task_loss(loss)
    problem = TaskProblem(targets.tasks, task_loss, make_norm(penalty), 0.8)
    for _ in range(3):
        problem.append(rng.normal(size=(1, m)))
    return problem, TaskWeights(
        0.4 * rng.normal(size=(3, 3)), np.zeros(3), 0.3 * rng.normal(size=3)
    )


def _figures(problem, weights, bound, rows):
    z, X = problem.slack(weights), problem.columns[rows]
    gradient = X @ problem.residual(z)
    total = np.abs(X) @ problem.importance(z) if bound.weighs else np.zeros_like(gradient)
    starts = np.arange(len(rows))
    size = bound.sized(bound.measure(X, problem.targets.omega[None]), starts)
    return MovingRows(weights.W[rows], gradient, total, size, starts)


CASES = [
    (solver, penalty, loss)
    for loss in ("multinomial", "logistic", "insensitive")
    for solver, penalty in (
        ("adaboost", "l1"),
        ("adaboost", "l1/linf"),
        ("gradboost", "l1"),
        ("gradboost", "l1/l2"),
        ("gradboost", "l1/linf"),
        ("gradboost", "l2^2"),
    )
]


@pytest.mark.parametrize(("solver", "penalty", "loss"), CASES)
def test_the_objective_falls_by_as_much_as_the_bound_says(solver, penalty, loss):
    for seed in range(10):
        problem, weights = _problem(loss, penalty, seed)
        bound = majorizer(solver, problem)
        rows = np.array([seed % 3])
        figures = _figures(problem, weights, bound, rows)
        W = weights.W.copy()
        W[rows] = bound.minimize(figures)
        fallen = problem.value(weights) - problem.value(TaskWeights(W, weights.shared, weights.b))
        promised = bound.decrease(figures)
        assert (promised >= -1e-12).all()
        assert promised.sum() > 1e-3
        assert fallen >= promised.sum() - 1e-10


def _exponential(delta, w, G, S, a, problem):
    up, down = (S - G) / 2, (S + G) / 2
    moved = a * np.sum(up * np.exp(-delta / a) + down * np.exp(delta / a))
    return moved + problem.alpha * problem.norm.value((w + delta)[None], np.zeros(1, int))


def _quadratic(delta, w, G, S, B, problem):
    moved = G @ delta + 0.5 * B * delta @ delta
    return moved + problem.alpha * problem.norm.value((w + delta)[None], np.zeros(1, int))


@pytest.mark.parametrize(("solver", "penalty", "loss"), CASES)
def test_the_update_is_the_bounds_minimum(solver, penalty, loss):
    at = _exponential if solver == "adaboost" else _quadratic
    for seed in range(4):
        problem, weights = _problem(loss, penalty, seed)
        bound = majorizer(solver, problem)
        figures = _figures(problem, weights, bound, np.array([0]))
        w, G, S, size = (np.asarray(v)[0] for v in figures[:4])
        delta = bound.minimize(figures)[0] - w
        rest = (w, G, S, float(size), problem)
        starts = [delta, np.zeros(3), delta + 0.1, -w]
        best = min(
            minimize(at, x, args=rest, method="Nelder-Mead",
                     options={"xatol": 1e-10, "fatol": 1e-12, "maxiter": 4000}).fun
            for x in starts
        )  # fmt: skip
        assert at(delta, *rest) <= best + 1e-9
        assert_allclose(bound.decrease(figures)[0], at(np.zeros(3), *rest) - at(delta, *rest),
                        atol=1e-10)  # fmt: skip


def test_what_the_exponential_bound_cannot_carry_is_refused():
    for loss, penalty, name in (("logistic", "l1/l2", "q"), ("logistic", "l2^2", "q"),
                                ("squared", "l1", "loss")):  # fmt: skip
        with pytest.raises(InputError, match=rf"^{name}: got"):
            majorizer("adaboost", _problem(loss, penalty)[0])
