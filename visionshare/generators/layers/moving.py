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
    """A layer as a function of parameters.

    Attributes
    ----------
    parameters : list of ndarray, float32
        In units in which all can move at one rate; moved in place, then taken on by :meth:`moved`.
    templates : tuple of int
        Positions of the parameters that are templates, one per row of the first axis.
    """

    parameters: list[np.ndarray]
    templates: tuple[int, ...]

    def forward(self, inputs: np.ndarray, n_jobs: int) -> tuple[np.ndarray, Any]:
        """Return the outputs (n, *out_shape), float32, and what :meth:`backward` needs."""
        ...

    def backward(
        self, inputs: np.ndarray, seen: Any, G: np.ndarray, n_jobs: int, below: bool
    ) -> Gradients:
        """Return the gradients of Σ G · outputs.

        Parameters
        ----------
        inputs : ndarray of shape (n, *in_shape)
            As handed to :meth:`forward`.
        seen : object
            What it returned beside the outputs.
        G : ndarray of shape (n, *out_shape), float32
        n_jobs : int
            Threads; the result does not depend on it.
        below : bool
            Whether the gradients in the inputs are asked for.
        """
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
        """Round parameters and outputs from now on; return the exponents of the output's channels.

        Parameters
        ----------
        bits : Bits
        inputs : ndarray of shape (n, *in_shape), float32
            Whole multiples of 2^exponents that say how large values become.
        exponents : ndarray of shape (C,), int
        n_jobs : int
            Threads.
        """
        ...

    def integers(self) -> IntegerLayer:
        """Return the layer of integers that the rounded parameters are."""
        ...
