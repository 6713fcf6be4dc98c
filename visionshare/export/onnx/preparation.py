"""Preparation inside an ONNX model: from a picture of any size to the raster, in whole numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from visionshare.classifier import CompactClassifier
from visionshare.codegen.onnx_graph import Graph
from visionshare.datasets.whole_preparation import THRESHOLD_BITS, WholeSteps
from visionshare.errors import InputError
from visionshare.export.onnx.integers import Integers

__all__ = ["IMAGE", "PICTURE", "add_preparation", "check_prepares"]

#: Names of the input of a model that prepares, and of the image that it becomes.
PICTURE, IMAGE = "picture", "image"
# Places between two pixels when a picture grows.
_PLACES = 256
# Shares of red, green and blue in gray, of 2^16: those of pictures.
_GRAY = (19595, 38470, 7471)


class _Part(NamedTuple):
    """First row, row after the last, and the same of columns."""

    top: Integers
    bottom: Integers
    left: Integers
    right: Integers


class _Size(NamedTuple):
    """Height and width."""

    height: Integers
    width: Integers


def check_prepares(classifier: CompactClassifier, pixel: str) -> None:
    """See that a classifier's preparation can be in its model."""
    if classifier.picture_size is None:
        given = f"images of shape {classifier.image_shape}"
        raise InputError("classifier", given, "a classifier of pictures, with a preparation")
    if pixel != "uint8":
        raise InputError("pixel", pixel, "'uint8' with a preparation")
    if classifier.preprocessing.arithmetic != "whole":
        accepted = "'whole', learned with preprocessing.arithmetic = \"whole\""
        raise InputError("preprocessing.arithmetic", classifier.preprocessing.arithmetic, accepted)


def add_preparation(graph: Graph, classifier: CompactClassifier) -> str:
    """Add the steps of a classifier."""
    # Return the name of the images (1, *image_shape), of bytes. They are those of
    # :func:`visionshare.datasets.whole_preparation.prepared`, to the bit.
    shape = classifier.image_shape
    height, width = shape[:2]
    steps = classifier.preprocessing.whole_steps((height, width))
    picture = Integers(graph, PICTURE).as_type("INT64")
    if steps.polarity != "as_is":
        values, part = _values_and_part(picture, classifier.picture_mode, steps)
        picture = values.at(picture)
        if part is not None:
            picture = _cut(picture, part)
    more = (1,) if classifier.picture_mode == "color" else ()
    raster = _fitted(picture, (height, width), steps, more)
    image = raster.shaped(1, *shape).as_type("UINT8").name
    return graph.node("Identity", image, name=IMAGE)


def _gray(picture: Integers, mode: str) -> Integers:
    if mode == "gray":
        return picture
    shares = Integers.constant(picture.graph, np.array(_GRAY))
    return ((picture * shares).total(2) + 2**15) // 2**16


def _values_and_part(
    picture: Integers, mode: str, steps: WholeSteps
) -> tuple[Integers, _Part | None]:
    """Return what becomes of each value from 0 to 255; and the part that is kept, None if all."""
    every = Integers.constant(picture.graph, np.arange(256))

    def gray() -> Integers:
        return _gray(picture, mode)

    def paper() -> Integers:
        return _twice_paper(gray())

    def low() -> Integers:
        return gray().of("ReduceMin", keepdims=0)

    def high() -> Integers:
        return gray().of("ReduceMax", keepdims=0)

    def turned(light: Callable[[], Integers], dark: Callable[[], Integers]) -> Integers:
        """Return what holds of light ink, or of dark ink; only what is used is computed."""
        if steps.polarity != "automatic":
            return (dark if steps.polarity == "dark_on_light" else light)()
        is_dark = high() * 2 - paper() < paper() - low() * 2
        return is_dark.choose(dark(), light())

    values = turned(lambda: every, lambda: 255 - every)
    if not (steps.contrast or steps.crop):
        return values, None
    background = turned(paper, lambda: 510 - paper())
    lightest = turned(high, lambda: 255 - low())
    span = lightest * 2 - background
    some = span > 0
    span = some.choose(span, 1)
    above, part = values * 2 - background, None
    if steps.crop:
        ink = (above * 2**THRESHOLD_BITS > span * steps.threshold).of(
            "Or", values.same_as(lightest)
        )
        # Where there is nothing but paper, all is kept.
        part = _extent(ink.of("Or", some.of("Not")).as_type("INT32").at(gray()))
    if steps.contrast:
        stretched = ((above * (2 * 255) + span) // (span * 2)).within(0, 255)
        values = some.choose(stretched, 0)
    return values, part


def _twice_paper(gray: Integers) -> Integers:
    """Return twice the median of the border; corners count once."""

    def inner(line: Integers) -> Integers:
        ends = (Integers.constant(gray.graph, np.array([end])) for end in (1, -1))
        return line.of("Slice", *ends)

    sides = [gray.at(0), gray.at(-1), *(inner(gray.at(x, axis=1)) for x in (0, -1))]
    border = sides[0].of("Concat", *sides[1:], axis=0)
    n, graph = border.side(0), gray.graph
    ones = Integers.constant(graph, 1).of("Expand", border.of("Shape"))
    counts = Integers.constant(graph, np.zeros(256, np.int64))
    up_to = counts.of("ScatterElements", border, ones, reduction="add").of("CumSum", 0)
    # So many values are below the one at a place of the sorted border.
    middle = ((up_to <= place).as_type("INT64").total() for place in ((n - 1) // 2, n // 2))
    return next(middle) + next(middle)


def _extent(marked: Integers) -> _Part:
    """Return the smallest part with all that is marked, of int32."""
    ends = []
    for axis in (1, 0):
        along = marked.constant(marked.graph, np.array([axis]))
        line = marked.of("ReduceMax", along, keepdims=0)
        ends.append(line.of("ArgMax", axis=0, keepdims=0))
        ends.append(line.of("ArgMax", axis=0, keepdims=0, select_last_index=1) + 1)
    return _Part(*ends)


def _cut(picture: Integers, part: _Part) -> Integers:
    begins, ends = (
        one.shaped(1).of("Concat", other.shaped(1), axis=0)
        for one, other in ((part.top, part.left), (part.bottom, part.right))
    )
    return picture.of("Slice", begins, ends)


def _fitted(
    part: Integers, size: tuple[int, int], steps: WholeSteps, more: tuple[int, ...]
) -> Integers:
    """Return the raster; ``more`` is (1,) where pixels have channels."""
    graph = part.graph
    room = _Size(*(Integers.constant(graph, side) for side in size))
    box, smooth = room, None
    if steps.fit != "resize":
        height, width = part.side(0), part.side(1)
        rows, cols = (side - 2 * steps.margin for side in size)
        # The side that is short of room says how much larger all becomes.
        by_rows = width * rows <= height * cols
        to, of = by_rows.choose(rows, cols), by_rows.choose(height, width)
        smooth = to > of
        box = _Size(*(((side * to * 2 + of) // (of * 2)).of("Max", 1) for side in (height, width)))
        if steps.fit == "center":
            # What does not shrink stays: means of single pixels.
            box = _Size(smooth.choose(height, box.height), smooth.choose(width, box.width))
            smooth = None
    raster = _means(part, box, more)
    if smooth is not None:
        raster = smooth.choose(_smooth(part, box, more), raster)
    if steps.fit == "resize":
        return raster
    sides = raster.side(0), raster.side(1)
    if steps.center == "mass":
        places = _by_mass(_gray(raster, "color" if more else "gray"), size)
    else:
        places = [(room - side) // 2 for room, side in zip(size, sides, strict=True)]
    ends = [room - side - at for room, side, at in zip(size, sides, places, strict=True)]
    none = Integers.constant(graph, np.zeros(len(more), np.int64))
    pads = [one.shaped(1) for one in places], [one.shaped(1) for one in ends]
    around = [*pads[0], *[none] * len(more), *pads[1], *[none] * len(more)]
    return raster.of("Pad", around[0].of("Concat", *around[1:], axis=0), 0)


def _means(part: Integers, box: _Size, more: tuple[int, ...]) -> Integers:
    """Return pixels that are means of what they cover, or copies of the nearest."""
    sums, counts = part, []
    for axis, n in enumerate(box):
        begins, ends = _windows(sums.side(axis), n)
        before = np.zeros(2 * (2 + len(more)), np.int64)
        before[axis] = 1
        pads = Integers.constant(part.graph, before)
        totals = sums.of("CumSum", axis).of("Pad", pads, 0)
        sums = totals.at(ends, axis) - totals.at(begins, axis)
        counts.append(ends - begins)
    count = counts[0].shaped(-1, 1, *more) * counts[1].shaped(1, -1, *more)
    return (sums + count // 2) // count


def _windows(side: Integers, n: Integers) -> tuple[Integers, Integers]:
    """Return the first pixel of each of n windows of a side, and the one after its last."""
    numbers, grows = n.up_to(), side < n
    nearest = (numbers * 2 + 1) * side // (n * 2)
    edges = [(place * 2 * side + n) // (n * 2) for place in (numbers, numbers + 1)]
    return grows.choose(nearest, edges[0]), grows.choose(nearest + 1, edges[1])


def _smooth(part: Integers, box: _Size, more: tuple[int, ...]) -> Integers:
    """Return pixels between those of a smaller picture, in proportion to their nearness."""
    rows, cols = (_between(part.side(axis), n) for axis, n in enumerate(box))
    share = cols.share.shaped(1, -1, *more)
    lines = part.at(cols.first, 1) * (_PLACES - share) + part.at(cols.second, 1) * share
    share = rows.share.shaped(-1, 1, *more)
    sums = lines.at(rows.first) * (_PLACES - share) + lines.at(rows.second) * share
    return (sums + _PLACES**2 // 2) // _PLACES**2


class _Between(NamedTuple):
    """The two pixels that a pixel lies between, and the second one's share of 256."""

    first: Integers
    second: Integers
    share: Integers


def _between(side: Integers, n: Integers) -> _Between:
    # Beyond the middles of the outermost pixels there is nothing new.
    place = ((n.up_to() * 2 + 1) * side - n) * (_PLACES // 2) // n
    place = place.within(0, (side - 1) * _PLACES)
    first = place // _PLACES
    return _Between(first, (first + 1).of("Min", side - 1), place % _PLACES)


def _by_mass(gray: Integers, size: tuple[int, int]) -> list[Integers]:
    """Return where a picture must begin for its center of mass to be in the canvas's middle."""
    weights = (gray.total() > 0).choose(gray, 1).of("Expand", gray.of("Shape"))
    total, places = weights.total(), []
    for axis, room in enumerate(size):
        length = gray.side(axis)
        moment = (weights.total(1 - axis) * length.up_to()).total()
        place = (total * room - moment * 2) // (total * 2)
        places.append(place.within(0, room - length))
    return places
