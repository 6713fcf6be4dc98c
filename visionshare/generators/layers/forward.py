"""Images through layers: compiled chains, and families between them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from itertools import groupby
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from visionshare.generators.layers.layer import Fitted
from visionshare.generators.lazy_images import image_batches
from visionshare.machine.resources import run_blocks

# Images of one call of a compiled chain.
_AT_ONCE = 64
_NOWHERE = np.empty((0, 0), np.int32)
_BYTES = np.dtype(np.uint8)
# What pixels are multiplied with.
_OF_BYTES = np.float32(1 / 255)
_OF_FLOATS = np.float32(1)


class _Piece(NamedTuple):
    """Layers that are computed in one call: a family, or a chain."""

    family: Any
    #: The compiled function of a chain, and the chain.
    run: Any
    chain: Any
    keeps_bytes: bool
    size: int


class Forward:
    """Layers in order, ready to be applied; what does not depend on images is made once."""

    def __init__(self, layers: Sequence[Fitted]) -> None:
        self._layers = list(layers)
        self._out_shape = self._layers[-1].out_shape
        self._size = math.prod(self._out_shape)

    @cached_property
    def _pieces(self) -> list[_Piece]:
        from visionshare.generators.layers.chain import chain_of, forward_block

        pieces = []
        for compiled, group in groupby(self._layers, attrgetter("compiled")):
            together = list(group)
            if compiled:
                keeps_bytes = all(layer.keeps_bytes for layer in together)
                size = math.prod(together[-1].out_shape)
                pieces.append(_Piece(None, forward_block, chain_of(together), keeps_bytes, size))
                continue
            pieces += [_Piece(layer, None, None, False, layer.out_shape[2]) for layer in together]
        return pieces

    def renew(self, layers: Sequence[Fitted]) -> None:
        """Take on other weights of the same layers."""
        from visionshare.generators.layers.chain import renew

        self._layers = list(layers)
        for piece in vars(self).get("_pieces", ()):
            if piece.run is None or len(self._pieces) > 1:
                del self._pieces
                return
            renew(piece.chain, layers)

    def __getstate__(self) -> dict[str, Any]:
        # Addresses of kernels hold in this process only.
        return {name: value for name, value in vars(self).items() if name != "_pieces"}

    def outputs(self, raster: np.ndarray, n_jobs: int) -> np.ndarray:
        """Return what the layers make of images (n, *out_shape), float32."""
        return self.values(raster, n_jobs).reshape(len(raster), *self._out_shape)

    def values(self, raster: np.ndarray, n_jobs: int) -> np.ndarray:
        """Return what the layers make of images, each in one row, float32."""
        out = np.empty((len(raster), self._size), np.float32)
        if len(raster) == 1:
            self._apply(raster, out, _NOWHERE, 1)
        else:
            for batch in image_batches(len(raster), self._bytes_per_image):
                self._apply(raster[batch], out[batch], _NOWHERE, n_jobs)
        return out

    def picked(self, raster: np.ndarray, places: np.ndarray, n_jobs: int) -> np.ndarray:
        """Return some of the last layer's values, (n, len(places)), float32."""
        out = np.empty((len(raster), len(places)), np.float32)
        for batch in image_batches(len(raster), self._bytes_per_image + 4.0 * self._size):
            part = raster[batch]
            values = np.empty((len(part), self._size), np.float32)
            self._apply(part, values, _NOWHERE, n_jobs)
            np.take(values, places, axis=1, out=out[batch])
        return out

    def with_places(self, raster: np.ndarray, n_jobs: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the outputs, and where the maxima of a last layer of templates are, int32."""
        shape = (len(raster), *self._out_shape)
        out = np.empty((len(raster), self._size), np.float32)
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

    @cached_property
    def _bytes_per_image(self) -> float:
        """Bytes of what families between chains see and give, for one image."""
        sizes = [
            np.prod(layer.in_shape) + np.prod(layer.out_shape)
            for layer in self._layers
            if not layer.compiled
        ]
        return 4.0 * float(sum(sizes)) if sizes else 1.0

    def _apply(self, raster: np.ndarray, out: np.ndarray, places: np.ndarray, n_jobs: int) -> None:
        """Write the outputs (n, size); places too where there is room for them."""
        pieces = self._pieces
        n, height, width, channels = raster.shape
        values = np.ascontiguousarray(raster).reshape(n, height * width * channels)
        are_bytes = raster.dtype == _BYTES
        for piece in pieces:
            last = piece is pieces[-1]
            to = out if last else np.empty((n, piece.size), np.float32)
            if piece.run is not None:
                unit = _OF_BYTES if are_bytes else _OF_FLOATS
                _run_chain(piece, values, unit, to, places if last else _NOWHERE, n_jobs)
            else:
                to[...] = piece.family.features_of(values, are_bytes, n_jobs)
            values = to
            are_bytes = are_bytes and piece.keeps_bytes


def _run_chain(
    piece: _Piece, images: np.ndarray, unit: Any, out: np.ndarray, places: np.ndarray, n_jobs: int
) -> None:
    """Write what a chain makes of images (n, size)."""
    if len(images) <= _AT_ONCE:
        piece.run(_writable(images), unit, *piece.chain, out, places)
        return

    def block(start: int, stop: int) -> None:
        seen = places[start:stop] if len(places) else places
        piece.run(_writable(images[start:stop]), unit, *piece.chain, out[start:stop], seen)

    run_blocks(block, len(images), _AT_ONCE, n_jobs)


def _writable(images: np.ndarray) -> np.ndarray:
    """Return few images so that they need no kernel of their own."""
    return images if images.flags.writeable else images.copy()
