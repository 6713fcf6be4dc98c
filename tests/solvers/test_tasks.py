"""The tasks' solvers against each other, an independent solver and the conditions of optimality."""

from concurrent.futures import ThreadPoolExecutor
from functools import cache

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize

from visionshare.errors import InputError
from visionshare.losses import make_task_loss
from visionshare.penalties import GroupNorm
from visionshare.solvers import (
    SOLVERS,
    Fista,
    TaskProblem,
    TaskTargets,
    TaskWeights,
    polish,
    solver_maker,
)

SIZES = (2, 1, 1, 3)
WHOLE = ("admm", "fista", "newton")


def _problem(loss="squared_hinge", q=2, alpha=1.5, shared=np.inf, seed=0, **kw):
    """Return a problem of three tasks and seven columns in four groups."""
    rng = np.random.default_rng(seed)
    m = 60
    if loss == "squared":
        s, c = np.ones((m, 3)), rng.normal(size=(m, 3)) + 1
    else:
        s, c = rng.choice([-1.0, 1.0], (m, 3)), np.ones((m, 3))
    targets = TaskTargets(s, c, rng.uniform(0.5, 2, m))
    problem = TaskProblem(targets, make_task_loss(loss), GroupNorm(q), alpha, shared, **kw)
    for size in SIZES:
        columns = rng.normal(size=(size, m)) + 0.3
        problem.append(columns / np.linalg.norm(columns, axis=1, keepdims=True))
    return problem


def _start(problem):
    return problem.empty().padded(problem.n)


def _by_definition(problem, weights):
    total, targets = 0.0, problem.targets
    for t in range(problem.n_tasks):
        w = weights.W[:, t] + weights.shared
        f = problem.columns.T @ w + weights.b[t]
        z = targets.c[:, t] - targets.s[:, t] * f
        total += np.dot(targets.omega, problem.loss.value(z))
    if problem.per_task:
        ends = np.cumsum(SIZES)
        for a, b in zip(ends - SIZES, ends, strict=True):
            total += problem.alpha * np.linalg.norm(weights.W[a:b].ravel(), problem.norm.q)
    if problem.sharing:
        total += problem.shared_alpha * np.abs(weights.shared).sum()
    return total


@cache
def _independent(loss, q, alpha, shared):
    """Minimize by a generic quasi-Newton method, norms made smooth in ever smaller steps."""
    problem = _problem(loss, q, alpha, shared)
    d, T, ends = problem.n, problem.n_tasks, np.cumsum(SIZES)

    def unpack(x):
        W = x[: d * T].reshape(d, T) if problem.per_task else np.zeros((d, T))
        shared = x[d * T : d * T + d] if problem.sharing else np.zeros(d)
        return TaskWeights(W, shared, x[-T:])

    def objective(x, eps):
        weights = unpack(x)
        plain = _by_definition(problem, weights)
        of_tasks = shared = 0.0
        if problem.per_task:
            for a, b in zip(ends - SIZES, ends, strict=True):
                w = weights.W[a:b].ravel()
                smooth = np.sum((w * w + eps * eps) ** (problem.norm.q / 2)) ** (1 / problem.norm.q)
                of_tasks += problem.alpha * (smooth - np.linalg.norm(w, problem.norm.q))
        if problem.sharing:
            w = weights.shared
            shared = problem.shared_alpha * np.sum(np.sqrt(w * w + eps * eps) - np.abs(w))
        return plain + of_tasks + shared

    x = np.zeros(d * T + d + T)
    for eps in (1e-1, 1e-2, 1e-3, 1e-4, 1e-5):
        x = minimize(objective, x, (eps,), method="BFGS", options={"maxiter": 400}).x
    return _by_definition(problem, unpack(x))


@pytest.mark.parametrize("solver", WHOLE)
@pytest.mark.parametrize(
    ("loss", "q", "alpha", "shared"),
    [
        ("squared_hinge", 2, 1.5, np.inf),
        ("squared_hinge", 1, 0.8, np.inf),
        ("squared", 2, 1.0, np.inf),
        ("logistic", 2, 0.4, np.inf),
        ("squared_hinge", 2, np.inf, 1.5),
        ("squared_hinge", 2, 1.5, 2.0),
        ("squared", 2, 0.7, 0.7),
        ("logistic", 2, 0.3, 0.4),
    ],
)
def test_solvers_reach_the_independent_minimum(solver, loss, q, alpha, shared):
    problem = _problem(loss, q, alpha, shared)
    solved = SOLVERS[solver](problem).solve(_start(problem), 1e-7, 20000)
    assert solved.converged
    assert_allclose(solved.value, _by_definition(problem, solved.weights), rtol=1e-12)
    reference = _independent(loss, q, alpha, shared)
    assert solved.value <= reference + 1e-9
    assert_allclose(solved.value, reference, rtol=1e-4)


@pytest.mark.parametrize("loss", ["squared", "squared_hinge", "logistic"])
@pytest.mark.parametrize(
    ("q", "shared"),
    [(1, np.inf), (2, np.inf), (np.inf, np.inf), (1, 1.3), (2, 1.3), (np.inf, 1.3)],
)
def test_solvers_agree(loss, q, shared):
    alpha = 0.3 if loss == "logistic" else 1.0
    values = []
    for solver in WHOLE:
        problem = _problem(loss, q, alpha, shared)
        solved = SOLVERS[solver](problem).solve(_start(problem), 1e-6, 20000)
        assert solved.converged, solver
        values.append(solved.value)
    assert_allclose(values, values[0], rtol=1e-7)


@pytest.mark.parametrize("solver", WHOLE)
@pytest.mark.parametrize("q", [1, 2, np.inf])
def test_at_lambda_max_every_weight_is_zero(solver, q):
    problem = _problem(q=q)
    free = SOLVERS[solver](problem)
    problem.alpha = np.inf
    problem.shared_alpha = 1e9
    alone = free.solve(_start(problem), 1e-12, 20000).weights
    lambda_max = problem.norm.dual_norms(
        problem.gradient(problem.slack(alone)).W, problem.starts
    ).max()
    problem.shared_alpha = np.inf
    for factor, empty in ((1.001, True), (0.98, False)):
        problem.alpha = factor * lambda_max
        solved = SOLVERS[solver](problem).solve(_start(problem), 1e-7, 20000)
        assert (not solved.weights.W.any()) == empty


@pytest.mark.parametrize("solver", WHOLE)
def test_a_column_that_enters_never_raises_the_objective(solver):
    whole = _problem(seed=3)
    problem = TaskProblem(whole.targets, whole.loss, whole.norm, whole.alpha, whole.shared_alpha)
    made, weights, values = SOLVERS[solver](problem), problem.empty(), []
    values.append(made.solve(weights, 1e-8, 20000).value)
    for first, size in zip(np.cumsum(SIZES) - SIZES, SIZES, strict=True):
        problem.append(whole.columns[first : first + size])
        solved = made.solve(weights.padded(size), 1e-8, 20000)
        weights = solved.weights
        values.append(solved.value)
    assert (np.diff(values) <= 1e-9).all()
    assert_allclose(values[-1], SOLVERS[solver](whole).solve(_start(whole), 1e-8, 20000).value)


@pytest.mark.parametrize("solver", WHOLE)
def test_columns_that_leave_are_forgotten(solver):
    problem, small = _problem(seed=4), _problem(seed=4)
    made = SOLVERS[solver](problem)
    weights = made.solve(_start(problem), 1e-6, 20000).weights
    positions = problem.keep(np.array([0, 3]))
    assert_array_equal(positions, [0, 1, 4, 5, 6])
    small.keep(np.array([0, 3]))
    solved = made.solve(weights.kept(positions), 1e-8, 20000)
    fresh = SOLVERS[solver](small).solve(_start(small), 1e-8, 20000)
    assert_allclose(solved.value, fresh.value, rtol=1e-9)


def test_groups_may_enter_together():
    one_by_one = _problem()
    together = TaskProblem(one_by_one.targets, one_by_one.loss, one_by_one.norm, one_by_one.alpha)
    together.append(one_by_one.columns.copy(), SIZES)
    assert_array_equal(together.starts, one_by_one.starts)
    assert_array_equal(together.columns, one_by_one.columns)
    pairs = [(together.products, one_by_one.products), (together.sums, one_by_one.sums)]
    for a, b in pairs:
        assert_allclose(a, b, rtol=1e-12, atol=1e-14)


def test_scaled_columns_make_the_same_steps():
    # Columns a hundred times as large with a penalty a hundred times as large: the same problem.
    problem, large = _problem(), _problem(alpha=150.0)
    columns = large.columns
    columns *= 100
    large.products = 1e4 * large.products
    large.sums = 100 * large.sums
    results = [SOLVERS["admm"](p).solve(_start(p), 0.0, 40) for p in (problem, large)]
    assert_allclose(results[0].weights.W, 100 * results[1].weights.W, rtol=1e-9, atol=1e-10)


def test_polish_finds_the_last_digits():
    for q, shared in ((2, np.inf), (1, np.inf), (2, 1.2)):
        problem = _problem(q=q, shared=shared)
        near = Fista(problem).solve(_start(problem), 1e-3, 20000)
        exact = polish(problem, near.weights)
        assert problem.examine(exact)[1] < 1e-12
        assert problem.examine(exact)[0] <= near.value
    problem = _problem(q=np.inf)
    near = Fista(problem).solve(_start(problem), 1e-3, 20000)
    assert polish(problem, near.weights) is near.weights


def test_threads_do_not_change_the_bits():
    plain = _problem(tile=16)
    with ThreadPoolExecutor(3) as executor:
        threaded = _problem(executor=executor, tile=16)
        for solver in (SOLVERS[name] for name in WHOLE):
            a = solver(plain).solve(_start(plain), 1e-5, 500).weights
            b = solver(threaded).solve(_start(threaded), 1e-5, 500).weights
            assert_array_equal(a.W, b.W)
            assert_array_equal(a.b, b.b)


def test_float32_columns_reach_their_precision():
    problem = _problem(dtype=np.dtype(np.float32))
    exact = _problem()
    for solver in (SOLVERS[name] for name in WHOLE):
        rough = solver(problem).solve(_start(problem), 1e-4, 3000)
        fine = solver(exact).solve(_start(exact), 1e-8, 20000)
        assert rough.converged
        assert_allclose(rough.value, fine.value, rtol=1e-5)


def test_unknown_solvers_are_refused():
    with pytest.raises(InputError, match=r"^solver: got 'simplex'"):
        solver_maker("simplex")


def test_published_fista_never_makes_a_step_longer_again():
    steps = {}
    for as_published in (False, True):
        solver = Fista(_problem("logistic", alpha=0.05), as_published=as_published)
        solver._lipschitz = solver._first = 1e-3
        inner, seen = solver._step, []

        def step(*arguments, inner=inner, seen=seen, solver=solver):
            result = inner(*arguments)
            seen.append(1 / solver._lipschitz)
            return result

        solver._step = step
        solution = solver.solve(_start(solver.problem), 1e-4, 20000)
        assert solution.converged
        steps[as_published] = np.diff(seen)
    assert (steps[True] <= 0).all()
    assert (steps[False] > 0).any()


@pytest.mark.parametrize("solver", ["fista", "newton"])
@pytest.mark.parametrize("q", [1, 2, np.inf])
@pytest.mark.parametrize("most", [5, 50])
def test_an_example_of_weight_two_is_two_examples(solver, q, most):
    """In every iteration: a solver that stops early must not tell them apart."""
    rng = np.random.default_rng(3)
    m = 30
    X = rng.normal(size=(6, m)) + 0.3
    s, c, counts = rng.choice([-1.0, 1.0], (m, 3)), np.ones((m, 3)), rng.integers(1, 5, m)

    def weights(rows, omega):
        targets = TaskTargets(s[rows], c[rows], omega)
        problem = TaskProblem(targets, make_task_loss("logistic"), GroupNorm(q), 0.5)
        problem.append(X[:2, rows], sizes=[1, 1])
        problem.append(X[2:, rows], sizes=[2, 2])
        return solver_maker(solver)(problem).solve(_start(problem), 1e-12, most).weights

    repeated = weights(np.repeat(np.arange(m), counts), np.ones(counts.sum()))
    assert np.abs(repeated.W).max() > 0.1
    one_for_all = counts.astype(float)
    for omega in (one_for_all, np.tile(one_for_all[:, None], 3)):
        weighted = weights(np.arange(m), omega)
        assert_allclose(weighted.W, repeated.W, rtol=1e-9, atol=1e-11)
        assert_allclose(weighted.b, repeated.b, rtol=1e-9, atol=1e-11)
