"""Pictures of monomials: the pictures of their factors."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING

from visionshare.generators.pictures import Panel, Pictures, Sample, Tile

if TYPE_CHECKING:
    from visionshare.generators.monomials.family import Monomials


class MonomialPictures(Pictures):
    """The pictures of the factors, numbered as the family inside has them."""

    def __init__(self, family: Monomials, sample: Sample) -> None:
        self._factors = family.factors_
        self._n = family.base_.n_features_
        self._base = family.base_.pictures(sample)
        self._products = any(len(factors) > 1 for factors in family.factors_)

    def panels(self, numbers: Sequence[int]) -> list[Panel]:
        """Return the panels of the factors."""
        panels = self._base.panels(range(1, self._n + 1))
        note = "Products of these features are features, too."
        return [panel.with_note(note) for panel in panels] if self._products else panels

    def tiles(self, feature: int) -> tuple[Tile, ...]:
        """Return the tiles of all factors."""
        return tuple(chain.from_iterable(self._base.tiles(int(j)) for j in self._factors[feature]))


pictures = MonomialPictures
