"""Features of deslanted images that gradients move."""

from __future__ import annotations

from typing import TYPE_CHECKING

from visionshare.generators.around import TunableAround

if TYPE_CHECKING:
    from visionshare.generators.deslanted.family import Deslanted

__all__ = ["tunable"]


def tunable(family: Deslanted) -> TunableAround:
    """Return the features of a fitted family as a function of parameters that gradients move."""
    return TunableAround(family)
