"""Layers in one compiled call: a plan is made once, and images go through all of it.

What takes time for one picture is Python between layers. A chain holds all layers as numbers, and
one compiled function computes them one after the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from visionshare.generators.borrowed import borrowed
from visionshare.generators.layers.channels.kernels import channels_forward
from visionshare.generators.layers.depthwise.kernels import depthwise_forward
from visionshare.generators.layers.deslant.kernels import deslant_forward
from visionshare.generators.layers.templates.intrinsics import LANES
from visionshare.generators.layers.templates.kernels import templates_forward
from visionshare.generators.layers.templates.responses import aligned
from visionshare.generators.layers.units.kernels import units_forward

__all__ = ["Chain", "chain_of", "forward_block", "is_compiled"]

_DESLANT, _CHANNELS, _TEMPLATES, _UNITS, _DEPTHWISE = range(5)
_NUMBERS = {
    "deslant": _DESLANT,
    "channels": _CHANNELS,
    "templates": _TEMPLATES,
    "units": _UNITS,
    "depthwise": _DEPTHWISE,
}
# Where each number of a step is in its row.
_KIND, _INTS, _FLOATS, _WORK, _SIZE = range(5)


class Chain(NamedTuple):
    """Layers as numbers."""

    steps: np.ndarray
    ints: np.ndarray
    floats: np.ndarray
    work: int


def is_compiled(layer: Any) -> bool:
    """Return whether a layer can be part of a chain."""
    return layer.kind in _NUMBERS


def chain_of(layers: Sequence[Any]) -> Chain:
    """Return a chain of layers, each of a kind that is compiled."""
    steps: list[list[int]] = []
    ints: list[np.ndarray] = [np.empty(0, np.int64)]
    n_ints = n_floats = n_work = 0
    codes = [layer.code for layer in layers]
    starts = []
    for layer, code in zip(layers, codes, strict=True):
        size = int(np.prod(layer.out_shape))
        steps.append([_NUMBERS[layer.kind], n_ints, n_floats, n_work, size])
        starts.append(n_floats)
        ints.append(code.ints)
        n_ints += len(code.ints)
        # Each layer begins with a line of the cache.
        n_floats += _whole_vectors(len(code.floats))
        n_work += _whole_vectors(code.work)
    floats = aligned(n_floats)
    for start, code in zip(starts, codes, strict=True):
        floats[start : start + len(code.floats)] = code.floats
    table = np.array(steps, np.int64).reshape(-1, 5)
    return Chain(table, np.concatenate(ints), floats, n_work)


def _whole_vectors(n: int) -> int:
    return -(-n // LANES) * LANES


@njit(cache=True, nogil=True)
def forward_block(
    images: np.ndarray, unit: np.float32, steps: np.ndarray, ints: np.ndarray,
    floats: np.ndarray, n_work: int, out: np.ndarray, places: np.ndarray,
) -> None:  # fmt: skip
    """Write what a chain makes of images."""
    # images: (n, size), uint8 or float32
    # out: (n, size of the last output), float32
    # places: (n, size of the last output), int32, or (0, 0)
    n_layers = steps.shape[0]
    largest = images.shape[1]
    for k in range(n_layers):
        largest = max(largest, steps[k, _SIZE])
    room = (largest + LANES - 1) // LANES * LANES + LANES
    buffers = aligned(2 * room)
    work = aligned(n_work + LANES)
    nowhere = np.empty(0, np.int32)
    for i in range(images.shape[0]):
        _load(images[i], buffers)
        scale = unit
        size = images.shape[1]
        for k in range(n_layers):
            begin = k % 2 * room
            x = buffers[begin : begin + size]
            size = steps[k, _SIZE]
            last = k == n_layers - 1
            to = (k + 1) % 2 * room
            y = out[i] if last else buffers[to : to + size]
            of_layer = places[i] if last and places.shape[0] > 0 else nowhere
            scale = _layer(steps[k], x, scale, unit, ints, floats, work, y, of_layer)


@njit(cache=True, nogil=True)
def _load(image: np.ndarray, buffer: np.ndarray) -> None:
    image, buffer = borrowed(image), borrowed(buffer)
    for j in range(image.shape[0]):
        buffer[j] = np.float32(image[j])


@njit(cache=True, nogil=True)
def _layer(
    step: np.ndarray, x: np.ndarray, scale: np.float32, unit: np.float32, ints: np.ndarray,
    floats: np.ndarray, work: np.ndarray, y: np.ndarray, places: np.ndarray,
) -> np.float32:  # fmt: skip
    """Compute one layer; return what its output's values have to be multiplied with."""
    x, y, places = borrowed(x), borrowed(y), borrowed(places)
    ints, floats, work = borrowed(ints), borrowed(floats), borrowed(work)
    kind = step[_KIND]
    of_layer, weights = ints[step[_INTS] :], floats[step[_FLOATS] :]
    if kind == _DESLANT:
        deslant_forward(x, np.float32(0 if scale == 1 else 0.5), of_layer, y)
        return scale
    if kind == _TEMPLATES:
        templates_forward(x, scale, of_layer, weights, work[step[_WORK] :], y, places)
    elif kind == _DEPTHWISE:
        depthwise_forward(x, scale, of_layer, weights, work[step[_WORK] :], y, places)
    elif kind == _UNITS:
        units_forward(x, scale, of_layer, weights, y)
    else:
        channels_forward(x, scale, of_layer, weights, y)
    return np.float32(1)
