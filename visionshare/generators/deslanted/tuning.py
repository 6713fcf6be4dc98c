"""Features of deslanted images that gradients move."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from visionshare.generators.deslanted.family import Deslanted

__all__ = ["TunableDeslanted", "tunable"]


def tunable(family: Deslanted) -> TunableDeslanted:
    """Return the features of a fitted family as a function of parameters that gradients move."""
    return TunableDeslanted(family)


class TunableDeslanted:
    """Features of deslanted images whose parameters move as the family inside lets them.

    Parameters
    ----------
    family : Deslanted
        Of a family that is tunable itself.

    Attributes
    ----------
    parameters : list of ndarray, float32
        Those of the family inside.
    """

    def __init__(self, family: Deslanted) -> None:
        self._family, self._part = family, family.part_.tunable()
        self.parameters, self.filters = self._part.parameters, self._part.filters

    def forward(self, images: np.ndarray, n_jobs: int = 1) -> tuple[np.ndarray, Any]:
        """Return features (n, n_features), float32, and what :meth:`backward` needs."""
        straight = self._family.prepared(images, n_jobs)
        values, seen = self._part.forward(straight, n_jobs)
        return values, (straight, seen)

    def backward(
        self, images: np.ndarray, values: np.ndarray, seen: Any, G: np.ndarray, n_jobs: int = 1
    ) -> list[np.ndarray]:
        """Return the gradients in the parameters of Σ_if G_if x_if."""
        return self._part.backward(seen[0], values, seen[1], G, n_jobs)

    def moved(self) -> None:
        """Take on the current parameters."""
        self._part.moved()

    def family(self) -> Deslanted:
        """Return the family with the current parameters."""
        return type(self._family).of(self._part.family())
