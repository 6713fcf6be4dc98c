"""Chosen features whose parameters move: values, and gradients in the parameters.

A family whose parameters can move has a class with the methods of :class:`Tunable` in its folder,
and returns it from :meth:`visionshare.generators.base.FeatureFamily.tunable`.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np


class Tunable(Protocol):
    """Chosen features as a function of parameters, for learners that move them."""

    parameters: list[np.ndarray]
    templates: tuple[int, ...]

    def forward(self, images: np.ndarray, n_jobs: int = 1) -> tuple[np.ndarray, Any]:
        """Return features (n, n_features), float32, and what :meth:`backward` needs of them."""
        ...

    def backward(
        self, images: np.ndarray, values: np.ndarray, seen: Any, G: np.ndarray, n_jobs: int = 1
    ) -> list[np.ndarray]:
        """Return the gradients in the parameters of Σ_if G_if x_if."""
        ...

    def moved(self) -> None:
        """Take on the current parameters."""
        ...

    def family(self) -> Any:
        """Return the family of these features with the current parameters."""
        ...


class QuantizableTunable(Tunable, Protocol):
    """Features that whole numbers of few bits can stand for while they move."""

    def quantize(
        self, bits: Any, images: np.ndarray, exponents: np.ndarray, n_jobs: int = 1
    ) -> np.ndarray:
        """Round parameters and features from now on; return the exponents of the features."""
        ...

    def whole_layers(self) -> tuple[list[Any], np.ndarray]:
        """Return the layers that compute the features, and where in the last one each is."""
        ...
