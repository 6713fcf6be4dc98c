"""A family whose parameters gradients move, as a layer."""

from __future__ import annotations

from typing import Any

import numpy as np

from visionshare.generators.layers.family.layer import FeatureLayer
from visionshare.generators.layers.moving import Gradients, Moving


class MovingFamily(Moving):
    """The features of a family that is tunable itself."""

    _fitted: FeatureLayer

    def __init__(self, layer: FeatureLayer) -> None:
        super().__init__(layer)
        self._features: Any = layer.family.tunable()
        self.parameters = self._features.parameters
        self.templates = self._features.templates

    def layer(self) -> FeatureLayer:
        return FeatureLayer(self._fitted.in_shape, self._features.family())

    def moved(self) -> None:
        self._features.moved()

    def _images(self, inputs: np.ndarray) -> np.ndarray:
        return inputs.reshape(len(inputs), *self._fitted.family.image_shape_)

    def forward(self, inputs: np.ndarray, n_jobs: int) -> tuple[np.ndarray, Any]:
        """Return the features (n, 1, 1, n_features), and what the family needs to go back."""
        values, seen = self._features.forward(self._images(inputs), n_jobs)
        return values.reshape(len(inputs), *self._fitted.out_shape), (values, seen)

    def backward(
        self, inputs: np.ndarray, seen: Any, G: np.ndarray, n_jobs: int, below: bool
    ) -> Gradients:
        """Return the gradients in the family's parameters, and in the inputs."""
        values, inner = seen
        images = self._images(inputs)
        gradients = G.reshape(values.shape)
        own = self._features.backward(images, values, inner, gradients, n_jobs)
        if not below:
            return own, None
        of_images = self._features.image_gradients(images, values, inner, gradients, n_jobs)
        return own, of_images.reshape(inputs.shape)


moving = MovingFamily
