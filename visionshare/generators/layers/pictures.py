"""Pictures of networks: templates of pixels, what deeper templates respond to, and units."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from visionshare.generators.largest_responses import (
    LargestResponses,
    response_caption,
    response_rows,
    without_silent,
)
from visionshare.generators.layers.forward import Forward
from visionshare.generators.layers.integer_layer import IntegerLayer
from visionshare.generators.layers.network import Network
from visionshare.generators.layers.templates.layer import TemplateLayer
from visionshare.generators.layers.units.layer import UnitLayer
from visionshare.generators.pictures import (
    SHOWN,
    Panel,
    Pictures,
    Row,
    Sample,
    Stack,
    Tile,
    template_tile,
)

# Inputs of a unit that are shown, images in a mean, and units that are shown.
_INPUTS = 4
_IN_MEAN = 25
_UNITS = 20


def pictures(network: Network, sample: Sample) -> Pictures:
    """Return pictures of the layers, the first one's first."""
    if any(isinstance(layer, IntegerLayer) for layer in network.layers_):
        return Pictures()
    return _pictures(list(network.layers_), network.places_, sample)


def _pictures(layers: list[Any], places: np.ndarray, sample: Sample) -> Pictures:
    """Return the pictures of layers, whose last one has features at some places."""
    first = layers[0]
    if first.kind == "deslant":
        return _Noted(layers, places, _after(first, sample), "Images are deslanted first.")
    if first.kind == "channels":
        return _Noted(layers, places, _after(first, sample), "Channels of the images are seen.")
    if first.kind == "family":
        inner = first.family.pictures(sample)
        return _OfUnits(layers, places, sample, inner) if len(layers) > 1 else inner
    if not isinstance(first, TemplateLayer):
        return Pictures()
    last_templates = max(k for k, layer in enumerate(layers) if isinstance(layer, TemplateLayer))
    if any(layer.kind == "family" for layer in layers) or last_templates > 0:
        return _Maps(layers, places, sample)
    every = np.arange(int(np.prod(first.out_shape)))
    drawn = _Chosen
    rest = layers[1:]
    if rest and rest[0].kind == "means":
        every = rest.pop(0).sources
        drawn = _OfMeans
    if rest:
        return _OfUnits(layers, places, sample, drawn(first, every, sample))
    return drawn(first, every[places], sample)


def _after(layer: Any, sample: Sample) -> Sample:
    """Return what is seen after a layer that has no templates."""
    raster = replace(sample, images=sample.inputs).raster
    values = Forward([layer]).outputs(raster, 1)
    inputs = values.astype(np.uint8) if layer.keeps_bytes and raster.dtype == np.uint8 else values
    if layer.kind == "channels":
        beside = int(layer.formulas.has_gradients)
        pool = layer.pool
        rows, cols = (
            replace(
                field,
                stride=field.stride * pool,
                start=field.start - beside * field.stride,
                side=field.side + field.stride * (pool - 1 + 2 * beside),
            )
            for field in (sample.rows, sample.cols)
        )
        return replace(sample, inputs=inputs, rows=rows, cols=cols)
    # A shear moves pixels of a row together: what is seen of maps stays about where it was.
    images = (
        inputs.reshape(np.shape(sample.images)) if sample.inputs is sample.images else sample.images
    )
    shown = images if sample.inputs is sample.images else inputs
    return replace(sample, images=images, inputs=shown)


class _Noted(Pictures):
    """The pictures of the layers after one without templates, and a note."""

    def __init__(self, layers: list[Any], places: np.ndarray, sample: Sample, note: str) -> None:
        self._inner = _pictures(layers[1:], places, sample)
        self._note = note

    def panels(self, numbers: Sequence[int]) -> list[Panel]:
        return [panel.with_note(self._note) for panel in self._inner.panels(numbers)]

    def tiles(self, feature: int) -> tuple[Tile, ...]:
        return self._inner.tiles(feature)


class TemplatePictures(Pictures):
    """What is drawn of a layer's templates."""

    def __init__(self, layer: TemplateLayer, sample: Sample) -> None:
        self._layer = layer
        self._sample = sample
        raster = replace(sample, images=sample.inputs).raster
        self._maxima, places = Forward([layer]).with_places(raster, 1)
        self._found = self._largest_responses(places)
        self._responses = sample.through(layer.size, layer.pads)

    def _largest_responses(self, places: np.ndarray) -> LargestResponses:
        """Return the strongest responses, and the rows and columns of their positions."""
        found = LargestResponses.of(self._maxima)
        images, templates = np.indices(found.values.shape)
        # Where a maximum is 0 there is no place.
        begin = np.maximum(places[images, found.rows, found.cols, templates], 0).astype(np.int64)
        rows, columns = self._layer.place_starts(begin.ravel())
        return LargestResponses(
            found.values, rows.reshape(begin.shape), columns.reshape(begin.shape)
        )

    def _rows_of(self, template: int) -> tuple[Row, ...]:
        if self._sample.draws_templates:
            return (Row((template_tile(self._layer.templates[template]),)),)
        return response_rows(self._responses, self._found, template)

    @property
    def _drawn(self) -> str:
        if not self._sample.draws_templates:
            return response_caption(self._responses)
        colors = self._layer.templates.shape[3] == 3
        return "Gray is zero." if colors else "Red is positive, blue negative."

    @property
    def _heading(self) -> str:
        if self._sample.layer == 1:
            return "The first features"
        return f"Templates of layer {self._sample.layer}: the first features"

    @property
    def _order(self) -> str:
        order = "In the order in which they were chosen, under the numbers of their features."
        if not self._sample.draws_templates:
            return f"{order} {self._drawn}"
        return f"{order} Templates: {self._drawn[0].lower()}{self._drawn[1:]}"


class _Maps(TemplatePictures):
    """Pictures of a layer of templates that others follow."""

    def __init__(self, layers: list[Any], places: np.ndarray, sample: Sample) -> None:
        super().__init__(layers[0], sample)
        pool = int(np.sqrt(self._layer.cell_areas.max()))
        after = sample.through(self._layer.templates.shape[1], self._layer.pads, pool)
        later = replace(after, inputs=self._maxima, layer=sample.layer + 1)
        self._inner = _pictures(layers[1:], places, later)

    def panels(self, numbers: Sequence[int]) -> list[Panel]:
        shown = range(min(SHOWN, len(self._layer.templates)))
        stacks = tuple(Stack(str(m + 1), self._rows_of(m)) for m in shown)
        heading = f"Templates of layer {self._sample.layer}: maps"
        panel = without_silent(Panel(heading, self._caption, stacks))
        return [panel, *self._inner.panels(numbers)]

    def tiles(self, feature: int) -> tuple[Tile, ...]:
        return self._inner.tiles(feature)

    @property
    def _caption(self) -> str:
        if not self._sample.draws_templates:
            return self._drawn
        area = int(self._layer.cell_areas.max())
        kept = f"the maximum of each cell of {area} positions is" if area > 1 else "they are"
        return f"{self._drawn} Of the responses that are above 0, {kept} seen by the next layer."


class _Chosen(TemplatePictures):
    """Pictures of a last layer of templates: its features by template."""

    def __init__(self, layer: TemplateLayer, places: np.ndarray, sample: Sample) -> None:
        super().__init__(layer, sample)
        self._places = places
        self._template_of = places % len(layer.templates)

    def panels(self, numbers: Sequence[int]) -> list[Panel]:
        templates = list(dict.fromkeys(self._template_of.tolist()))[:SHOWN]
        stacks = tuple(self._of_template(t, numbers) for t in templates)
        return [without_silent(Panel(self._heading, self._caption, stacks))]

    def tiles(self, feature: int) -> tuple[Tile, ...]:
        mask = self._layer.describe(int(self._places[feature]))["mask"]
        return (*self._rows_of(int(self._template_of[feature]))[0].tiles, Tile(mask))

    def _of_template(self, template: int, numbers: Sequence[int]) -> Stack:
        of_it = sorted(numbers[int(j)] for j in np.flatnonzero(self._template_of == template))
        first = of_it[0]
        last = of_it[-1]
        if 1 < len(of_it) == last - first + 1:
            return Stack(f"{first}–{last}", self._rows_of(template))
        few = ", ".join(map(str, of_it[:3])) + (" …" if len(of_it) > 3 else "")
        return Stack(few, self._rows_of(template))

    @property
    def _caption(self) -> str:
        rows, columns, _ = self._layer.out_shape
        return (
            f"{self._order} A feature is the maximum of the response in one of {rows}×{columns} "
            "cells."
        )


class _OfMeans(_Chosen):
    """Pictures of templates whose maxima have means."""

    def tiles(self, feature: int) -> tuple[Tile, ...]:
        return tuple(self._rows_of(int(self._template_of[feature]))[0].tiles)

    @property
    def _caption(self) -> str:
        return f"{self._order} A feature is the mean of the responses above 0."


class _OfUnits(Pictures):
    """Pictures of units: the images that excite them, and their strongest inputs."""

    def __init__(
        self, layers: list[Any], places: np.ndarray, sample: Sample, inner: Pictures
    ) -> None:
        self._sample = sample
        self._inner = inner
        self._places = places
        self._units: UnitLayer = layers[-1]
        raster = replace(sample, images=sample.inputs).raster
        features = Forward(layers[:-1]).outputs(raster, 1).reshape(len(raster), -1)
        self._deviations = features.std(axis=0, dtype=np.float64)
        self._values = self._units.outputs(features)[:, places]

    def panels(self, numbers: Sequence[int]) -> list[Panel]:
        inputs = range(1, self._units.directions.shape[1] + 1)
        shown = range(min(_UNITS, len(self._places)))
        stacks = tuple(Stack(str(numbers[j]), self._rows(j)) for j in shown)
        return [*self._inner.panels(inputs), Panel("The first units", self._caption, stacks)]

    def tiles(self, feature: int) -> tuple[Tile, ...]:
        values = self._values[:, feature]
        best = np.argsort(-values, kind="stable")[:_IN_MEAN]
        best = best[values[best] > 0]
        return (self._sample.mean(best),) if len(best) else ()

    def _rows(self, unit: int) -> tuple[Row, ...]:
        strengths = self._units.directions[self._places[unit]] * self._deviations
        strongest = np.argsort(-np.abs(strengths), kind="stable")[:_INPUTS]
        largest = float(np.abs(strengths).max()) or 1.0
        inputs = []
        for i in strongest[strengths[strongest] != 0]:
            label = f"{i + 1}: {strengths[i] / largest:+.2f}".replace("-", "−")
            inputs.append(Row(self._inner.tiles(int(i)), label))
        return (Row(self.tiles(unit)), *inputs)

    @property
    def _caption(self) -> str:
        n = len(self._sample.images)
        return (
            f"Above: the mean of the {min(_IN_MEAN, n)} of {n} {self._sample.called} that excite a "
            f"unit most. Below: its {_INPUTS} strongest inputs, features of the layer before, by "
            "number, with the weight times the standard deviation of the feature, relative to the "
            "largest."
        )
