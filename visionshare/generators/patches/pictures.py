"""Pictures of patch features: the template and its mask, or what a template of maps responds to."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from visionshare.generators.base import check_images
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
    strongest_responses,
    strongest_rows,
    without_silent,
)

if TYPE_CHECKING:
    from visionshare.generators.patches.family import PatchTemplates

__all__ = ["pictures"]


def pictures(family: PatchTemplates, seen: Seen) -> PatchPictures:
    """Return pictures of the features."""
    return PatchPictures(family, seen)


class PatchPictures(Pictures):
    """Pictures of templates, and of the masks over the positions where maxima are taken."""

    def __init__(self, family: PatchTemplates, seen: Seen) -> None:
        self._family = family
        self._seen = seen

    def plates(self, numbers: Sequence[int]) -> list[Plate]:
        """Return one plate, of the first features."""
        features = range(min(SHOWN, self._family.n_features_))
        stacks = tuple(self._of_feature(j, numbers[j]) for j in features)
        return [without_silent(Plate(self._heading, self._caption, stacks))]

    def tiles(self, feature: int) -> tuple[Tile, ...]:
        """Return the template, or the mean of what it responds to, beside the mask."""
        return (*self._rows(int(self._template_of[feature]))[0].tiles, self._mask(feature))

    @property
    def _template_of(self) -> np.ndarray:
        layout: np.ndarray = self._family.layout_[:, 0]
        return layout

    def _mask(self, feature: int) -> Tile:
        mask = self._family.describe(feature)["mask"]
        return Tile(np.clip(mask, 0, 1))

    def _of_feature(self, feature: int, number: int) -> Stack:
        rows = self._rows(int(self._template_of[feature]))
        return Stack(str(number), (*rows, Row((self._mask(feature),))))

    @property
    def _responses(self) -> Seen:
        return self._seen.through(self._family.patch_size, self._family.pads_)

    @cached_property
    def _found(self) -> Strongest:
        inputs = check_images(self._seen.inputs)
        return strongest_responses(inputs, self._family.templates_, self._family.pads_)

    def _rows(self, template: int) -> tuple[Row, ...]:
        if self._seen.draws_templates:
            return (Row((template_tile(self._family.templates_[template]),)),)
        return strongest_rows(self._responses, self._found, template)

    @property
    def _heading(self) -> str:
        if self._seen.layer == 1:
            return "The first features"
        return f"Templates of layer {self._seen.layer}: the first features"

    @property
    def _caption(self) -> str:
        order = "In the order in which they were chosen, under the numbers of their features."
        if not self._seen.draws_templates:
            drawn = strongest_caption(self._responses)
        elif self._family.templates_.shape[3] == 3:
            drawn = "Templates: gray is zero."
        else:
            drawn = "Templates: red is positive, blue negative."
        region = "Last, the mask: where the maximum of its weighted response is taken."
        return f"{order} {drawn} {region}"
