"""Solvers of the restricted master problem: loss plus penalty over the columns chosen so far.

``minimize`` solves the smooth problem of all classes together; a :class:`Solver` that of tasks
with norms that make weights zero. To add a solver, write a class with :meth:`Solver.solve` in a
file of its own and add one line to :data:`SOLVERS`.
"""

from __future__ import annotations

from collections.abc import Callable

from visionshare.errors import InputError
from visionshare.registry import Registry
from visionshare.solvers.accelerated import Solution, minimize
from visionshare.solvers.active_set import ActiveSet
from visionshare.solvers.adam import Adam, one_cycle
from visionshare.solvers.admm import Admm
from visionshare.solvers.bounds import (
    ExponentialBound,
    MovingRows,
    QuadraticBound,
    RowBound,
    check_quadratic_bound,
    majorizer,
)
from visionshare.solvers.coordinate import AdaBoost, GradBoost
from visionshare.solvers.fista import Fista
from visionshare.solvers.intercepts import intercepts_alone
from visionshare.solvers.newton import Newton, polish
from visionshare.solvers.preconditioner import Preconditioner
from visionshare.solvers.task_targets import TaskTargets
from visionshare.solvers.tasks import (
    Solver,
    StepSolver,
    TaskProblem,
    TaskSolution,
    TaskWeights,
)

__all__ = [
    "SOLVERS",
    "ActiveSet",
    "AdaBoost",
    "Adam",
    "Admm",
    "ExponentialBound",
    "Fista",
    "GradBoost",
    "MovingRows",
    "Newton",
    "Preconditioner",
    "QuadraticBound",
    "RowBound",
    "Solution",
    "Solver",
    "StepSolver",
    "TaskProblem",
    "TaskSolution",
    "TaskTargets",
    "TaskWeights",
    "check_quadratic_bound",
    "intercepts_alone",
    "majorizer",
    "minimize",
    "one_cycle",
    "polish",
    "solver_maker",
]

SOLVERS: Registry[Solver] = Registry(
    "solver",
    {
        "adaboost": AdaBoost,
        "admm": Admm,
        "fista": Fista,
        "gradboost": GradBoost,
        "newton": Newton,
    },
    ("solve",),
)


def solver_maker(given: str | Callable[[TaskProblem], Solver]) -> Callable[[TaskProblem], Solver]:
    """Return what makes a solver of a problem: the class of a name, or what is given.

    Parameters
    ----------
    given : str or callable
        A key of :data:`SOLVERS`, or a class such as ``Newton``, or
        ``functools.partial(Admm, as_published=True)``.

    Examples
    --------
    >>> solver_maker("newton").__name__
    'Newton'
    """
    if not isinstance(given, str) and callable(given):
        return given
    if given not in SOLVERS:
        raise InputError("solver", given, " or ".join(map(repr, SOLVERS)))
    return SOLVERS[given]
