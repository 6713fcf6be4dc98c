"""Criteria of learners of tasks: which violator enters.

``violation`` costs one product with the pool; ``bound`` tries the update of every violator.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from visionshare.registry import Registry
from visionshare.search.bound_decrease import BoundDecrease
from visionshare.search.pool import Criterion
from visionshare.search.violation import Violation
from visionshare.solvers import TaskProblem, majorizer

SolverGiven = str | Callable[..., Any]


class TaskCriterion(Protocol):
    """What a learner of tasks asks: the criterion of its problem."""

    def of(self, problem: TaskProblem, solver: SolverGiven, tol: float) -> Criterion:
        """Return the criterion of a problem, for its solver and its tolerance."""
        ...


@dataclass(frozen=True)
class LargestViolation:
    """The candidate whose gradient violates optimality most."""

    def of(self, problem: TaskProblem, solver: SolverGiven, tol: float) -> Criterion:
        """Return the violation under the problem's penalty."""
        return Violation(problem.norm, problem.alpha, problem.shared_alpha)


@dataclass(frozen=True)
class LargestDecrease:
    """The candidate whose update lowers the solver's bound on the objective most."""

    def of(self, problem: TaskProblem, solver: SolverGiven, tol: float) -> Criterion:
        """Return the decrease of the bound that the solver minimizes."""
        return BoundDecrease(majorizer(solver, problem), tol)


TASK_CRITERIA: Registry[TaskCriterion] = Registry(
    "criterion", {"violation": LargestViolation, "bound": LargestDecrease}, ("of",)
)


def make_task_criterion(
    given: str | TaskCriterion, problem: TaskProblem, solver: SolverGiven, tol: float
) -> Criterion:
    """Return the criterion of a name, or of an object, for a problem.

    Parameters
    ----------
    given : {"violation", "bound"} or TaskCriterion
    problem : TaskProblem
        Whose loss, penalty and alpha decide.
    solver : str or callable
        The solver whose bound is used.
    tol : float
        A candidate enters only if it violates optimality by more than this fraction of λ.

    Raises
    ------
    InputError
        If no criterion has that name.
    """
    return TASK_CRITERIA.make(given).of(problem, solver, tol)
