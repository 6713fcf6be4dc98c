"""Restricted master problems: loss plus penalty over the columns chosen so far.

``minimise`` solves the smooth problem of all classes together; a :class:`Master` that of tasks
with norms that make weights zero. To add a master, write a class with :meth:`Master.solve` in a
file of its own and add one line to :data:`MASTERS`.
"""

from __future__ import annotations

from collections.abc import Callable

from visionshare.errors import InputError
from visionshare.solvers.accelerated import Solution, minimise
from visionshare.solvers.active_set import ActiveSet
from visionshare.solvers.adam import Adam, one_cycle
from visionshare.solvers.admm import Admm
from visionshare.solvers.bounds import ExponentialBound, QuadraticBound, RowBound, bound_of
from visionshare.solvers.coordinate import AdaBoost, GradBoost, Template
from visionshare.solvers.fista import Fista
from visionshare.solvers.newton import Newton, polish
from visionshare.solvers.preconditioner import Preconditioner
from visionshare.solvers.tasks import (
    Master,
    StepMaster,
    TaskBlock,
    TaskProblem,
    TaskSolution,
    TaskWeights,
)

__all__ = [
    "MASTERS",
    "ActiveSet",
    "AdaBoost",
    "Adam",
    "Admm",
    "ExponentialBound",
    "Fista",
    "GradBoost",
    "Master",
    "Newton",
    "Preconditioner",
    "QuadraticBound",
    "RowBound",
    "Solution",
    "StepMaster",
    "TaskBlock",
    "TaskProblem",
    "TaskSolution",
    "TaskWeights",
    "Template",
    "bound_of",
    "check_master",
    "minimise",
    "one_cycle",
    "polish",
]

MASTERS: dict[str, Callable[[TaskProblem], Master]] = {
    "adaboost": AdaBoost,
    "admm": Admm,
    "fista": Fista,
    "gradboost": GradBoost,
    "newton": Newton,
}


def check_master(name: str) -> Callable[[TaskProblem], Master]:
    """Return the class of the master registered as ``name``.

    Raises
    ------
    InputError
        If no master has that name.
    """
    if name not in MASTERS:
        raise InputError("master", name, " or ".join(map(repr, MASTERS)))
    return MASTERS[name]
