"""Units whose directions and offsets gradients move, of features that move too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np

if TYPE_CHECKING:
    from visionshare.generators.tuning import TunableOnMaps
    from visionshare.generators.units.family import Units

__all__ = ["TunableUnits", "tunable"]


def tunable(family: Units) -> TunableUnits:
    """Return the units of a fitted family as a function of parameters that gradients move."""
    return TunableUnits(family)


class TunableUnits:
    """Units of features: directions, offsets, and what the family inside has.

    Parameters
    ----------
    family : Units
        Of a family that is tunable itself.

    Attributes
    ----------
    parameters : list of ndarray, float32
        Directions (n, p) whose columns have a mean square of 2/p at the start, offsets (n,), and
        those of the family inside.
    """

    def __init__(self, family: Units) -> None:
        self._part, self._like = family.part_.tunable(), family.take(np.arange(family.n_features_))
        p = max(1, family.directions_.shape[1])
        size = np.sqrt(np.mean(np.square(family.directions_), axis=0) * p / 2)
        self._size = np.where(size > 0, size, 1).astype(np.float32)
        self._directions = family.directions_ / self._size
        self._offsets = family.offsets_.copy()
        self.parameters = [self._directions, self._offsets, *self._part.parameters]
        self.templates = tuple(2 + position for position in self._part.templates)

    def forward(self, images: np.ndarray, n_jobs: int = 1) -> tuple[np.ndarray, Any]:
        """Return units (n, n_features), float32, and what :meth:`backward` needs."""
        inputs, seen = self._part.forward(images, n_jobs)
        inputs = inputs * self._size
        sums = inputs @ self._directions.T + self._offsets
        return self._like.activated(sums), (inputs, sums, seen)

    def backward(
        self, images: np.ndarray, values: np.ndarray, seen: Any, G: np.ndarray, n_jobs: int = 1
    ) -> list[np.ndarray]:
        """Return the gradients in the parameters of Σ_ij G_ij u_ij."""
        inputs, sums, inner = seen
        D = self._slopes(sums, G)
        of_part = self._part.backward(
            images, inputs / self._size, inner, self._in_inputs(D), n_jobs
        )
        return [D.T @ inputs, D.sum(axis=0), *of_part]

    def image_gradients(
        self, images: np.ndarray, values: np.ndarray, seen: Any, G: np.ndarray, n_jobs: int = 1
    ) -> np.ndarray:
        """Return the gradients in the images' values of Σ_ij G_ij u_ij, float32."""
        inputs, sums, inner = seen
        G = self._in_inputs(self._slopes(sums, G))
        part = cast("TunableOnMaps", self._part)
        return part.image_gradients(images, inputs / self._size, inner, G, n_jobs)

    def _slopes(self, sums: np.ndarray, G: np.ndarray) -> np.ndarray:
        """Return the gradients in the sums."""
        slope = sums > 0 if self._like.activation == "relu" else 2 * sums
        return np.asarray(G * slope, np.float32)

    def _in_inputs(self, D: np.ndarray) -> np.ndarray:
        return np.asarray((D @ self._directions) * self._size, np.float32)

    def moved(self) -> None:
        """Take on the current parameters."""
        self._part.moved()

    def family(self) -> Units:
        """Return the family with the current parameters."""
        directions = self._directions * self._size
        units = self._like.take(np.arange(self._like.n_features_))
        return units.of(self._part.family(), directions, self._offsets.copy())
