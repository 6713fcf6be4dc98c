"""Depthwise templates and biases that gradients move."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from visionshare.errors import InputError
from visionshare.generators.layers.depthwise.layer import DepthwiseLayer
from visionshare.generators.layers.integers.numbers import Bits
from visionshare.generators.layers.templates.moving import MovingTemplates
from visionshare.machine.resources import run_blocks

if TYPE_CHECKING:
    from visionshare.generators.layers.moving import Gradients

__all__ = ["MovingDepthwise"]

# Images whose gradients are summed together, in the same order on any number of threads.
_AT_ONCE = 64


class MovingDepthwise(MovingTemplates):
    """Templates of one channel each, in units of their root mean square, and biases."""

    _layer: DepthwiseLayer

    def backward(
        self, inputs: np.ndarray, seen: np.ndarray, G: np.ndarray, n_jobs: int, below: bool
    ) -> Gradients:
        """Return the gradients in templates and biases, and in the inputs."""
        from visionshare.generators.layers.depthwise.kernels import depthwise_backward

        layer = self._layer
        n, (rows, columns, n_templates) = len(inputs), layer.out_shape
        places = seen.reshape(n, rows * columns, n_templates)
        gradients = np.ascontiguousarray(G, np.float32).reshape(places.shape)
        unit = np.float32(1 / 255 if inputs.dtype == np.uint8 else 1)
        taps = np.ascontiguousarray(layer.templates[..., 0])
        blocks = -(-n // _AT_ONCE)
        of_taps = np.zeros((blocks, *taps.shape), np.float32)
        of_biases = np.zeros((blocks, n_templates), np.float32)
        of_images = np.zeros(inputs.shape if below else (0, 0, 0, 0), np.float32)
        images = np.ascontiguousarray(inputs)

        def block(start: int, stop: int) -> None:
            number = start // _AT_ONCE
            depthwise_backward(
                images[start:stop], unit, layer.code.ints, taps, places[start:stop],
                gradients[start:stop], of_taps[number], of_biases[number], of_images[start:stop],
            )  # fmt: skip

        run_blocks(block, n, _AT_ONCE, n_jobs)
        total = of_taps.sum(axis=0)[..., None] * self._size
        return [total, of_biases.sum(axis=0)], of_images if below else None

    def quantize(
        self, bits: Bits, inputs: np.ndarray, exponents: np.ndarray, n_jobs: int
    ) -> np.ndarray:
        """Refuse: depthwise templates have no form in integers."""
        raise InputError("layers", self._layer.kind, "layers of templates and units")
