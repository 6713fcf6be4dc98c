"""Pictures of maps: templates of pixels, or what templates of maps respond to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from visionshare.generators.pictures import (
    SHOWN,
    Pictures,
    Plate,
    Row,
    Seen,
    Stack,
    Tile,
    template_tile,
)
from visionshare.generators.strongest import (
    Strongest,
    strongest_caption,
    strongest_rows,
    without_silent,
)

if TYPE_CHECKING:
    from visionshare.generators.maps.family import LearnedMaps

__all__ = ["pictures"]


def pictures(family: LearnedMaps, seen: Seen) -> MapPictures:
    """Return pictures of the maps and of the family inside."""
    return MapPictures(family, seen)


class MapPictures(Pictures):
    """Pictures of maps; a feature is drawn as the family inside draws it."""

    def __init__(self, family: LearnedMaps, seen: Seen) -> None:
        self._family, self._seen = family, seen
        maps, places = family.maps_and_places(seen.inputs)
        self._found = _strongest(maps, places, family.pool)
        after = seen.through(family.size, (family.padding,) * 2, family.pool)
        self._part = family.part_.pictures(replace(after, inputs=maps, layer=seen.layer + 1))

    def plates(self, numbers: Sequence[int]) -> list[Plate]:
        """Return the plate of the templates, then those of the family inside."""
        shown = range(min(SHOWN, self._family.n_maps))
        stacks = tuple(Stack(str(m + 1), self._rows(m)) for m in shown)
        heading = f"Templates of layer {self._seen.layer}: maps"
        plate = without_silent(Plate(heading, self._caption(), stacks))
        return [plate, *self._part.plates(numbers)]

    def tiles(self, feature: int) -> tuple[Tile, ...]:
        """Return what the family inside draws of the feature."""
        return self._part.tiles(feature)

    @property
    def _responses(self) -> Seen:
        return self._seen.through(self._family.size, (self._family.padding,) * 2)

    def _rows(self, m: int) -> tuple[Row, ...]:
        if self._seen.draws_templates:
            return (Row((template_tile(self._family.templates_[m]),)),)
        return strongest_rows(self._responses, self._found, m)

    def _caption(self) -> str:
        pool, colors = self._family.pool, self._family.templates_.shape[3] == 3
        if not self._seen.draws_templates:
            return strongest_caption(self._responses)
        drawn = "Gray is zero." if colors else "Red is positive, blue negative."
        kept = f"the maximum of each cell of {pool}×{pool} positions is" if pool > 1 else "they are"
        return f"{drawn} Of the responses that are above 0, {kept} seen by the next layer."


def _strongest(maps: np.ndarray, places: np.ndarray, pool: int) -> Strongest:
    """Return the strongest responses, of maps and the places of maxima in their cells."""
    found = Strongest.of(maps)
    images, templates = np.indices(found.values.shape)
    # Where a map is 0 there is no place.
    place = np.maximum(places[images, found.rows, found.cols, templates], 0)
    rows, cols = np.divmod(place.astype(np.int64), pool)
    return Strongest(found.values, found.rows * pool + rows, found.cols * pool + cols)
