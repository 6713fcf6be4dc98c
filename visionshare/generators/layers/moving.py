"""The protocol of layers whose parameters gradients move."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

if TYPE_CHECKING:
    from visionshare.generators.layers.integer_layer import IntegerLayer
    from visionshare.generators.layers.integers.numbers import Bits
    from visionshare.generators.layers.layer import Fitted

__all__ = ["Gradients", "Moving"]

#: Gradients in the parameters, and in the inputs where they are asked for.
Gradients = tuple[list[np.ndarray], np.ndarray | None]


class Moving(Protocol):
    """A layer as a function of parameters."""

    parameters: list[np.ndarray]
    templates: tuple[int, ...]

    def forward(self, inputs: np.ndarray, n_jobs: int) -> tuple[np.ndarray, Any]:
        """Return the outputs (n, *out_shape), float32, and what :meth:`backward` needs."""
        ...

    def backward(
        self, inputs: np.ndarray, seen: Any, G: np.ndarray, n_jobs: int, below: bool
    ) -> Gradients:
        """Return the gradients of Σ G · outputs."""
        ...

    def moved(self) -> None:
        """Take on the current parameters."""
        ...

    def layer(self) -> Fitted:
        """Return the layer with the current parameters."""
        ...

    def quantize(
        self, bits: Bits, inputs: np.ndarray, exponents: np.ndarray, n_jobs: int
    ) -> np.ndarray:
        """Round parameters and outputs from now on."""
        # Return the exponents of the output's channels.
        ...

    def integers(self) -> IntegerLayer:
        """Return the layer of integers that the rounded parameters are."""
        ...
