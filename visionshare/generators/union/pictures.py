"""Pictures of a union: each family's pictures, one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from visionshare.generators.pictures import Panel, Pictures, Sample, Tile

if TYPE_CHECKING:
    from visionshare.generators.union.family import UnionOfFamilies


class UnionPictures(Pictures):
    """The pictures of each family, with the numbers that its features have in the union."""

    def __init__(self, family: UnionOfFamilies, sample: Sample) -> None:
        self._part_of = family.part_
        self._parts = [part.pictures(sample) for part in family.parts_]

    def panels(self, numbers: Sequence[int]) -> list[Panel]:
        """Return the panels of the families, which say whose they are."""
        panels = []
        for p, part in enumerate(self._parts):
            drawn = part.panels([numbers[int(j)] for j in np.flatnonzero(self._part_of == p)])
            whose = f"family {p + 1} of {len(self._parts)}"
            panels += [replace(panel, heading=f"{panel.heading}, {whose}") for panel in drawn]
        return panels

    def tiles(self, feature: int) -> tuple[Tile, ...]:
        """Return what the feature's family draws of it."""
        part = self._part_of[feature]
        return self._parts[part].tiles(int(np.sum(self._part_of[:feature] == part)))


pictures = UnionPictures
