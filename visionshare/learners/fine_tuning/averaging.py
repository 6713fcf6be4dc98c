"""Moving averages of parameters, which vary less from step to step than the parameters do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np


class Averages:
    """Exponential moving averages of parameters, that can take their place."""

    def __init__(self, parameters: Sequence[np.ndarray], decay: float) -> None:
        self._parameters = list(parameters) if decay else []
        self._decay = decay
        self.values: list[np.ndarray] = []
        self.restart()

    def update(self, steps: int) -> None:
        """Take on the parameters after a step, the ``steps``-th."""
        decay = min(self._decay, (1 + steps) / (10 + steps))
        for value, parameter in zip(self.values, self._parameters, strict=True):
            value += np.float32(1 - decay) * (parameter - value)

    def restart(self) -> None:
        """Set the averages to the parameters."""
        self.values = [p.copy() for p in self._parameters]

    def take_over(self) -> None:
        """Set the parameters to their averages."""
        for value, parameter in zip(self.values, self._parameters, strict=True):
            parameter[...] = value

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Have the averages stand for the parameters inside of a block."""
        moving = [p.copy() for p in self._parameters]
        self.take_over()
        try:
            yield
        finally:
            for parameter, value in zip(self._parameters, moving, strict=True):
                parameter[...] = value
