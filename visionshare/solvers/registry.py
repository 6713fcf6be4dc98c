"""The solvers of tasks by name. To add one, write a class with ``solve`` and add a line here."""

from __future__ import annotations

from collections.abc import Callable

from visionshare.errors import InputError
from visionshare.registry import Registry
from visionshare.solvers.adam import Adam
from visionshare.solvers.admm import Admm
from visionshare.solvers.coordinate import AdaBoost, GradBoost
from visionshare.solvers.fista import Fista
from visionshare.solvers.muon import Muon
from visionshare.solvers.newton import Newton
from visionshare.solvers.tasks import Solver, TaskProblem

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

#: Gradient steps of fine-tuning by name.
OPTIMIZERS: dict[str, type[Adam]] = {"adam": Adam, "muon": Muon}


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
