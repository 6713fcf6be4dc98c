"""Muon: steps of templates along matrices whose singular values are about equal."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from visionshare.machine.resources import single_threaded_blas
from visionshare.solvers.adam import MEAN, Adam

# With a rate of 1 the step of a template is so many times as long as the template at the start.
_TURN = 3.5
# Factors of X, X Xᵀ X and (X Xᵀ)² X: after five rounds singular values are between 0.7 and 1.2.
_FACTORS = (3.4445, -4.7750, 2.0315)
_ROUNDS = 5


class Muon(Adam):
    """Steps of templates along orthogonalized mean gradients; of all else, Adam's.

    All templates of a layer move, and in different directions, however unequal their gradients.

    Parameters
    ----------
    parameters : sequence of ndarray, float32
        Moved in place. Those of more than two dimensions are templates, one per row of the first
        axis.
    rates : sequence of float
        Peak rate of each array.

    References
    ----------
    K. Jordan et al., "Muon: an optimizer for hidden layers in neural networks", 2024.

    Examples
    --------
    >>> x = np.eye(2, 3, dtype=np.float32).reshape(2, 1, 3)
    >>> muon = Muon([x], [0.1])
    >>> for _ in range(30):
    ...     muon.step([x - 2])
    >>> bool(np.abs(x - 2).max() < 0.5)
    True
    """

    def __init__(self, parameters: Sequence[np.ndarray], rates: Sequence[float]) -> None:
        super().__init__(parameters, rates)
        #: Lengths of the templates at the start, by their positions.
        self._lengths = {
            number: float(np.sqrt(np.square(templates).sum() / len(templates)))
            for number, templates in enumerate(self.parameters)
            if templates.ndim > 2
        }

    def _along(self, gradients: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Take on gradients, and return the direction of each parameter's step."""
        along = super()._along(gradients)
        # Adam divides by this: its means begin with 0.
        grown = 1 - MEAN**self.steps
        with single_threaded_blas():
            for number, length in self._lengths.items():
                ahead = MEAN * self.means[number] + (1 - MEAN) * gradients[number]
                flat = orthogonalized(ahead.reshape(len(ahead), -1))
                along[number] = np.float32(_TURN * length * grown) * flat.reshape(ahead.shape)
        return along


def orthogonalized(matrix: np.ndarray) -> np.ndarray:
    """Return U Vᵀ, nearly, of a matrix U S Vᵀ: by rounds of Newton and Schulz.

    Examples
    --------
    >>> values = np.linalg.svd(orthogonalized(np.diag([4.0, 1.0, 0.1])), compute_uv=False)
    >>> bool(values.min() > 0.6 and values.max() < 1.3)
    True
    """
    is_tall = matrix.shape[0] > matrix.shape[1]
    X = matrix.T if is_tall else matrix
    X = X / (np.linalg.norm(X) + 1e-12)
    a, b, c = _FACTORS
    for _ in range(_ROUNDS):
        products = X @ X.T
        X = a * X + (b * products + c * (products @ products)) @ X
    return X.T if is_tall else X
