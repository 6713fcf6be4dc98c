"""Layers in one compiled call: a plan is made once, and images go through all of it.

What takes time for one picture is Python between layers. A chain holds all layers as numbers, and
one compiled function computes them one after the other: layers of integers, then layers of floats.
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
from visionshare.generators.layers.integers.kernels import (
    cells_forward,
    slant_forward,
    sums_forward,
)
from visionshare.generators.layers.residual.kernels import residual_forward
from visionshare.generators.layers.templates.intrinsics import LANES
from visionshare.generators.layers.templates.kernels import templates_forward
from visionshare.generators.layers.templates.responses import aligned
from visionshare.generators.layers.units.kernels import units_forward

__all__ = ["Chain", "chain_of", "forward_block", "is_compiled"]

(
    _DESLANT,
    _CHANNELS,
    _TEMPLATES,
    _UNITS,
    _DEPTHWISE,
    _RESIDUAL,
    _INTEGER_DESLANT,
    _INTEGER_CELLS,
    _INTEGER_UNITS,
) = range(9)
_NUMBERS = {
    "deslant": _DESLANT,
    "channels": _CHANNELS,
    "templates": _TEMPLATES,
    "units": _UNITS,
    "depthwise": _DEPTHWISE,
    "residual": _RESIDUAL,
    "deslant-int": _INTEGER_DESLANT,
    "templates-int": _INTEGER_CELLS,
    "depthwise-int": _INTEGER_CELLS,
    "residual-int": _INTEGER_CELLS,
    "units-int": _INTEGER_UNITS,
}
# Where each number of a step is in its row.
_KIND, _INTS, _WEIGHTS, _WORK, _SIZE = range(5)


class Chain(NamedTuple):
    """Layers as numbers."""

    #: Kind, where integers, weights and working memory begin, size of the output: (n_layers, 5).
    steps: np.ndarray
    ints: np.ndarray
    #: Weights of layers of floats, and of layers of integers: float32 and int32.
    floats: np.ndarray
    wholes: np.ndarray
    #: Numbers of working memory, for any type.
    work: int


def is_compiled(layer: Any) -> bool:
    """Return whether a layer can be part of a chain."""
    return layer.kind in _NUMBERS


def chain_of(layers: Sequence[Any]) -> Chain:
    """Return a chain of layers, each of a kind that is compiled."""
    codes = [layer.code for layer in layers]
    steps = np.zeros((len(layers), 5), np.int64)
    n_ints = n_work = 0
    # Weights begin with a line of the cache.
    sizes = {np.dtype(np.float32): 0, np.dtype(np.int32): 0}
    for step, layer, code in zip(steps, layers, codes, strict=True):
        kind = code.weights.dtype
        step[:] = _NUMBERS[layer.kind], n_ints, sizes[kind], n_work, np.prod(layer.out_shape)
        n_ints += len(code.ints)
        sizes[kind] += _whole_vectors(len(code.weights))
        n_work += _whole_vectors(code.work)
    floats = aligned(sizes[np.dtype(np.float32)])
    wholes = np.zeros(sizes[np.dtype(np.int32)], np.int32)
    for step, code in zip(steps, codes, strict=True):
        table = floats if code.weights.dtype == np.float32 else wholes
        table[step[_WEIGHTS] : step[_WEIGHTS] + len(code.weights)] = code.weights
    ints = np.concatenate([np.empty(0, np.int64), *(code.ints for code in codes)])
    return Chain(steps, ints, floats, wholes, n_work)


def _whole_vectors(n: int) -> int:
    return -(-n // LANES) * LANES


@njit(cache=True, nogil=True)
def forward_block(
    images: np.ndarray,
    unit: np.float32,
    steps: np.ndarray,
    ints: np.ndarray,
    floats: np.ndarray,
    wholes: np.ndarray,
    n_work: int,
    out: np.ndarray,
    places: np.ndarray,
) -> None:
    """Write what a chain makes of images (n, size), uint8 or float32, to ``out`` (n, last size)."""
    # `unit` is what values of images are multiplied with. `places` (int32), like `out`, says where
    # the maxima of a last layer of templates are; it is not written when empty.
    n_layers = steps.shape[0]
    n_integers = 0
    largest = images.shape[1]
    for k in range(n_layers):
        largest = max(largest, steps[k, _SIZE])
        if steps[k, _KIND] >= _INTEGER_DESLANT:
            n_integers += 1
    room = (largest + LANES - 1) // LANES * LANES + LANES
    buffers = aligned(2 * room)
    work = aligned(n_work + LANES)
    byte_buffers = np.empty(2 * room if n_integers else 0, np.uint8)
    whole_work = np.empty(n_work if n_integers else 0, np.int32)
    nowhere = np.empty(0, np.int32)
    for i in range(images.shape[0]):
        size = images.shape[1]
        scale = unit
        if n_integers:
            # 1) layers of integers
            _load_bytes(images[i], unit, byte_buffers)
            for k in range(n_integers):
                x = byte_buffers[k % 2 * room : k % 2 * room + size]
                size = steps[k, _SIZE]
                y = byte_buffers[(k + 1) % 2 * room : (k + 1) % 2 * room + size]
                _integer_layer(steps[k], x, ints, wholes, whole_work, y)
            begin = n_integers % 2 * room
            _load(byte_buffers[begin : begin + size], buffers[begin:])
            scale = np.float32(1)
        else:
            _load(images[i], buffers)
        # 2) layers of floats
        for k in range(n_integers, n_layers):
            x = buffers[k % 2 * room : k % 2 * room + size]
            size = steps[k, _SIZE]
            last = k == n_layers - 1
            y = out[i] if last else buffers[(k + 1) % 2 * room : (k + 1) % 2 * room + size]
            of_layer = places[i] if last and places.shape[0] > 0 else nowhere
            scale = _layer(steps[k], x, scale, ints, floats, work, y, of_layer)
        if n_integers == n_layers:
            begin = n_layers % 2 * room
            out[i] = buffers[begin : begin + size]


@njit(cache=True, nogil=True)
def _load(image: np.ndarray, buffer: np.ndarray) -> None:
    image = borrowed(image)
    buffer = borrowed(buffer)
    for j in range(image.shape[0]):
        buffer[j] = np.float32(image[j])


@njit(cache=True, nogil=True)
def _load_bytes(image: np.ndarray, unit: np.float32, buffer: np.ndarray) -> None:
    image = borrowed(image)
    buffer = borrowed(buffer)
    for j in range(image.shape[0]):
        if unit == 1:
            value = min(max(np.float32(image[j]), np.float32(0)), np.float32(1))
            buffer[j] = np.uint8(np.floor(value * np.float32(255) + np.float32(0.5)))
        else:
            buffer[j] = np.uint8(image[j])


@njit(cache=True, nogil=True)
def _integer_layer(
    step: np.ndarray,
    x: np.ndarray,
    ints: np.ndarray,
    wholes: np.ndarray,
    work: np.ndarray,
    y: np.ndarray,
) -> None:
    x = borrowed(x)
    y = borrowed(y)
    ints = borrowed(ints)
    wholes = borrowed(wholes)
    work = borrowed(work)
    of_layer = ints[step[_INTS] :]
    weights = wholes[step[_WEIGHTS] :]
    if step[_KIND] == _INTEGER_DESLANT:
        slant_forward(x, of_layer, y)
    elif step[_KIND] == _INTEGER_CELLS:
        cells_forward(x, of_layer, weights, work[step[_WORK] :], y)
    else:
        sums_forward(x, of_layer, weights, work[step[_WORK] :], y)


@njit(cache=True, nogil=True)
def _layer(
    step: np.ndarray,
    x: np.ndarray,
    scale: np.float32,
    ints: np.ndarray,
    floats: np.ndarray,
    work: np.ndarray,
    y: np.ndarray,
    places: np.ndarray,
) -> np.float32:
    """Compute one layer; return what its output's values have to be multiplied with."""
    x = borrowed(x)
    y = borrowed(y)
    places = borrowed(places)
    ints = borrowed(ints)
    floats = borrowed(floats)
    work = borrowed(work)
    of_layer = ints[step[_INTS] :]
    weights = floats[step[_WEIGHTS] :]
    own = work[step[_WORK] :]
    kind = step[_KIND]
    if kind == _DESLANT:
        deslant_forward(x, np.float32(0 if scale == 1 else 0.5), of_layer, y)
        return scale
    if kind == _TEMPLATES:
        templates_forward(x, scale, of_layer, weights, own, y, places)
    elif kind == _DEPTHWISE:
        depthwise_forward(x, scale, of_layer, weights, own, y, places)
    elif kind == _RESIDUAL:
        residual_forward(x, scale, of_layer, weights, own, y, places)
    elif kind == _UNITS:
        units_forward(x, scale, of_layer, weights, y)
    else:
        channels_forward(x, scale, of_layer, weights, y)
    return np.float32(1)
