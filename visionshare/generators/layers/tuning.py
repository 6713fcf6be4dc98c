"""Networks whose parameters gradients move: one loop over the layers, there and back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from visionshare.errors import InputError
from visionshare.generators.base import check_images
from visionshare.generators.layers.forward import Forward
from visionshare.generators.layers.integer_layer import as_bytes
from visionshare.generators.layers.integers.numbers import Bits
from visionshare.generators.layers.layer import Fitted
from visionshare.generators.layers.moving import Moving
from visionshare.generators.layers.network import Network

# A pixel v is v / 256 here and v / 255 elsewhere; weights of pixels make up for it.
_PIXEL_EXPONENT = -8
_LARGER = np.float32(256 / 255)


class TunableNetwork:
    """A network's features as a function of parameters."""

    def __init__(self, network: Network) -> None:
        network.check_tunable()
        self._places = network.places_
        self._image_shape = tuple(network.image_shape_)
        self._out_shape = network.layers_[-1].out_shape
        self._layers: list[Moving] = [
            layer.moving() if layer.moves else Moving(layer) for layer in network.layers_
        ]
        self.parameters = [p for layer in self._layers for p in layer.parameters]
        self.templates = self._positions_of_templates()
        # Features that are the same output share its gradient.
        self._apart = len(np.unique(self._places)) == len(self._places)
        #: The first layer that moves: gradients go no further back.
        self._first = next(k for k, layer in enumerate(self._layers) if layer.parameters)

    def _positions_of_templates(self) -> tuple[int, ...]:
        positions: list[int] = []
        begin = 0
        for layer in self._layers:
            positions += [begin + position for position in layer.templates]
            begin += len(layer.parameters)
        return tuple(positions)

    def forward(self, images: np.ndarray, n_jobs: int = 1) -> tuple[np.ndarray, Any]:
        """Return features (n, n_features), float32, and what :meth:`backward` needs."""
        values = check_images(images, self._image_shape)
        records = []
        for layer in self._layers:
            inputs = values
            values, seen = layer.forward(inputs, n_jobs)
            records.append((inputs, seen))
        flat = values.reshape(len(values), -1)
        return np.ascontiguousarray(flat[:, self._places]), records

    def backward(
        self, images: np.ndarray, values: np.ndarray, seen: Any, G: np.ndarray, n_jobs: int = 1
    ) -> list[np.ndarray]:
        """Return the gradients in the parameters of Σ_if G_if x_if."""
        return self._back(seen, G, n_jobs, self._first)[0]

    def image_gradients(
        self, images: np.ndarray, values: np.ndarray, seen: Any, G: np.ndarray, n_jobs: int = 1
    ) -> np.ndarray:
        """Return the gradients in the images' values of Σ_if G_if x_if, (n, H, W, C), float32."""
        of_images = self._back(seen, G, n_jobs, -1)[1]
        assert of_images is not None
        return of_images

    def _back(
        self, records: Any, G: np.ndarray, n_jobs: int, first: int
    ) -> tuple[list[np.ndarray], np.ndarray | None]:
        """Return the gradients in the parameters, and in the input of the layer ``first + 1``."""
        gradient = np.zeros((len(G), int(np.prod(self._out_shape))), np.float32)
        if self._apart:
            gradient[:, self._places] = G
        else:
            np.add.at(gradient.T, self._places, np.asarray(G, np.float32).T)
        below: np.ndarray | None = gradient.reshape(len(G), *self._out_shape)
        gradients: list[np.ndarray] = []
        for number in range(len(self._layers) - 1, -1, -1):
            inputs, seen = records[number]
            if below is None:
                break
            own, below = self._layers[number].backward(inputs, seen, below, n_jobs, number > first)
            gradients = [*own, *gradients]
        return gradients, below

    def moved(self) -> None:
        """Take on the current parameters."""
        for layer in self._layers:
            layer.moved()

    def family(self) -> Network:
        """Return the network with the current parameters."""
        layers = [layer.layer() for layer in self._layers]
        return Network.of(layers, self._places, self._image_shape)

    def quantize(
        self, bits: Bits, images: np.ndarray, exponents: np.ndarray, n_jobs: int = 1
    ) -> np.ndarray:
        """Round parameters and values from now on; return the exponents of the features."""
        # See :class:`visionshare.generators.tuning.QuantizableTunable`.
        values = images
        later = bits
        if bits.first is not None:
            bits = bits._replace(templates=bits.first)
        for layer in self._layers:
            exponents = layer.quantize(bits, values, exponents, n_jobs)
            bits = later
            values, _ = layer.forward(values, n_jobs)
        return np.asarray(exponents[self._places % len(exponents)])

    def whole_layers(self) -> tuple[list[Fitted], np.ndarray]:
        """Return the layers of integers, and where in the last one each feature is."""
        return [layer.integers() for layer in self._layers], self._places


tunable = TunableNetwork


def check_quantizable(family: Any, argument: str = "family") -> None:
    """Check that features can be computed in integers."""
    layers: Sequence[Any] = []
    kinds = [family.name]
    if isinstance(family, Network):
        layers = family.layers_ if family.is_fitted else family.layers
        kinds = [layer.kind for layer in layers]
    # 1) deslanting or nothing, 2) templates first of all layers with weights, 3) units at last
    ranks = [-1 if layer.integer_rank is None else layer.integer_rank for layer in layers]
    weighted = [layer for layer in layers if layer.integer_rank]
    ordered = ranks == sorted(ranks) and ranks[:1] != [-1] and ranks.count(0) <= 1
    if not ordered or 1 not in ranks or not weighted[0].weighs_pixels:
        accepted = "deslanting or nothing, layers of templates, then units"
        raise InputError(argument, ", ".join(kinds), accepted)


def quantized(network: Network, images: np.ndarray, bits: Bits, n_jobs: int = 1) -> Network:
    """Return a network in integers, without learning anew."""
    features = ByteNetwork(network)
    features.quantize(bits, images, n_jobs)
    return features.family()


class ByteNetwork:
    """A network's features of images of bytes."""

    def __init__(self, network: Network, wrap: Callable[[Any], Any] | None = None) -> None:
        check_quantizable(network)
        self._image_shape = tuple(network.image_shape_)
        layers = list(network.layers_)
        # What comes before the first layer with weights: deslanting, or nothing.
        self._before = [layer for layer in layers if layer.integer_rank == 0]
        self._before_in_integers = [layer.in_integers() for layer in self._before]
        layers = layers[len(self._before) :]
        self._places = network.places_
        inside = Network.of(_of_pixels(layers, _LARGER), self._places, layers[0].in_shape)
        moving = TunableNetwork(inside)
        self._part: Any = moving if wrap is None else wrap(moving)
        self.parameters = self._part.parameters
        self.templates = self._part.templates
        #: Exponents of the features, once they are quantized.
        self.exponents: np.ndarray | None = None

    def forward(self, images: np.ndarray, n_jobs: int = 1) -> tuple[np.ndarray, Any]:
        """Return features (n, n_features), float32, and what :meth:`backward` needs."""
        inputs = self._inputs(images)
        values, seen = self._part.forward(inputs, n_jobs)
        return values, (inputs, seen)

    def backward(
        self, images: np.ndarray, values: np.ndarray, seen: Any, G: np.ndarray, n_jobs: int = 1
    ) -> list[np.ndarray]:
        """Return the gradients in the parameters of Σ_if G_if x_if."""
        return self._part.backward(seen[0], values, seen[1], G, n_jobs)

    def moved(self) -> None:
        """Take on the current parameters."""
        self._part.moved()

    def quantize(self, bits: Bits, images: np.ndarray, n_jobs: int = 1) -> None:
        """Round to integers from now on, whose exponents these images say."""
        inputs = self._inputs(images)
        pixels = np.full(inputs.shape[3], _PIXEL_EXPONENT)
        self.exponents = self._part.quantize(bits, inputs, pixels, n_jobs)

    def family(self) -> Network:
        """Return the network of these features with the current parameters."""
        if self.exponents is None:
            plain = _of_pixels(self._part.family().layers_, 1 / _LARGER)
            return Network.of([*self._before, *plain], self._places, self._image_shape)
        layers, places = self._part.whole_layers()
        return Network.of([*self._before_in_integers, *layers], places, self._image_shape)

    def _inputs(self, images: np.ndarray) -> np.ndarray:
        """Return what the first weighted layer sees: images in 256ths, float32."""
        raster = as_bytes(check_images(images, self._image_shape))
        if self._before:
            raster = Forward(self._before_in_integers).outputs(raster, 1)
        return np.ldexp(raster.astype(np.float32), _PIXEL_EXPONENT)


def _of_pixels(layers: list[Fitted], factor: float) -> list[Fitted]:
    """Return layers whose first one has its weights of pixels multiplied."""
    first: Any = layers[0]
    return [first.scaled(factor), *layers[1:]]
