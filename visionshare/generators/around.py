"""Families around another one: the same features, of images that are made from the images."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, TypeVar

import numpy as np

from visionshare.errors import InputError
from visionshare.generators.base import FeatureFamily, Ids, check_dtype, check_features
from visionshare.generators.computed import ComputedImages, image_batches
from visionshare.generators.contributions import Contributions, whole_boxes
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

    def computed(self, images: Any) -> ComputedImages:
        """Return what the family inside sees of images, computed when it is asked for."""
        return ComputedImages(images, self.inner_images, self._inner_shape(), np.float32)

    def _inner_shape(self) -> tuple[int, ...]:
        """Return the shape of one image of the family inside, which may not be fitted yet."""
        return tuple(self.part_.image_shape_)

    def _inner(self, images: np.ndarray, n_jobs: int) -> Iterator[np.ndarray]:
        """Yield what the family inside sees of images, batch by batch."""
        images = np.asarray(images)
        # The images that are made, and what the family inside makes of them.
        for batch in image_batches(len(images), 8.0 * math.prod(self._inner_shape())):
            yield self.inner_images(images[batch], n_jobs)

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
        inner = self._inner(images, n_jobs)
        parts = [self.part_.transform(batch, features, n_jobs) for batch in inner]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def transform_columns(
        self, images: np.ndarray, features: Ids = None, n_jobs: int = 1, dtype: str = "float32"
    ) -> np.ndarray:
        check_dtype(dtype)
        images = np.asarray(images)
        out, start = np.empty((self._n_of(features), len(images)), dtype), 0
        for inner in self._inner(images, n_jobs):
            stop = start + len(inner)
            columns = self.part_.transform_columns(inner, features, n_jobs, dtype)
            out[:, start:stop], start = columns, stop
        return out

    def _n_of(self, features: Ids) -> int:
        return len(check_features(features, self.n_features_))

    def weighted_sums(self, images: np.ndarray, weights: np.ndarray, n_jobs: int = 1) -> np.ndarray:
        parts = self._inner(images, n_jobs)
        return np.concatenate([self.part_.weighted_sums(p, weights, n_jobs) for p in parts])

    def contributions(
        self,
        image: np.ndarray,
        weights: np.ndarray,
        numbers: Sequence[int] | np.ndarray | None = None,
    ) -> Contributions:
        """Return what the features of the family inside add, with the pixels that they saw."""
        image = np.asarray(image)
        inner = self.inner_images(image[None])[0]
        parts = self.part_.contributions(inner, weights, numbers)
        return parts.in_boxes(self.outer_boxes(image, parts.boxes))

    def boxes(self, image: np.ndarray) -> np.ndarray:
        """Return the pixels that each feature of the family inside saw, (n_features_, 4)."""
        image = np.asarray(image)
        return self.outer_boxes(image, self.part_.boxes(self.inner_images(image[None])[0]))

    def outer_boxes(self, image: np.ndarray, boxes: np.ndarray) -> np.ndarray:
        """Return the pixels of an image that boxes of what is made of it see; all where unknown.

        Parameters
        ----------
        image : ndarray of shape image_shape_
        boxes : ndarray of shape (n, 4)

        Returns
        -------
        ndarray of shape (n, 4), float64
        """
        return whole_boxes(len(boxes), self.image_shape_)

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
