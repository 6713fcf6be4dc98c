"""Restricted master problems: loss plus penalty over the columns chosen so far."""

from visionshare.solvers.accelerated import Solution, minimise
from visionshare.solvers.active_set import ActiveSet
from visionshare.solvers.preconditioner import Preconditioner

__all__ = ["ActiveSet", "Preconditioner", "Solution", "minimise"]
