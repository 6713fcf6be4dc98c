"""Networks: features that a list of layers computes of an image."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from visionshare.errors import InputError
from visionshare.generators.base import (
    FeatureFamily,
    Ids,
    check_dtype,
    check_features,
    check_images,
)
from visionshare.generators.checks import check_whole
from visionshare.generators.contributions import Contributions, Numbers, clipped_boxes, pixel_boxes
from visionshare.generators.inputs import raster_shape
from visionshare.generators.layer_summary import LayerSummary
from visionshare.generators.layers.family.layer import FeatureLayer
from visionshare.generators.layers.forward import Forward
from visionshare.generators.layers.layer import Fitted, Layer
from visionshare.generators.layers.registry import layer_class
from visionshare.generators.layers.shared_windows import SharedLayers
from visionshare.generators.layers.units.layer import UnitLayer
from visionshare.generators.lazy_images import ComputedImages
from visionshare.generators.parameters import unfitted_copy
from visionshare.generators.states import (
    Arrays,
    State,
    StateAndArrays,
    arrays_below,
    check_image_shape,
    check_state,
    family_state,
)

if TYPE_CHECKING:
    from visionshare.codegen.c_writer import Unit, Writer
    from visionshare.codegen.onnx_graph import Graph
    from visionshare.codegen.whole_numbers import WholeScores

_MOST_LAYERS = 16
_LARGEST_OUTPUT = 2**26
# What is made of layers and weights when it is first needed.
_MADE = ("_forward", "_scores", "_windows")


class Network(FeatureFamily):
    """Features that layers compute one after the other; a few of the last one's outputs.

    A pool for greedy search is a network whose last layer has many candidates. The cells of a
    template are a group: learners choose them together, at the cost of one template. Fine-tuning
    moves all layers.

    Parameters
    ----------
    layers : sequence of Layer
        Such as ``[Deslant(), Templates(8, 5, pool=2), Templates(300, 3, grid=3)]``.
    random_state : int, default 0
        Seed; each layer draws its own numbers.

    Attributes
    ----------
    layers_ : list of Fitted
    places_ : ndarray of shape (n_features_,), int64
        Where each feature is in the flattened output of the last layer.
    n_features_ : int
    image_shape_ : tuple of int

    References
    ----------
    T. Serre, L. Wolf, T. Poggio et al., "Robust object recognition with cortex-like mechanisms",
    PAMI 29, 2007: templates and maxima, layer by layer.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from visionshare.generators.layers.templates.layer import Templates
    >>> images = (load_digits().images * 15).astype(np.uint8)
    >>> layers = [Templates(4, 3, pool=2, n_patches=900), Templates(9, 2, grid=2, n_patches=900)]
    >>> family = Network(layers).fit(images)
    >>> family.n_features_, family.take([0, 5]).macs()
    (36, 1328)
    """

    name = "network"
    tunable_on_maps = True
    layers_: list[Fitted]
    places_: np.ndarray

    def __init__(self, layers: Sequence[Layer] = (), random_state: int = 0) -> None:
        self.layers = layers
        self.random_state = random_state

    @classmethod
    def of(
        cls, layers: Sequence[Fitted], places: np.ndarray, image_shape: tuple[int, ...]
    ) -> Network:
        """Return the features at some places of what fitted layers give.

        Raises
        ------
        InputError
            If the layers do not follow each other, or a place is none.
        """
        shape = raster_shape(image_shape)
        for layer in layers:
            if tuple(layer.in_shape) != shape:
                raise InputError("layers", layer.in_shape, f"a layer of images of shape {shape}")
            shape = layer.out_shape
            if float(np.prod(shape, dtype=np.float64)) > _LARGEST_OUTPUT:
                raise InputError("layers", shape, f"outputs of at most {_LARGEST_OUTPUT} values")
        made = cls()
        made.layers_ = list(layers)
        made.image_shape_ = tuple(image_shape)
        made.places_ = check_features(np.asarray(places), int(np.prod(shape)))
        made.n_features_ = len(made.places_)
        return made

    def check_parameters(self) -> None:
        """Check all layers and their parameters, without images."""
        listed = isinstance(self.layers, (list, tuple)) and 1 <= len(self.layers) <= _MOST_LAYERS
        if not listed or not all(isinstance(layer, Layer) for layer in self.layers):
            accepted = f"a list of 1 to {_MOST_LAYERS} layers, such as [Templates(16)]"
            raise InputError("layers", self.layers, accepted)
        check_whole("random_state", self.random_state, least=0)
        for layer in self.layers:
            layer.check_parameters()

    def fit(self, images: np.ndarray, y: np.ndarray | None = None) -> Network:
        """Fit the layers one after the other, each to what those before it make of images.

        Raises
        ------
        InputError
            If a parameter is out of range or asks for more memory than there is, or the images
            are too small or hold too few different patches.
        """
        self.check_parameters()
        raster = self._see(images)
        fitted: list[Fitted] = []
        inputs: Any = raster
        for number, layer in enumerate(self.layers):
            rng = np.random.default_rng([self.random_state, number])
            fitted.append(unfitted_copy(layer).fit(inputs, y, rng))
            inputs = self._computed(raster, fitted)
        made = Network.of(fitted, fitted[-1].ordered_outputs(), self.image_shape_)
        self.layers_ = fitted
        self.places_ = made.places_
        self.n_features_ = made.n_features_
        self._forget()
        return self

    def _computed(self, raster: Any, layers: list[Fitted]) -> ComputedImages:
        """Return what layers make of images, computed when it is asked for."""
        forward = Forward(list(layers))
        keeps_bytes = all(layer.keeps_bytes for layer in layers)
        are_bytes = keeps_bytes and raster.dtype == np.uint8
        dtype = np.uint8 if are_bytes else np.float32

        def compute(images: np.ndarray) -> np.ndarray:
            return forward.outputs(np.asarray(images), 1).astype(dtype, copy=False)

        return ComputedImages(raster, compute, layers[-1].out_shape, dtype)

    @cached_property
    def _forward(self) -> Forward:
        return Forward(self.layers_)

    def _forget(self) -> None:
        """Drop what was made of former layers."""
        for name in _MADE:
            vars(self).pop(name, None)

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        for name in _MADE:
            state.pop(name, None)
        return state

    @property
    def groups(self) -> np.ndarray | None:
        """Group of each feature: the cells of a template."""
        return self.layers_[-1].groups(self.places_)

    def transform(self, images: np.ndarray, features: Ids = None, n_jobs: int = 1) -> np.ndarray:
        raster = check_images(images, self.image_shape_)
        if features is not None:
            ids = check_features(features, self.n_features_)
            if len(ids) < self.n_features_:
                return self.take(ids).transform(images, None, n_jobs)
            return self._forward.picked(raster, self.places_[ids], n_jobs)
        return self._forward.picked(raster, self.places_, n_jobs)

    def transform_columns(
        self, images: np.ndarray, features: Ids = None, n_jobs: int = 1, dtype: str = "float32"
    ) -> np.ndarray:
        check_dtype(dtype)
        return np.ascontiguousarray(self.transform(images, features, n_jobs).T, dtype)

    def weighted_sums(self, images: np.ndarray, weights: np.ndarray, n_jobs: int = 1) -> np.ndarray:
        raster = check_images(images, self.image_shape_)
        scorer: Forward = self._kept("_scores", weights, Forward)
        return scorer.values(raster, n_jobs)

    def window_sums(
        self,
        image: np.ndarray,
        ys: np.ndarray,
        xs: np.ndarray,
        weights: np.ndarray,
        n_jobs: int = 1,
    ) -> np.ndarray:
        """Return the weighted sums of windows, which share first layers where this saves work."""
        raster = check_images(image[None])[0]
        shared: SharedLayers = self._kept("_windows", weights, SharedLayers)
        return shared.values(raster, ys, xs, n_jobs)

    def _kept(self, name: str, weights: np.ndarray, make: Callable[[list[Fitted]], Any]) -> Any:
        """Return what is made of the layers and one that sums; kept for the last weights."""
        known = vars(self).get(name)
        if known is not None and known[0] is weights:
            return known[1]
        made = make(self._with_sums(weights))
        # Weights that can be written to may change.
        if not weights.flags.writeable:
            setattr(self, name, (weights, made))
        return made

    def _with_sums(self, weights: np.ndarray) -> list[Fitted]:
        """Return the layers and one more that sums."""
        shape = self.layers_[-1].out_shape
        every = np.zeros((len(weights), int(np.prod(shape))), np.float32)
        np.add.at(every.T, self.places_, np.asarray(weights, np.float32).T)
        sums = UnitLayer(shape, every, np.zeros(len(weights), np.float32), "none")
        return [*self.layers_, sums]

    def block_ids(self, features: np.ndarray) -> list[np.ndarray]:
        """Return these ids in groups that share the work of the layers before the last."""
        ids = check_features(features, self.n_features_)
        block = self.layers_[-1].blocks(self.places_[ids])
        return [ids[block == number] for number in np.unique(block)]

    def contributions(
        self, image: np.ndarray, weights: np.ndarray, numbers: Numbers = None
    ) -> Contributions:
        """Return what the features of one image add to weighted sums, and where they are.

        Last layers of units share what they add among their inputs.
        """
        image = np.asarray(image)
        raster = check_images(image[None], self.image_shape_)
        places = self.places_
        rest = np.zeros(len(weights))
        layers = list(self.layers_)
        of_outputs = np.asarray(weights, np.float64)
        # 1) go back through units: sums of units are sums of their inputs
        while len(layers) > 1 and isinstance(layers[-1], UnitLayer):
            units = layers[-1]
            layers = layers[:-1]
            values = Forward(layers).outputs(raster, 1).reshape(-1)
            spread = np.zeros((len(of_outputs), len(units.directions)))
            np.add.at(spread.T, places, of_outputs.T)
            of_outputs, added = units.shares(values, spread)
            rest = rest + added
            places = layers[-1].ordered_outputs()
            of_outputs = of_outputs[:, places]
            numbers = None
        # 2) what is left are features of the image, or of what the layers before make of it
        network = Network.of(layers, places, self.image_shape_)
        last = layers[-1]
        if isinstance(last, FeatureLayer):
            inner = network._inner_image(image)
            of_all = np.zeros((len(of_outputs), last.family.n_features_))
            np.add.at(of_all.T, places, of_outputs.T)
            same = np.array_equal(places, np.arange(last.family.n_features_))
            parts = last.family.contributions(inner, of_all, numbers if same else None)
            outer = network._outer_boxes(raster, parts.boxes)
            return replace(parts, boxes=outer).plus(rest)
        found = network.transform(image[None])[0]
        boxes = network.boxes(image)
        return Contributions.of(self.name, found, of_outputs, boxes, numbers).plus(rest)

    def _inner_image(self, image: np.ndarray) -> np.ndarray:
        """Return what the family of the last layer sees of one image."""
        raster = check_images(image[None], self.image_shape_)
        last = self.layers_[-1]
        assert isinstance(last, FeatureLayer)
        values = self._forward.inputs_of_layers(raster)[-1].reshape(1, -1)
        are_bytes = raster.dtype == np.uint8 and all(one.keeps_bytes for one in self.layers_[:-1])
        return last.images(values, are_bytes)[0]

    def boxes(self, image: np.ndarray) -> np.ndarray:
        """Return the pixels that each feature responded to, (n_features_, 4).

        Of a maximum, those of the patch where it is; of its whole cell where the maximum is 0.
        """
        image = np.asarray(image)
        raster = check_images(image[None], self.image_shape_)
        last = self.layers_[-1]
        if isinstance(last, FeatureLayer):
            boxes = last.family.boxes(self._inner_image(image))[self.places_]
        else:
            boxes = self._last_boxes(last, raster)
        return self._outer_boxes(raster, boxes)

    def _outer_boxes(self, raster: np.ndarray, boxes: np.ndarray) -> np.ndarray:
        """Return the pixels that boxes of the last layer's input depend on."""
        inputs = self._forward.inputs_of_layers(raster)
        for layer, values in zip(self.layers_[-2::-1], inputs[-2::-1], strict=True):
            boxes = layer.outer_boxes(values[0].reshape(layer.in_shape), boxes)
        return clipped_boxes(boxes, self.image_shape_)

    def _last_boxes(self, last: Fitted, raster: np.ndarray) -> np.ndarray:
        """Return the boxes of the features in the last layer's input."""
        inputs = self._forward.inputs_of_layers(raster)[-1]
        cells = pixel_boxes(self.places_, last.out_shape)
        whole = last.outer_boxes(inputs[0].reshape(last.in_shape), cells)
        if last.has_places:
            _, places = self._forward.with_places(raster, 1)
            found = places[0].reshape(-1)[self.places_].astype(np.int64)
            return np.where((found >= 0)[:, None], last.place_boxes(found), whole)
        return whole

    def macs(self, features: Ids = None) -> int:
        ids = check_features(features, self.n_features_)
        if len(ids) == 0:
            return 0
        network = self
        if any(layer.reads_some_channels for layer in self.layers_[1:]):
            # What these features do not need of the layers before is not computed.
            network = self.take(ids)
            ids = np.arange(len(ids))
        return network._shared_macs + network.layers_[-1].macs(network.places_[ids])

    @property
    def _shared_macs(self) -> int:
        return sum(layer.macs() for layer in self.layers_[:-1])

    def _added_macs(self, chosen: np.ndarray, features: np.ndarray) -> np.ndarray:
        last = self.layers_[-1]
        first = 0 if len(chosen) else self._shared_macs
        if any(layer.reads_some_channels for layer in self.layers_[1:]):
            return super()._added_macs(chosen, features)
        each = last.added_macs(self.places_[features], self.places_[chosen])
        return super()._added_macs(chosen, features) if each is None else each + first

    def layer_summaries(self) -> list[LayerSummary]:
        """Return one line for each layer."""
        lines = []
        for number, layer in enumerate(self.layers_):
            outputs = self.places_ if number == len(self.layers_) - 1 else None
            macs = layer.macs(outputs)
            held = layer.n_parameters
            line = LayerSummary(layer.kind, layer.out_shape, layer.n_templates, held, macs)
            lines.append(line)
        return lines

    def describe(self, feature: int) -> dict[str, Any]:
        """Return what the last layer says of the feature."""
        number = int(check_features(np.array([feature]), self.n_features_)[0])
        return self.layers_[-1].describe(int(self.places_[number]))

    def take(self, features: np.ndarray) -> Network:
        ids = check_features(features, self.n_features_)
        if len(ids) == 0:
            return Network.of(self.layers_, self.places_[ids], self.image_shape_)
        layers = list(self.layers_)
        # 1) the last layer keeps what the features need
        last = layers[-1].take(self.places_[ids])
        layers[-1] = last.layer
        # 2) so do the layers before it, as far as channels are independent of each other
        channels = last.channels
        for number in range(len(layers) - 2, -1, -1):
            if channels is None:
                break
            rows, columns, n = layers[number].out_shape
            wanted = (np.arange(rows * columns)[:, None] * n + channels).ravel()
            smaller = layers[number].take(wanted)
            if smaller.layer.out_shape[2] > len(channels):
                break
            layers[number + 1] = layers[number + 1].take_channels(channels)
            layers[number] = smaller.layer
            channels = smaller.channels
        return Network.of(layers, last.outputs, self.image_shape_)

    def to_state(self) -> StateAndArrays:
        states: list[dict[str, Any]] = []
        arrays: dict[str, np.ndarray] = {"places": self.places_}
        for number, layer in enumerate(self.layers_):
            states.append({"kind": layer.kind, **layer.to_state()})
            arrays.update({f"{number}.{name}": array for name, array in layer.arrays.items()})
        return family_state(self, layers=states), arrays

    @classmethod
    def from_state(cls, state: State, arrays: Arrays) -> Network:
        check_state(state, arrays, cls.name, {"places": 1})
        image_shape = check_image_shape(state.get("image_shape"))
        states = state.get("layers")
        if not isinstance(states, list) or not 1 <= len(states) <= _MOST_LAYERS:
            raise InputError("layers", type(states).__name__, f"a list of 1 to {_MOST_LAYERS}")
        shape = raster_shape(image_shape)
        layers: list[Fitted] = []
        for number, own in enumerate(states):
            if not isinstance(own, Mapping):
                raise InputError("layers", type(own).__name__, "tables")
            part = arrays_below(f"{number}.", arrays)
            layers.append(layer_class(own.get("kind"), fitted=True).from_state(own, part, shape))
            shape = layers[-1].out_shape
        return cls.of(layers, arrays["places"], image_shape)

    def check_tunable(self) -> None:
        """Check that gradients reach every layer that moves."""
        layers: Sequence[Any] = self.layers_ if self.is_fitted else self.layers
        moving = [k for k, layer in enumerate(layers) if layer.check_moves()]
        if not moving:
            raise InputError("family", "a network without parameters", "layers that move")
        for layer in layers[moving[0] + 1 :]:
            layer.check_passes_gradients()

    @property
    def in_whole_numbers(self) -> bool:  # type: ignore[override]
        """Whether all layers compute with integers, so that features are whole numbers."""
        return all(layer.takes_bytes for layer in self.layers_)

    def to_c(self, writer: Writer) -> Unit:
        """Return the unit of the first layer, which calls the others."""
        from visionshare.generators.layers.c import emit
        from visionshare.generators.layers.integer_c.small import emit as emit_integers

        return emit_integers(self, writer) if self.in_whole_numbers else emit(self, writer)

    def to_whole_scores(
        self, writer: Writer, weights: np.ndarray, intercept: np.ndarray
    ) -> WholeScores | None:
        """Return the scores in integers, where all layers and all weights are integers."""
        from visionshare.generators.layers.integer_c.whole import scores

        return scores(self, writer, weights, intercept) if self.in_whole_numbers else None

    def to_onnx(self, graph: Graph) -> str:
        """Return the name of the features in a graph."""
        from visionshare.generators.layers.onnx import emit

        return emit(self, graph)


def with_units(family: FeatureFamily, units: UnitLayer) -> Network:
    """Return a network with a last layer of units."""
    if isinstance(family, Network):
        layers = list(family.layers_)
        places = family.places_
    else:
        layers = [FeatureLayer(raster_shape(family.image_shape_), family)]
        places = np.arange(family.n_features_)
    shape = layers[-1].out_shape
    directions = np.zeros((len(units.directions), int(np.prod(shape))), np.float32)
    directions[:, places] = units.directions
    last = UnitLayer(shape, directions, units.offsets, units.activation)
    return Network.of([*layers, last], np.arange(len(directions)), family.image_shape_)
