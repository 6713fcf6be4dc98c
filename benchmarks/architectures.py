"""Kinds of small networks, each of any width, and the width that a budget allows."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from benchmarks.layers import (
    Layer,
    Shape,
    convolution,
    dense,
    depthwise,
    macs,
    maximum,
    mean,
    residual,
)

__all__ = ["KINDS", "LENET_5", "Kind", "Layers", "Width", "lenet", "width_within"]

Layers = tuple[Layer, ...]


class Width(NamedTuple):
    """The maps of the first layer, and what the standard numbers of the others are multiplied by.

    The first maps are the largest and dearest, so that their number says the rest only roughly.
    """

    first: int
    others: float

    def times(self, *counts: int) -> list[int]:
        """Return the numbers of maps of the layers after the first."""
        return [max(1, round(count * self.others)) for count in counts]


LENET_5 = Width(6, 1.0)
# Widths are multiples of this.
STEP = 1 / 64
# LeNet-5 stands for a budget that it is so near to.
NEAR = 0.05


def lenet(width: Width, shape: Shape, classes: int) -> Layers:
    """Return LeNet-5, or one with other numbers of maps and units.

    References
    ----------
    Y. LeCun, L. Bottou, Y. Bengio, P. Haffner, "Gradient-based learning applied to document
    recognition", Proceedings of the IEEE 86, 1998; with the maxima and the padding of today.
    """
    maps, *units = width.times(16, 120, 84)
    # The first maps are of 28 × 28, whether images are or are of 32 × 32.
    return (
        convolution(width.first, 5, padding=max(0, 32 - shape[1]) // 2),
        maximum(),
        convolution(maps, 5),
        maximum(),
        dense(units[0], rectified=True),
        dense(units[1], rectified=True),
        dense(classes),
    )


def normalized(width: Width, shape: Shape, classes: int) -> Layers:
    """Return three batch-normalized 3×3 convolutions, each with maxima of 2×2, and a full layer."""
    layers: list[Layer] = []
    for count in (width.first, *width.times(2, 3)):
        layers += [convolution(count, 3, 1, normalized=True), maximum()]
    return (*layers, dense(classes))


def separable(width: Width, shape: Shape, classes: int) -> Layers:
    """Return a convolution, then pairs of depthwise and 1×1 convolutions, means and a full layer.

    References
    ----------
    A. Howard et al., "MobileNets: efficient convolutional neural networks for mobile vision
    applications", arXiv:1704.04861, 2017; with fewer pairs, as images are small.
    """
    layers = [convolution(width.first, 3, 1, 2, normalized=True)]
    for count, stride in zip(width.times(2, 4, 4), (1, 2, 1), strict=True):
        layers += [
            depthwise(3, 1, stride, normalized=True),
            convolution(count, 1, normalized=True),
        ]
    return (*layers, mean(), dense(classes))


def resnet8(width: Width, shape: Shape, classes: int) -> Layers:
    """Return ResNet8 of MLPerf Tiny, or one with other numbers of maps.

    References
    ----------
    C. Banbury et al., "MLPerf Tiny benchmark", NeurIPS 2021, datasets and benchmarks.
    """
    maps, more = width.times(32, 64)
    return (
        convolution(width.first, 3, 1, normalized=True),
        residual(width.first),
        residual(maps, 2),
        residual(more, 2),
        mean(),
        dense(classes),
    )


Make = Callable[[Width, Shape, int], Layers]


class Kind(NamedTuple):
    """What makes its networks, how it is called, its first maps at width 1, whether others are."""

    make: Make
    name: str
    first: int
    of_any_width: bool = True


KINDS: dict[str, Kind] = {
    "lenet": Kind(lenet, "LeNet-5", 6),
    "normalized": Kind(normalized, "batch-normalized CNN", 1),
    "separable": Kind(separable, "separable CNN", 1),
    "resnet8": Kind(resnet8, "ResNet8", 16, of_any_width=False),
}


def width_within(kind: Kind, budget: float, shape: Shape, classes: int) -> Width:
    """Return the width with the most multiply-accumulates within a budget.

    That of LeNet-5 itself where it needs nearly as many.
    """

    def needed(width: Width) -> int:
        return macs(kind.make(width, shape, classes), shape)

    if kind.make is lenet and abs(needed(LENET_5) - budget) <= NEAR * budget:
        return LENET_5
    best, step = (needed(Width(1, STEP)), Width(1, STEP)), 0
    while True:
        step += 1
        near = int(kind.first * step * STEP)
        widths = [Width(first, step * STEP) for first in (near, near + 1) if first]
        within = [(needed(width), width) for width in widths if needed(width) <= budget]
        if not within:
            return best[1]
        best = max(best, *within)
