"""Adam: gradient steps of a size of their own for every parameter, for objectives seen in parts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

# Fraction of the peak rate that a cycle begins with.
_FIRST = 0.04
#: Decay of the means of gradients, and of their squares.
MEAN = 0.9
_SQUARES = 0.999


def one_cycle(step: int, steps: int, warm_up: float = 0.2) -> float:
    """Return the fraction of the peak rate at a step: up from 4 % to 1, then down to 0, as cosines.

    References
    ----------
    L. Smith, N. Topin, "Super-convergence: very fast training of neural networks using large
    learning rates", 2019.

    Examples
    --------
    >>> [round(one_cycle(t, 10), 2) for t in (0, 1, 2, 6, 9)]
    [0.04, 0.52, 1.0, 0.5, 0.04]
    """
    t = step / steps
    if t < warm_up:
        return _FIRST + (1 - _FIRST) * 0.5 * (1 - float(np.cos(np.pi * t / warm_up)))
    return 0.5 * (1 + float(np.cos(np.pi * (t - warm_up) / (1 - warm_up))))


class Adam:
    """Steps of mean gradient / root mean square gradient, each with a rate.

    Parameters
    ----------
    parameters : sequence of ndarray, float32
        Moved in place.
    rates : sequence of float
        Peak rate of each array.

    Attributes
    ----------
    means, squares : list of ndarray
        Running means of each parameter's gradients and of their squares.
    steps : int
        Steps so far.

    References
    ----------
    D. Kingma, J. Ba, "Adam: a method for stochastic optimization", ICLR 2015, algorithm 1.

    Examples
    --------
    >>> x = np.array([3.0], np.float32)
    >>> adam = Adam([x], [0.1])
    >>> for _ in range(200):
    ...     adam.step([2 * x])
    >>> bool(abs(x[0]) < 0.05)
    True
    """

    def __init__(
        self,
        parameters: Sequence[np.ndarray],
        rates: Sequence[float],
    ) -> None:
        self.parameters = list(parameters)
        self.rates = list(rates)
        self._ends = np.cumsum([p.size for p in self.parameters]).tolist()
        # All means end to end, and all squares: few operations instead of some for each array.
        self._mean = np.zeros(self._ends[-1] if self._ends else 0, np.float32)
        self._square = np.zeros_like(self._mean)
        self.means = self._parts(self._mean)
        self.squares = self._parts(self._square)
        self.steps = 0

    def _parts(self, flat: np.ndarray) -> list[np.ndarray]:
        """Return views of a flat array in the shapes of the parameters."""
        each = zip(self.parameters, self._ends, strict=True)
        return [flat[end - p.size : end].reshape(p.shape) for p, end in each]

    def step(self, gradients: Sequence[np.ndarray], fraction: float = 1.0) -> None:
        """Take a step along gradients, at a fraction of the peak rates."""
        self.steps += 1
        grown = 1 - MEAN**self.steps
        along = self._along(gradients)
        for parameter, step, rate in zip(self.parameters, along, self.rates, strict=True):
            parameter -= np.float32(fraction * rate / grown) * step

    def _along(self, gradients: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Take on gradients, and return their mean / root mean square for each parameter."""
        gradient = np.concatenate([g.ravel() for g in gradients])
        self._mean *= MEAN
        self._mean += (1 - MEAN) * gradient
        self._square *= _SQUARES
        self._square += (1 - _SQUARES) * np.square(gradient)
        root = np.sqrt(self._square / (1 - _SQUARES**self.steps))
        root += 1e-8
        return self._parts(self._mean / root)
