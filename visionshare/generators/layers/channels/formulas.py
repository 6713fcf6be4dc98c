"""What the channels of an image are: weights of colors, directions of gradients, and counts.

The kernel, C and ONNX compute from the same tables. Weights are whole multiples of 1/256, so that
colors and gradients of bytes are exact in float32, in whatever order they are summed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

# Weights of red, green and blue in 1/256.
_GRAY = (77, 150, 29)
COLORS: dict[str, tuple[tuple[int, int, int], ...]] = {
    "gray": (_GRAY,),
    "rgb": ((256, 0, 0), (0, 256, 0), (0, 0, 256)),
    "ycbcr": (_GRAY, (-43, -85, 128), (128, -107, -21)),
    "opponent": ((128, -128, 0), (64, 64, -128)),
}
GRADIENTS = ("magnitude", "orientations")


class Formulas(NamedTuple):
    """Channels of images of C values per pixel, as the kernel reads them."""

    colors: np.ndarray
    color_maps: np.ndarray
    magnitude_map: int
    orientations: np.ndarray
    orientation_map: int
    n_maps: int

    @property
    def has_gradients(self) -> bool:
        """Whether a map is made of gradients."""
        return self.magnitude_map >= 0 or len(self.orientations) > 0


def channel_names(channels: Sequence[str], n_orientations: int) -> list[str]:
    """Return a name for each map."""
    names: list[str] = []
    for channel in channels:
        n = n_orientations if channel == "orientations" else len(COLORS.get(channel, (0,)))
        names += [channel] if n == 1 else [f"{channel} {number}" for number in range(n)]
    return names


def formulas(channels: Sequence[str], n_orientations: int, n_values: int) -> Formulas:
    """Return the tables of channels of images of ``n_values`` per pixel."""
    colors: list[tuple[float, ...]] = []
    color_maps: list[int] = []
    firsts: dict[str, int] = {}
    n_maps = 0
    for channel in channels:
        firsts[channel] = n_maps
        if channel in COLORS:
            rows = COLORS[channel] if n_values == 3 else ((256,),)
            colors += rows
            color_maps += range(n_maps, n_maps + len(rows))
            n_maps += len(rows)
        else:
            n_maps += n_orientations if channel == "orientations" else 1
    n = n_orientations if "orientations" in firsts else 0
    return Formulas(
        np.array(colors, np.float32).reshape(-1, n_values) / np.float32(256),
        np.array(color_maps, np.int64),
        firsts.get("magnitude", -1),
        orientation_tables(n),
        firsts.get("orientations", 0),
        n_maps,
    )


def orientation_tables(n: int) -> np.ndarray:
    """Return two linear functions of a gradient for each of ``n`` orientations."""
    # A gradient is the sum of multiples of the two directions that it lies between, of those at
    # the angles kπ/n and their opposites. The multiple of direction k, or of its opposite, is
    # max(0, min(a, b), min(−a, −b)): a is 0 at the direction before, b at the one after, and both
    # are 1 at the direction itself.
    angles = np.arange(-1, n + 1) * np.pi / max(1, n)
    # A direction along an axis has an exact 0.
    x, y = (
        np.round(axis, 15) / np.sin(np.pi / max(1, n)) for axis in (np.cos(angles), np.sin(angles))
    )
    before = np.stack([-y[:-2], x[:-2]], axis=1)
    after = np.stack([y[2:], -x[2:]], axis=1)
    return np.stack([before, after], axis=1)[:n].astype(np.float32)
