"""Pictures of units: the images that excite them, and their strongest inputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from visionshare.generators.pictures import Pictures, Plate, Row, Seen, Stack, Tile

if TYPE_CHECKING:
    from visionshare.generators.units.family import Units

__all__ = ["pictures"]

# Inputs of a unit that are shown, and images in a mean.
_INPUTS, _IN_MEAN = 4, 25
# Units that are shown.
_SHOWN = 20


def pictures(family: Units, seen: Seen) -> UnitPictures:
    """Return pictures of the units and of the family inside."""
    return UnitPictures(family, seen)


class UnitPictures(Pictures):
    """Pictures of units."""

    def __init__(self, family: Units, seen: Seen) -> None:
        self._family, self._seen = family, seen
        self._part = family.part_.pictures(seen)
        features = family.part_.transform(seen.inputs)
        self._deviations = features.std(axis=0, dtype=np.float64)
        self._values = family.transform(seen.inputs)

    def plates(self, numbers: Sequence[int]) -> list[Plate]:
        """Return the plates of the family inside, then that of the units."""
        inputs = range(1, self._family.part_.n_features_ + 1)
        shown = range(min(_SHOWN, self._family.n_features_))
        stacks = tuple(Stack(str(numbers[j]), self._rows(j)) for j in shown)
        plate = Plate("The first units", self._caption, stacks)
        return [*self._part.plates(inputs), plate]

    def tiles(self, feature: int) -> tuple[Tile, ...]:
        """Return the mean of the images that excite a unit most."""
        values = self._values[:, feature]
        best = np.argsort(-values, kind="stable")[:_IN_MEAN]
        best = best[values[best] > 0]
        return (self._seen.mean(best),) if len(best) else ()

    def _rows(self, unit: int) -> tuple[Row, ...]:
        strengths = self._family.directions_[unit] * self._deviations
        strongest = np.argsort(-np.abs(strengths), kind="stable")[:_INPUTS]
        largest = float(np.abs(strengths).max()) or 1.0
        inputs = [
            Row(
                self._part.tiles(int(i)),
                f"{i + 1}: {strengths[i] / largest:+.2f}".replace("-", "−"),
            )
            for i in strongest
            if strengths[i] != 0
        ]
        return (Row(self.tiles(unit)), *inputs)

    @property
    def _caption(self) -> str:
        n = len(self._seen.images)
        return (
            f"Of each unit, above, the mean of the {min(_IN_MEAN, n)} of {n} {self._seen.called} "
            f"that excite it most; below, its {_INPUTS} strongest inputs, features of the layer "
            "before: the number, and the weight times the standard deviation of the feature, "
            "relative to the unit's largest."
        )
