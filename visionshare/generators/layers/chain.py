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
    rounding_forward,
    slant_forward,
    sums_forward,
)
from visionshare.generators.layers.residual.kernels import residual_forward
from visionshare.generators.layers.templates.intrinsics import LANES
from visionshare.generators.layers.templates.kernels import templates_forward
from visionshare.generators.layers.templates.responses import aligned
from visionshare.generators.layers.units.kernels import units_forward

__all__ = ["Chain", "chain_of", "forward_block", "is_compiled"]

_NUMBERS = {
    "deslant": 0,
    "channels": 1,
    "templates": 2,
    "units": 3,
    "depthwise": 4,
    "residual": 5,
    "rounding": 6,
    "deslant-int": 7,
    "templates-int": 8,
    "depthwise-int": 8,
    "residual-int": 8,
    "units-int": 9,
}
_DESLANT = _NUMBERS["deslant"]
_CHANNELS = _NUMBERS["channels"]
_TEMPLATES = _NUMBERS["templates"]
_UNITS = _NUMBERS["units"]
_DEPTHWISE = _NUMBERS["depthwise"]
_RESIDUAL = _NUMBERS["residual"]
_ROUNDING = _NUMBERS["rounding"]
_INTEGER_DESLANT = _NUMBERS["deslant-int"]
_INTEGER_CELLS = _NUMBERS["templates-int"]
_INTEGER_UNITS = _NUMBERS["units-int"]
# Where each number of a step is in its row.
_KIND, _INTS, _WEIGHTS, _WORK, _SIZE = range(5)


class Chain(NamedTuple):
    """Layers as numbers."""

    #: Kind, where integers, weights and working memory begin, size of the output: (n_steps, 5).
    steps: np.ndarray
    ints: np.ndarray
    #: Weights of steps of floats, and of steps of integers: float32 and int32.
    floats: np.ndarray
    wholes: np.ndarray
    #: Numbers of working memory.
    work: int
    #: Whether the layers take bytes.
    of_bytes: bool


def is_compiled(layer: Any) -> bool:
    """Return whether a layer can be part of a chain."""
    return layer.kind in _NUMBERS


def chain_of(layers: Sequence[Any]) -> Chain:
    """Return a chain of layers, each of a kind that is compiled."""
    parts = [(layer, kind, code) for layer in layers for kind, code in layer.codes]
    steps = np.zeros((len(parts), 5), np.int64)
    n_ints = n_work = 0
    # Weights begin with a line of the cache.
    sizes = {np.dtype(np.float32): 0, np.dtype(np.int32): 0}
    for step, (layer, kind, code) in zip(steps, parts, strict=True):
        dtype = code.weights.dtype
        step[:] = _NUMBERS[kind], n_ints, sizes[dtype], n_work, np.prod(layer.out_shape)
        n_ints += len(code.ints)
        sizes[dtype] += _whole_vectors(len(code.weights))
        n_work += _whole_vectors(code.work)
    floats = aligned(sizes[np.dtype(np.float32)])
    wholes = np.zeros(sizes[np.dtype(np.int32)], np.int32)
    for step, (_, _, code) in zip(steps, parts, strict=True):
        table = floats if code.weights.dtype == np.float32 else wholes
        table[step[_WEIGHTS] : step[_WEIGHTS] + len(code.weights)] = code.weights
    ints = np.concatenate([np.empty(0, np.int64), *(code.ints for _, _, code in parts)])
    return Chain(steps, ints, floats, wholes, n_work, layers[0].kind.endswith("-int"))


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
    of_bytes: bool,
    out: np.ndarray,
    places: np.ndarray,
) -> None:
    """Write what a chain makes of images (n, size), uint8 or float32, to ``out`` (n, last size)."""
    # `unit` is what values of images are multiplied with. `places` (int32), like `out`, says where
    # the maxima of a last layer of templates are; it is not written when empty.
    n_steps = steps.shape[0]
    largest = images.shape[1]
    for k in range(n_steps):
        largest = max(largest, steps[k, _SIZE])
    room = (largest + LANES - 1) // LANES * LANES + LANES
    buffers = aligned(2 * room)
    work = aligned(n_work + LANES)
    whole_work = np.empty(n_work if wholes.shape[0] else 0, np.int32)
    nowhere = np.empty(0, np.int32)
    for i in range(images.shape[0]):
        size = images.shape[1]
        scale = unit
        if of_bytes:
            _load_bytes(images[i], unit, buffers)
            scale = np.float32(1)
        else:
            _load(images[i], buffers)
        for k in range(n_steps):
            x = buffers[k % 2 * room : k % 2 * room + size]
            size = steps[k, _SIZE]
            last = k == n_steps - 1
            y = out[i] if last else buffers[(k + 1) % 2 * room : (k + 1) % 2 * room + size]
            if steps[k, _KIND] >= _INTEGER_DESLANT:
                _integer_layer(steps[k], x, ints, wholes, whole_work, y)
                continue
            of_layer = places[i] if last and places.shape[0] > 0 else nowhere
            scale = _layer(steps[k], x, scale, ints, floats, work, y, of_layer)


@njit(cache=True, nogil=True)
def _load(image: np.ndarray, buffer: np.ndarray) -> None:
    image = borrowed(image)
    buffer = borrowed(buffer)
    for j in range(image.shape[0]):
        buffer[j] = np.float32(image[j])


@njit(cache=True, nogil=True)
def _load_bytes(image: np.ndarray, unit: np.float32, buffer: np.ndarray) -> None:
    """Write bytes; floats from 0 to 1 become bytes, to the nearest, halves up."""
    _load(image, buffer)
    buffer = borrowed(buffer)
    if unit == 1:
        for j in range(image.shape[0]):
            value = min(max(buffer[j], np.float32(0)), np.float32(1))
            buffer[j] = np.floor(value * np.float32(255) + np.float32(0.5))


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
    elif kind == _ROUNDING:
        rounding_forward(x, of_layer, weights, y)
    else:
        channels_forward(x, scale, of_layer, weights, y)
    return np.float32(1)
