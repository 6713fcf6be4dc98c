"""Pictures of patch features: the template and its mask, or what a template of maps responds to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from visionshare.generators.inputs import raster_shape
from visionshare.generators.largest_responses import without_silent
from visionshare.generators.layers.pictures import TemplatePictures
from visionshare.generators.layers.templates.layer import TemplateLayer
from visionshare.generators.pictures import SHOWN, Panel, Row, Sample, Stack, Tile

if TYPE_CHECKING:
    from visionshare.generators.patches.family import PatchTemplates


class PatchPictures(TemplatePictures):
    """Pictures of templates, and of the masks over the positions where maxima are taken."""

    def __init__(self, family: PatchTemplates, sample: Sample) -> None:
        # All positions are one cell.
        cells = [np.zeros(positions, np.int64) for positions in family.positions_]
        biases = np.zeros(len(family.templates_), np.float32)
        shape = raster_shape(family.image_shape_)
        super().__init__(
            TemplateLayer(shape, family.templates_, biases, family.pads_, *cells), sample
        )
        self._family = family

    def panels(self, numbers: Sequence[int]) -> list[Panel]:
        """Return one panel, of the first features."""
        stacks = []
        for feature in range(min(SHOWN, self._family.n_features_)):
            rows = self._rows_of(int(self._family.layout_[feature, 0]))
            mask = Row((self._mask(feature),))
            stacks.append(Stack(str(numbers[feature]), (*rows, mask)))
        region = "Last, the mask: where the maximum of its weighted response is taken."
        return [without_silent(Panel(self._heading, f"{self._order} {region}", tuple(stacks)))]

    def tiles(self, feature: int) -> tuple[Tile, ...]:
        """Return the template, or the mean of what it responds to, beside the mask."""
        rows = self._rows_of(int(self._family.layout_[feature, 0]))
        return (*rows[0].tiles, self._mask(feature))

    def _mask(self, feature: int) -> Tile:
        return Tile(np.clip(self._family.describe(feature)["mask"], 0, 1))


pictures = PatchPictures
