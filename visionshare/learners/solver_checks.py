"""What solvers and bounds carry: losses, norms and shared weights, checked before work starts."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from visionshare.errors import InputError
from visionshare.losses import ImportanceLoss, TaskLoss
from visionshare.penalties import GroupNorm, RowPenalty
from visionshare.search import TASK_CRITERIA, LargestDecrease
from visionshare.solvers import AdaBoost, GradBoost, check_quadratic_bound, solver_maker


class HasSolver(Protocol):
    """The parameters of a learner that its solver depends on."""

    solver: Any
    criterion: Any
    loss: Any
    shared_alpha: float | None


def check_solver(learner: HasSolver, loss: TaskLoss, norm: RowPenalty) -> None:
    """Check that a learner's solver, and what its criterion bounds, carry its loss and norm."""
    maker: Any = solver_maker(learner.solver)
    # A class of solvers may come with settings.
    maker = getattr(maker, "func", maker)
    bounded = maker in (AdaBoost, GradBoost)
    if bounded and learner.shared_alpha is not None:
        accepted = "None, with solver 'gradboost' or 'adaboost'"
        raise InputError("shared_alpha", learner.shared_alpha, accepted)
    if maker is AdaBoost:
        _check_adaboost(learner, loss, norm)
    elif bounded or isinstance(TASK_CRITERIA.make(learner.criterion), LargestDecrease):
        check_quadratic_bound(loss, norm)


def _check_adaboost(learner: HasSolver, loss: TaskLoss, norm: RowPenalty) -> None:
    if not isinstance(norm, GroupNorm) or norm.q not in (1, np.inf):
        name = _norm_parameter(learner)
        accepted = {
            "penalty": "'l1' or 'l1/linf', for AdaBoost",
            "q": "1 or infinity, for AdaBoost",
        }
        raise InputError(name, getattr(learner, name), accepted[name])
    if not isinstance(loss, ImportanceLoss):
        accepted_loss = "'logistic', 'exponential', 'multinomial' or 'insensitive', for AdaBoost"
        raise InputError("loss", learner.loss, accepted_loss)


def _norm_parameter(learner: HasSolver) -> str:
    """Return the name of the parameter that a learner's norm comes from."""
    return "penalty" if hasattr(learner, "penalty") else "q"
