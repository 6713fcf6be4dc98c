"""Networks as lists of layers: the shapes after them, multiply-accumulates and weights.

Nothing here needs a package that trains or runs networks: PyTorch's network
(:mod:`benchmarks.peers.networks`) and ONNX's (:mod:`benchmarks.onnx_networks`) are made from it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

__all__ = [
    "Layer",
    "Normalization",
    "Shape",
    "branches",
    "convolution",
    "dense",
    "depthwise",
    "fold",
    "macs",
    "maximum",
    "mean",
    "n_weights",
    "residual",
    "shapes",
    "weight_shape",
]

# Channels, rows, columns.
Shape = tuple[int, int, int]


class Layer(NamedTuple):
    """A layer; ``kind`` is a name of this module's functions that make one.

    ``normalized``: batch normalization follows, which is folded into the weights after training.
    ``rectified``: max(0, ·) comes last.
    """

    kind: str
    out: int = 0
    side: int = 1
    stride: int = 1
    padding: int = 0
    normalized: bool = False
    rectified: bool = False


def convolution(
    out: int, side: int, padding: int = 0, stride: int = 1, normalized: bool = False
) -> Layer:
    """Return a convolution with ``out`` kernels, followed by max(0, ·)."""
    return Layer("convolution", out, side, stride, padding, normalized, True)


def depthwise(side: int, padding: int = 0, stride: int = 1, normalized: bool = False) -> Layer:
    """Return a convolution of each channel with a kernel of its own, followed by max(0, ·)."""
    return Layer("depthwise", 0, side, stride, padding, normalized, True)


def maximum(side: int = 2) -> Layer:
    """Return the maxima of squares that do not overlap."""
    return Layer("maximum", side=side, stride=side)


def mean() -> Layer:
    """Return the mean of each channel."""
    return Layer("mean")


def dense(out: int, rectified: bool = False) -> Layer:
    """Return a full layer."""
    return Layer("dense", out, rectified=rectified)


def residual(out: int, stride: int = 1) -> Layer:
    """Return two normalized 3×3 convolutions, added to their input, followed by max(0, ·)."""
    return Layer("residual", out, 3, stride, 1, rectified=True)


def branches(layer: Layer, shape: Shape) -> tuple[tuple[Layer, ...], ...]:
    """Return the layers of both summands of a residual sum; of other layers nothing.

    The input passes a 1×1 convolution where the sum has another shape.
    """
    if layer.kind != "residual":
        return ()
    first = convolution(layer.out, 3, 1, layer.stride, normalized=True)
    second = convolution(layer.out, 3, 1, normalized=True)._replace(rectified=False)
    around = convolution(layer.out, 1, 0, layer.stride)._replace(rectified=False)
    stays = shape_after(layer, shape) == shape
    return (first, second), () if stays else (around,)


def shape_after(layer: Layer, shape: Shape) -> Shape:
    """Return the shape that a layer makes of a shape."""
    channels, *sides = shape
    if layer.kind == "dense":
        return layer.out, 1, 1
    if layer.kind == "mean":
        return channels, 1, 1
    rows, columns = ((n + 2 * layer.padding - layer.side) // layer.stride + 1 for n in sides)
    if min(rows, columns) < 1:
        raise ValueError(f"{layer} leaves nothing of {shape}")
    return layer.out or channels, rows, columns


def shapes(layers: Sequence[Layer], shape: Shape) -> list[Shape]:
    """Return the shape before each layer, and after the last."""
    found = [shape]
    for layer in layers:
        found.append(shape_after(layer, found[-1]))
    return found


def weight_shape(layer: Layer, shape: Shape) -> tuple[int, ...]:
    """Return the shape of a layer's weights, outputs first; () where it has none."""
    kinds = {
        "convolution": (layer.out, shape[0], layer.side, layer.side),
        "depthwise": (shape[0], 1, layer.side, layer.side),
        "dense": (layer.out, math.prod(shape)),
    }
    return kinds.get(layer.kind, ())


def macs(layers: Sequence[Layer], shape: Shape) -> int:
    """Return the multiply-accumulates of an image: each weight once at each position.

    Those on padding count; additions of biases, maxima and means do not.
    """
    count, found = 0, shapes(layers, shape)
    for layer, before, (_, rows, columns) in zip(layers, found, found[1:], strict=False):
        count += sum(macs(part, before) for part in branches(layer, before))
        if weights := weight_shape(layer, before):
            count += rows * columns * math.prod(weights)
    return count


def n_weights(layers: Sequence[Layer], shape: Shape) -> int:
    """Return how many weights and biases there are after normalizations are folded."""
    pairs = list(zip(layers, shapes(layers, shape), strict=False))
    found = [weight_shape(layer, before) for layer, before in pairs]
    inside = [n_weights(p, before) for layer, before in pairs for p in branches(layer, before)]
    return sum(inside) + sum(math.prod(weights) + weights[0] for weights in found if weights)


class Normalization(NamedTuple):
    """What batch normalization does to each channel, in use: γ (x − mean) / √(variance + ε) + β."""

    gamma: np.ndarray
    beta: np.ndarray
    mean: np.ndarray
    variance: np.ndarray
    epsilon: float


def fold(weight: np.ndarray, normalization: Normalization) -> tuple[np.ndarray, np.ndarray]:
    """Return weights and bias that do what weights without bias and a normalization do."""
    gamma, beta, mean, variance, epsilon = normalization
    factor = gamma / np.sqrt(variance.astype(np.float64) + epsilon)
    folded = weight * factor.reshape(-1, *[1] * (weight.ndim - 1))
    return folded.astype(np.float32), (beta - mean * factor).astype(np.float32)
