"""The penalties with a proximal operator by name. To add one, add a line here."""

from __future__ import annotations

from functools import partial

from visionshare.penalties.norms import GroupNorm, HalfSquares, RowPenalty
from visionshare.registry import Registry

NORMS: Registry[RowPenalty] = Registry(
    "penalty",
    {
        "l1": partial(GroupNorm, 1),
        "l1/l2": partial(GroupNorm, 2),
        "l1/linf": partial(GroupNorm, float("inf")),
        "l2^2": HalfSquares,
    },
    ("prox", "dual_norms", "norms"),
)


def make_norm(given: str | RowPenalty) -> RowPenalty:
    """Return the penalty of a name, or the penalty that is given.

    Examples
    --------
    >>> make_norm("l1/l2").q
    2
    """
    return NORMS.make(given)
