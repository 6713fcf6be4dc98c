"""Families around another one: the same features, of images that are made from the images."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, TypeVar

import numpy as np

from visionshare.errors import InputError
from visionshare.generators.base import FeatureFamily, Ids, check_features
from visionshare.generators.costs import held_bytes
from visionshare.generators.layers import LayerSummary

__all__ = ["FamilyAround", "TunableAround"]

Around = TypeVar("Around", bound="FamilyAround")


class FamilyAround(FeatureFamily):
    """The features of one family, of images that this one makes; they are made once for all.

    A family of this kind writes ``fit``, ``inner_images``, ``around``, ``shared_macs`` and its
    state; ``fit`` ends with :meth:`around`.

    Attributes
    ----------
    family : FeatureFamily
        Parameter: the family inside, unfitted.
    part_ : FeatureFamily
        The fitted family.
    """

    inner_families: ClassVar[str] = "one"
    family: Any
    part_: FeatureFamily

    @abstractmethod
    def inner_images(self, images: np.ndarray, n_jobs: int = 1) -> np.ndarray:
        """Return what the family inside sees of images of the shape that is known.

        Raises
        ------
        InputError
            If they are of another shape.
        """

    @abstractmethod
    def around(self: Around, part: FeatureFamily) -> Around:
        """Return a family that is fitted as this one is, around another fitted family."""

    @property
    @abstractmethod
    def shared_macs(self) -> int:
        """Multiply-accumulates per image of all that the family inside sees."""

    def check_parameters(self) -> None:
        """Check all parameters, the family's too, without images."""
        if not isinstance(self.family, FeatureFamily):
            raise InputError("family", self.family, "a family such as PatchTemplates()")
        self._check_own()
        self.family.check_parameters()

    def _check_own(self) -> None:
        """Check all parameters but the family."""

    @property
    def groups(self) -> np.ndarray | None:
        """Number of each column's group, as the family has them."""
        return self.part_.groups

    def sample(self, n: int, rng: np.random.Generator) -> np.ndarray:
        return self.part_.sample(n, rng)

    def transform(self, images: np.ndarray, features: Ids = None, n_jobs: int = 1) -> np.ndarray:
        return self.part_.transform(self.inner_images(images, n_jobs), features, n_jobs)

    def transform_columns(
        self, images: np.ndarray, features: Ids = None, n_jobs: int = 1, dtype: str = "float32"
    ) -> np.ndarray:
        inner = self.inner_images(images, n_jobs)
        return self.part_.transform_columns(inner, features, n_jobs, dtype)

    def weighted_sums(self, images: np.ndarray, weights: np.ndarray, n_jobs: int = 1) -> np.ndarray:
        return self.part_.weighted_sums(self.inner_images(images, n_jobs), weights, n_jobs)

    def block_ids(self, features: np.ndarray) -> list[np.ndarray]:
        """Return these ids in the groups of the family."""
        return self.part_.block_ids(features)

    def macs(self, features: Ids = None) -> int:
        """Return the multiply-accumulates per image of these features together."""
        if len(check_features(features, self.n_features_)) == 0:
            return 0
        return self.part_.macs(features) + self.shared_macs

    def _added_macs(self, chosen: np.ndarray, features: np.ndarray) -> np.ndarray:
        first = 0 if len(chosen) else self.shared_macs
        return self.part_.added_macs(chosen, features) + first

    def _added_bytes(self, chosen: np.ndarray, features: np.ndarray) -> np.ndarray:
        # What this family holds itself is there for all features.
        first = 0 if len(chosen) else held_bytes(self) - held_bytes(self.part_)
        return self.part_.added_bytes(chosen, features) + first

    def layers(self) -> list[LayerSummary]:
        """Return the layer that makes the images of the family inside, then those of the family."""
        own = LayerSummary(self.name, tuple(self.part_.image_shape_), None, 0, self.shared_macs)
        return [own, *self.part_.layers()]

    def take(self: Around, features: np.ndarray) -> Around:
        """Return the family restricted to these features, in this order."""
        return self.around(self.part_.take(features))

    def check_tunable(self) -> None:
        """Check that the parameters of the family inside can be moved."""
        self.family.check_tunable()


class TunableAround:
    """Features whose parameters move as the family inside lets them; what it sees stays.

    Parameters
    ----------
    family : FamilyAround
        Of a family that is tunable itself.

    Attributes
    ----------
    parameters : list of ndarray, float32
        Those of the family inside.
    """

    def __init__(self, family: FamilyAround) -> None:
        self._family, self._part = family, family.part_.tunable()
        self.parameters, self.templates = self._part.parameters, self._part.templates

    def forward(self, images: np.ndarray, n_jobs: int = 1) -> tuple[np.ndarray, Any]:
        """Return features (n, n_features), float32, and what :meth:`backward` needs."""
        inner = self._family.inner_images(images, n_jobs)
        values, seen = self._part.forward(inner, n_jobs)
        return values, (inner, seen)

    def backward(
        self, images: np.ndarray, values: np.ndarray, seen: Any, G: np.ndarray, n_jobs: int = 1
    ) -> list[np.ndarray]:
        """Return the gradients in the parameters of Σ_if G_if x_if."""
        return self._part.backward(seen[0], values, seen[1], G, n_jobs)

    def moved(self) -> None:
        """Take on the current parameters."""
        self._part.moved()

    def family(self) -> FamilyAround:
        """Return the family with the current parameters."""
        return self._family.around(self._part.family())
