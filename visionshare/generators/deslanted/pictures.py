"""Pictures of features of deslanted images: those of the family inside, of such images."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from visionshare.generators.pictures import Pictures, Plate, Seen, Tile

if TYPE_CHECKING:
    from visionshare.generators.deslanted.family import Deslanted

__all__ = ["pictures"]


def pictures(family: Deslanted, seen: Seen) -> DeslantedPictures:
    """Return the pictures of the family inside."""
    return DeslantedPictures(family, seen)


class DeslantedPictures(Pictures):
    """The pictures of the family inside, which say that images are deslanted."""

    def __init__(self, family: Deslanted, seen: Seen) -> None:
        inputs = family.inner_images(seen.inputs)
        # A shear moves pixels of a row together: what is seen of maps stays about where it was.
        images = inputs if seen.inputs is seen.images else seen.images
        self._part = family.part_.pictures(replace(seen, images=images, inputs=inputs))

    def plates(self, numbers: Sequence[int]) -> list[Plate]:
        """Return the plates of the family inside."""
        return [p.with_note("Images are deslanted first.") for p in self._part.plates(numbers)]

    def tiles(self, feature: int) -> tuple[Tile, ...]:
        """Return what the family inside draws of the feature."""
        return self._part.tiles(feature)
