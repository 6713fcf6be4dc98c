"""Features of channels that gradients move; the channels stay as they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from visionshare.generators.around import TunableAround

if TYPE_CHECKING:
    from visionshare.generators.channels.family import ChannelMaps

__all__ = ["tunable"]


def tunable(family: ChannelMaps) -> TunableAround:
    """Return the features of a fitted family as a function of parameters that gradients move."""
    return TunableAround(family)
