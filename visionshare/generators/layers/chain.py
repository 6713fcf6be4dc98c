"""Layers in one compiled call: a plan is made once, and images go through all of it.

What takes time for one picture is Python between layers. A chain holds all layers as numbers, each
with the address of its kernel, and one compiled function calls one kernel after the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numba import njit

from visionshare.generators.emitter import uncounted
from visionshare.generators.layers.layer import Fitted
from visionshare.generators.layers.steps import call_kernel
from visionshare.generators.layers.templates.intrinsics import LANES
from visionshare.generators.layers.templates.responses import aligned, unset
from visionshare.generators.layers.templates.tables import whole_vectors

# Where each number of a step is in its row.
_KERNEL, _INTS, _WEIGHTS, _WORK, _SIZE, _KEEPS = range(6)


class Chain(NamedTuple):
    """Layers as numbers."""

    #: Address of the kernel; where integers, weights and working memory begin; size of the output;
    #: whether its values are multiplied with what the input's are: (n_steps, 6).
    steps: np.ndarray
    ints: np.ndarray
    weights: np.ndarray
    #: Numbers of working memory.
    work: int
    #: Whether the layers take bytes.
    of_bytes: bool


def chain_of(layers: Sequence[Fitted]) -> Chain:
    """Return a chain of layers, each of a kind that is compiled."""
    parts = [(layer, kernel, code) for layer in layers for kernel, code in layer.steps]
    steps = np.zeros((len(parts), 6), np.int64)
    n_ints = n_weights = n_work = 0
    for step, (layer, kernel, code) in zip(steps, parts, strict=True):
        step[_KERNEL] = kernel.address
        step[_INTS] = n_ints
        step[_WEIGHTS] = n_weights
        step[_WORK] = n_work
        step[_SIZE] = np.prod(layer.out_shape)
        step[_KEEPS] = layer.keeps_bytes
        n_ints += len(code.ints)
        # Weights begin with a line of the cache.
        n_weights += whole_vectors(len(code.weights))
        n_work += whole_vectors(code.work)
    ints = np.concatenate([code.ints for _, _, code in parts])
    chain = Chain(steps, ints, aligned(n_weights), n_work, layers[0].takes_bytes)
    renew(chain, layers)
    return chain


def renew(chain: Chain, layers: Sequence[Fitted]) -> None:
    """Write the weights of layers into a chain of such layers."""
    codes = [code for layer in layers for _, code in layer.steps]
    for step, code in zip(chain.steps, codes, strict=True):
        chain.weights[step[_WEIGHTS] : step[_WEIGHTS] + len(code.weights)] = code.weights


@njit(cache=True, nogil=True)
def forward_block(
    images: np.ndarray,
    unit: np.float32,
    steps: np.ndarray,
    ints: np.ndarray,
    weights: np.ndarray,
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
    # Vectors of pixels of three channels may be read from the last pixel on.
    buffers = unset(2 * room + 6 * LANES)
    work = unset(n_work + LANES)
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
            of_layer = places[i] if last and places.shape[0] > 0 else nowhere
            _run_step(steps[k], x, scale, ints, weights, work, y, of_layer)
            if not steps[k, _KEEPS]:
                scale = np.float32(1)


@njit(cache=True, nogil=True)
def _load(image: np.ndarray, buffer: np.ndarray) -> None:
    image = uncounted(image)
    buffer = uncounted(buffer)
    for j in range(image.shape[0]):
        buffer[j] = np.float32(image[j])


@njit(cache=True, nogil=True)
def _load_bytes(image: np.ndarray, unit: np.float32, buffer: np.ndarray) -> None:
    """Write bytes; floats from 0 to 1 become bytes, to the nearest, halves up."""
    _load(image, buffer)
    buffer = uncounted(buffer)
    if unit == 1:
        for j in range(image.shape[0]):
            value = min(max(buffer[j], np.float32(0)), np.float32(1))
            buffer[j] = np.floor(value * np.float32(255) + np.float32(0.5))


@njit(cache=True, nogil=True)
def _run_step(
    step: np.ndarray,
    x: np.ndarray,
    unit: np.float32,
    ints: np.ndarray,
    weights: np.ndarray,
    work: np.ndarray,
    y: np.ndarray,
    places: np.ndarray,
) -> None:
    """Compute one layer."""
    # Nothing that a kernel is handed counts references.
    ints = uncounted(ints)
    weights = uncounted(weights)
    work = uncounted(work)
    call_kernel(
        step[_KERNEL],
        uncounted(x),
        unit,
        ints[step[_INTS] :],
        weights[step[_WEIGHTS] :],
        work[step[_WORK] :],
        uncounted(y),
        uncounted(places),
    )
