"""Small instances of features of channels, for tests, fuzzing and exports."""

from __future__ import annotations

from collections.abc import Callable

from visionshare.generators.channels.family import ChannelMaps
from visionshare.generators.patches.family import PatchTemplates
from visionshare.generators.pixels.family import Pixels

__all__ = ["EXAMPLES"]

EXAMPLES: dict[str, Callable[[], ChannelMaps]] = {
    "channels": lambda: ChannelMaps(
        PatchTemplates(2, 8, 2, (2.0,), n_patches=2000), ("gray", "orientations"), 4, pool=2
    ),
    "channels-normalized": lambda: ChannelMaps(
        Pixels(), ("orientations", "gray", "magnitude"), 3, normalization="local", window=5
    ),
}
