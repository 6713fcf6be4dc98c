"""Criteria of learners of tasks: which violator enters.

``violation`` costs one product with the pool; ``bound`` tries the update of every violator.
"""

from __future__ import annotations

from collections.abc import Callable

from visionshare.errors import InputError
from visionshare.search.bound_decrease import BoundDecrease
from visionshare.search.pool import Criterion
from visionshare.search.violation import Violation
from visionshare.solvers import TaskProblem, majorizer

__all__ = ["TASK_CRITERIA", "check_task_criterion", "make_task_criterion"]


def _violation(problem: TaskProblem, solver: str, tol: float) -> Criterion:
    return Violation(problem.norm, problem.alpha, problem.shared_alpha)


def _bound(problem: TaskProblem, solver: str, tol: float) -> Criterion:
    return BoundDecrease(majorizer(solver, problem), tol)


TASK_CRITERIA: dict[str, Callable[[TaskProblem, str, float], Criterion]] = {
    "violation": _violation,
    "bound": _bound,
}


def check_task_criterion(name: str) -> None:
    """Check that a criterion is registered as ``name``.

    Raises
    ------
    InputError
        If none has that name.
    """
    if name not in TASK_CRITERIA:
        raise InputError("criterion", name, " or ".join(map(repr, TASK_CRITERIA)))


def make_task_criterion(name: str, problem: TaskProblem, solver: str, tol: float) -> Criterion:
    """Return the criterion registered as ``name``.

    Parameters
    ----------
    name : {"violation", "bound"}
    problem : TaskProblem
        Whose loss, penalty and alpha decide.
    solver : str
        The solver whose bound is used.
    tol : float
        A candidate enters only if it violates optimality by more than this share of λ.

    Raises
    ------
    InputError
        If no criterion has that name.
    """
    check_task_criterion(name)
    return TASK_CRITERIA[name](problem, solver, tol)
