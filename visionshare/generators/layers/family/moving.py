"""A family whose parameters gradients move, as a layer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from visionshare.errors import InputError
from visionshare.generators.layers.family.layer import FeatureLayer

if TYPE_CHECKING:
    from visionshare.generators.layers.moving import Gradients

__all__ = ["MovingFamily"]


class MovingFamily:
    """The features of a family that is tunable itself."""

    def __init__(self, layer: FeatureLayer) -> None:
        self._layer = layer
        self._features: Any = layer.family.tunable()
        self.parameters: list[np.ndarray] = self._features.parameters
        self.templates: tuple[int, ...] = self._features.templates

    def layer(self) -> FeatureLayer:
        """Return the layer with the current parameters."""
        return FeatureLayer(self._layer.in_shape, self._features.family())

    def moved(self) -> None:
        """Take on the current parameters."""
        self._features.moved()

    def _images(self, inputs: np.ndarray) -> np.ndarray:
        return inputs.reshape(len(inputs), *self._layer.family.image_shape_)

    def forward(self, inputs: np.ndarray, n_jobs: int) -> tuple[np.ndarray, Any]:
        """Return the features (n, 1, 1, n_features), and what the family needs to go back."""
        values, seen = self._features.forward(self._images(inputs), n_jobs)
        return values.reshape(len(inputs), *self._layer.out_shape), (values, seen)

    def backward(
        self, inputs: np.ndarray, seen: Any, G: np.ndarray, n_jobs: int, below: bool
    ) -> Gradients:
        """Return the gradients in the family's parameters, and in the inputs."""
        values, inner = seen
        images, gradients = self._images(inputs), G.reshape(values.shape)
        own = self._features.backward(images, values, inner, gradients, n_jobs)
        if not below:
            return own, None
        of_images = self._features.image_gradients(images, values, inner, gradients, n_jobs)
        return own, of_images.reshape(inputs.shape)

    def quantize(
        self, bits: Any, inputs: np.ndarray, exponents: np.ndarray, n_jobs: int
    ) -> np.ndarray:
        """Refuse: a family has no form in integers here."""
        raise InputError("layers", self._layer.family.name, "layers of templates and units")

    def integers(self) -> Any:
        """Refuse: a family has no form in integers here."""
        raise InputError("layers", self._layer.family.name, "layers of templates and units")
