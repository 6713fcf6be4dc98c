"""What a layer is while gradients move the parameters of a network."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from visionshare.errors import InputError
from visionshare.generators.layers.forward import Forward
from visionshare.generators.layers.layer import Fitted

if TYPE_CHECKING:
    from visionshare.generators.layers.integers.numbers import Bits

#: Gradients in the parameters, and in the inputs where they are asked for.
Gradients = tuple[list[np.ndarray], np.ndarray | None]


class Moving:
    """A layer that stays as it is; layers that move derive from this class."""

    def __init__(self, layer: Fitted) -> None:
        #: float32, in units in which all can move at one rate; moved in place.
        self.parameters: list[np.ndarray] = []
        #: Positions of the parameters that are templates, one per row of the first axis.
        self.templates: tuple[int, ...] = ()
        self._fitted = layer
        self._forward = Forward([layer])

    def layer(self) -> Fitted:
        """Return the layer with the current parameters."""
        return self._fitted

    def moved(self) -> None:
        """Take on the current parameters."""

    def forward(self, inputs: np.ndarray, n_jobs: int) -> tuple[np.ndarray, Any]:
        """Return the outputs (n, *out_shape), float32, and what :meth:`backward` needs."""
        values = self._forward.outputs(inputs, n_jobs)
        keeps = self._fitted.keeps_bytes and inputs.dtype == np.uint8
        return values.astype(np.uint8) if keeps else values, None

    def backward(
        self, inputs: np.ndarray, seen: Any, G: np.ndarray, n_jobs: int, below: bool
    ) -> Gradients:
        """Return the gradients of Σ G · outputs; those in the inputs where ``below``."""
        if below:
            accepted = "layers of templates, units, or families that know gradients in images"
            raise InputError("layers", f"{self._fitted.kind} after layers that move", accepted)
        return [], None

    def quantize(
        self, bits: Bits, inputs: np.ndarray, exponents: np.ndarray, n_jobs: int
    ) -> np.ndarray:
        """Round parameters and outputs from now on; return the exponents of output channels."""
        # Inputs are whole multiples of 2^exponents that say how large values become.
        raise InputError("layers", self._fitted.kind, "layers of templates and units")

    def integers(self) -> Fitted:
        """Return the layer of integers that the rounded parameters are."""
        raise InputError("layers", self._fitted.kind, "layers of templates and units")
