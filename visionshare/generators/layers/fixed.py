"""Layers without parameters that move: deslanting and channels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from visionshare.errors import InputError
from visionshare.generators.layers.forward import Forward

if TYPE_CHECKING:
    from visionshare.generators.layers.layer import Fitted
    from visionshare.generators.layers.moving import Gradients

__all__ = ["FixedLayer"]


class FixedLayer:
    """A layer that stays as it is, before all layers that move."""

    def __init__(self, layer: Fitted) -> None:
        self.parameters: list[np.ndarray] = []
        self.templates: tuple[int, ...] = ()
        self._layer = layer
        self._forward = Forward([layer])

    def layer(self) -> Fitted:
        """Return the layer."""
        return self._layer

    def moved(self) -> None:
        """Nothing moves."""

    def forward(self, inputs: np.ndarray, n_jobs: int) -> tuple[np.ndarray, Any]:
        """Return the outputs; bytes where the layer keeps them."""
        values = self._forward.outputs(inputs, n_jobs)
        keeps = self._layer.keeps_bytes and inputs.dtype == np.uint8
        return values.astype(np.uint8) if keeps else values, None

    def backward(
        self, inputs: np.ndarray, seen: Any, G: np.ndarray, n_jobs: int, below: bool
    ) -> Gradients:
        """Return no gradients."""
        if below:
            accepted = "layers of templates, units, or families that know gradients in images"
            raise InputError("layers", f"{self._layer.kind} after layers that move", accepted)
        return [], None

    def quantize(
        self, bits: Any, inputs: np.ndarray, exponents: np.ndarray, n_jobs: int
    ) -> np.ndarray:
        """Refuse: the layer has no form in integers here."""
        raise InputError("layers", self._layer.kind, "layers of templates and units")

    def integers(self) -> Any:
        """Refuse: the layer has no form in integers here."""
        raise InputError("layers", self._layer.kind, "layers of templates and units")
