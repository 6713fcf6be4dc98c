"""Images through layers: compiled chains, and families between them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from visionshare.generators.computed import image_batches
from visionshare.generators.inputs import flattened
from visionshare.generators.layers.family.layer import FeatureLayer
from visionshare.generators.layers.integer_layer import IntegerLayer, as_bytes
from visionshare.generators.layers.layer import Fitted
from visionshare.machine.resources import run_blocks

__all__ = ["Forward"]

# Images of one call of a compiled chain.
_AT_ONCE = 64


class Forward:
    """Layers in order, ready to be applied; what does not depend on images is made once."""

    def __init__(self, layers: Sequence[Fitted]) -> None:
        self._layers = list(layers)

    @cached_property
    def _pieces(self) -> list[Any]:
        """Integer layers, chains of compiled layers, and layers of families between them."""
        from visionshare.generators.layers.chain import chain_of, is_compiled

        integers = [layer for layer in self._layers if isinstance(layer, IntegerLayer)]
        pieces: list[Any] = [integers] if integers else []
        together: list[Fitted] = []
        for layer in [*self._layers[len(integers) :], None]:
            if layer is not None and is_compiled(layer):
                together.append(layer)
                continue
            if together:
                keeps_bytes = all(one.keeps_bytes for one in together)
                size = int(np.prod(together[-1].out_shape))
                pieces.append((chain_of(together), keeps_bytes, size))
                together = []
            if layer is not None:
                pieces.append(layer)
        return pieces

    def outputs(self, raster: np.ndarray, n_jobs: int) -> np.ndarray:
        """Return what the layers make of images (n, *out_shape), float32."""
        shape = self._layers[-1].out_shape
        out = np.empty((len(raster), int(np.prod(shape))), np.float32)
        for batch in image_batches(len(raster), self._bytes_per_image):
            self._apply(raster[batch], out[batch], np.empty((0, 0), np.int32), n_jobs)
        return out.reshape(len(raster), *shape)

    def picked(self, raster: np.ndarray, places: np.ndarray, n_jobs: int) -> np.ndarray:
        """Return some of the last layer's values, (n, len(places)), float32."""
        out = np.empty((len(raster), len(places)), np.float32)
        size = int(np.prod(self._layers[-1].out_shape))
        for batch in image_batches(len(raster), self._bytes_per_image + 4.0 * size):
            part = raster[batch]
            values = np.empty((len(part), size), np.float32)
            self._apply(part, values, np.empty((0, 0), np.int32), n_jobs)
            np.take(values, places, axis=1, out=out[batch])
        return out

    def with_places(self, raster: np.ndarray, n_jobs: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the outputs, and where the maxima of a last layer of templates are, int32."""
        # Both are (n, *out_shape); see
        # :func:`visionshare.generators.layers.templates.kernels.templates_forward`.
        shape = (len(raster), *self._layers[-1].out_shape)
        out = np.empty((len(raster), int(np.prod(shape[1:]))), np.float32)
        places = np.empty(out.shape, np.int32)
        self._apply(raster, out, places, n_jobs)
        return out.reshape(shape), places.reshape(shape)

    def inputs_of_layers(self, raster: np.ndarray) -> list[np.ndarray]:
        """Return what each layer sees of images, each (n, H, W, C), float32."""
        # Bytes stand for 0 to 255 as far as layers keep them.
        inputs = [raster.astype(np.float32)]
        for number, layer in enumerate(self._layers[:-1]):
            values = Forward(self._layers[: number + 1]).outputs(raster, 1)
            inputs.append(values.reshape(len(raster), *layer.out_shape))
        return inputs

    @property
    def _bytes_per_image(self) -> float:
        """Bytes of what families between chains see and give, for one image."""
        sizes = [
            np.prod(layer.in_shape) + np.prod(layer.out_shape)
            for layer in self._layers
            if isinstance(layer, FeatureLayer)
        ]
        return 4.0 * float(sum(sizes)) if sizes else 1.0

    def _apply(self, raster: np.ndarray, out: np.ndarray, places: np.ndarray, n_jobs: int) -> None:
        """Write the outputs (n, size); places too where there is room for them."""
        values = np.ascontiguousarray(flattened(raster))
        are_bytes = raster.dtype == np.uint8
        last = len(self._pieces) - 1
        for number, piece in enumerate(self._pieces):
            if isinstance(piece, FeatureLayer):
                values = piece.family.transform(piece.images(values, are_bytes), None, n_jobs)
                are_bytes = False
                if number == last:
                    out[...] = values
                continue
            if isinstance(piece, list):
                values = _of_integers(piece, raster, n_jobs)
                are_bytes = False
                if number == last:
                    out[...] = values
                continue
            chain, keeps_bytes, size = piece
            to = out if number == last else np.empty((len(raster), size), np.float32)
            seen = places if number == last else np.empty((0, 0), np.int32)
            _run(chain, values, are_bytes, to, seen, n_jobs)
            values = to
            are_bytes = are_bytes and keeps_bytes


def _of_integers(layers: list[IntegerLayer], raster: np.ndarray, n_jobs: int) -> np.ndarray:
    """Return what layers of integers make of images (n, size), float32."""
    out = np.empty((len(raster), int(np.prod(layers[-1].out_shape))), np.float32)

    def block(start: int, stop: int) -> None:
        values = as_bytes(raster[start:stop])
        for layer in layers:
            values = layer.transform(values)
        out[start:stop] = values.reshape(len(values), -1)

    run_blocks(block, len(raster), _AT_ONCE, n_jobs)
    return out


def _run(
    chain: Any, values: np.ndarray, are_bytes: bool, out: np.ndarray, places: np.ndarray,
    n_jobs: int,
) -> None:  # fmt: skip
    """Write what a chain makes of images (n, size)."""
    from visionshare.generators.layers.chain import forward_block

    unit = np.float32(1 / 255 if are_bytes else 1)

    def block(start: int, stop: int) -> None:
        seen = places[start:stop] if len(places) else places
        forward_block(
            values[start:stop], unit, chain.steps, chain.ints, chain.floats, chain.work,
            out[start:stop], seen,
        )  # fmt: skip

    run_blocks(block, len(values), _AT_ONCE, n_jobs)
