"""Units: weighted sums of the features of a family, each through max(0, ·) or squared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from visionshare.errors import InputError
from visionshare.generators.base import FeatureFamily, Ids, check_features, check_images
from visionshare.generators.checks import check_choice, check_memory, check_whole
from visionshare.generators.contributions import Contributions
from visionshare.generators.costs import held_bytes
from visionshare.generators.layers import LayerSummary
from visionshare.generators.nested import parts_from_state, parts_to_state
from visionshare.generators.parameters import unfitted_copy
from visionshare.generators.states import family_state, unfitted
from visionshare.resources import product

__all__ = ["Units"]

ACTIVATIONS = ("relu", "square")
# Images that measure how features are scattered.
_MEASURED = 5000


class Units(FeatureFamily):
    """Functions of weighted sums of the features of a family.

    u_j = σ(Σ_i v_ji x_i + b_j), where σ is max(0, ·), or the square: sums of squares are all
    quadratic forms, so that few units stand for all products of pairs of features. A classifier
    of units is a network of one hidden layer. Drawn directions are a pool that a greedy search
    chooses from; fine-tuning moves them, see :class:`visionshare.learners.FineTuning`.

    Parameters
    ----------
    family : FeatureFamily
        Unfitted.
    n_units : int, default 48
    activation : {"relu", "square"}, default "relu"
    random_state : int, default 0
        Seed of the directions.

    Attributes
    ----------
    directions_ : ndarray of shape (n_features_, p), float32
        v, for p features of the family.
    offsets_ : ndarray of shape (n_features_,), float32
        b.
    part_ : FeatureFamily
        The fitted family.
    n_features_ : int
    image_shape_ : tuple of int

    References
    ----------
    G.-B. Huang, Q.-Y. Zhu, C.-K. Siew, "Extreme learning machine: theory and applications",
    Neurocomputing 70, 2006: random units under linear weights.

    Examples
    --------
    >>> from visionshare import Pixels
    >>> family = Units(Pixels(), n_units=3).fit(np.eye(2))
    >>> family.transform(np.eye(2)).shape, family.macs()
    ((2, 3), 6)
    """

    name: ClassVar[str] = "units"
    inner_families: ClassVar[str] = "one"
    part_: FeatureFamily

    def __init__(
        self,
        family: Any = None,
        n_units: int = 48,
        activation: str = "relu",
        random_state: int = 0,
    ) -> None:
        self.family = family
        self.n_units = n_units
        self.activation = activation
        self.random_state = random_state

    def check_parameters(self) -> None:
        """Check all parameters, the family's too, without images."""
        if not isinstance(self.family, FeatureFamily):
            raise InputError("family", self.family, "a family such as PatchTemplates()")
        self._check_own()
        self.family.check_parameters()

    def _check_own(self) -> None:
        check_whole("n_units", self.n_units)
        check_choice("activation", self.activation, ACTIVATIONS)

    def fit(self, images: np.ndarray, y: np.ndarray | None = None) -> Units:
        """Fit the family, and draw directions in its standardized features."""
        self.check_parameters()
        part = unfitted_copy(self.family).fit(images, y)
        check_memory("n_units", self.n_units, 8.0 * self.n_units * part.n_features_)
        features = part.transform(images[:: max(1, len(images) // _MEASURED)])
        drawn = self.drawn(part, features)
        return self._with(part, drawn.directions_, drawn.offsets_)

    def drawn(self, part: FeatureFamily, features: np.ndarray) -> Units:
        """Return units of a fitted family, drawn at random.

        Parameters
        ----------
        part : FeatureFamily
        features : ndarray of shape (m, p)
            The family's features of images that say how they are scattered: directions are drawn
            for standardized features, each of a variance of 2/p.
        """
        rng = np.random.default_rng(self.random_state)
        mean, deviation = features.mean(axis=0, dtype=np.float64), features.std(axis=0)
        scale = np.where(deviation > 0, 1 / np.where(deviation > 0, deviation, 1), 0)
        p = len(mean)
        directions = rng.standard_normal((self.n_units, p)) * np.sqrt(2 / max(1, p)) * scale
        return self.of(part, directions, -directions @ mean)

    def of(self, part: FeatureFamily, directions: np.ndarray, offsets: np.ndarray) -> Units:
        """Return units of a fitted family with these directions (n, p) and offsets (n,)."""
        family = unfitted_copy(part)
        units = Units(family, self.n_units, self.activation, self.random_state)
        return units._with(part, directions, offsets)

    def _with(self, part: FeatureFamily, directions: np.ndarray, offsets: np.ndarray) -> Units:
        self.part_, self.image_shape_ = part, tuple(part.image_shape_)
        self.directions_ = np.ascontiguousarray(directions, np.float32)
        self.offsets_ = np.ascontiguousarray(offsets, np.float32)
        self.n_features_ = len(self.offsets_)
        return self

    def transform(self, images: np.ndarray, features: Ids = None, n_jobs: int = 1) -> np.ndarray:
        check_images(images, self.image_shape_)
        directions, offsets = self.directions_, self.offsets_
        if features is not None:
            ids = check_features(features, self.n_features_)
            directions, offsets = directions[ids], offsets[ids]
        # Sums of float32 would depend on which units are asked for together.
        values = self.part_.transform(images, None, n_jobs).astype(np.float64)
        sums = product(values, directions.astype(np.float64).T) + offsets
        # Numbers of an untrusted file may overflow: units are then inf or nan.
        with np.errstate(over="ignore", invalid="ignore"):
            return self.activated(sums.astype(np.float32))

    def contributions(
        self,
        image: np.ndarray,
        weights: np.ndarray,
        numbers: Sequence[int] | np.ndarray | None = None,
    ) -> Contributions:
        """Return what the features of the family add through the units, and the units' offsets.

        A unit is s · (Σ_i v_i x_i + b), where s is 1 or 0 of max(0, ·), and the sum itself of a
        square: s is taken as it is for this image, so that each x_i has its share of the unit.
        """
        image = np.asarray(image)
        values = self.part_.transform(image[None])[0].astype(np.float64)
        sums = self.directions_.astype(np.float64) @ values + self.offsets_
        slopes = (sums > 0).astype(np.float64) if self.activation == "relu" else sums
        of_units = np.asarray(weights, np.float64) * slopes
        parts = self.part_.contributions(image, of_units @ self.directions_)
        return parts.plus(of_units @ self.offsets_)

    def activated(self, sums: np.ndarray) -> np.ndarray:
        """Return σ of sums, an array of the same shape."""
        return np.maximum(sums, 0) if self.activation == "relu" else np.square(sums)

    def macs(self, features: Ids = None) -> int:
        """Return the multiply-accumulates per image of these units together.

        All features of the family are counted, and their products with the directions; a square
        is one more.
        """
        n = len(check_features(features, self.n_features_))
        return n * self._macs_of_one + int(self.part_.macs()) if n else 0

    @property
    def _macs_of_one(self) -> int:
        return self.part_.n_features_ + (self.activation == "square")

    def layers(self) -> list[LayerSummary]:
        """Return the layers of the family, then the units."""
        n, held = self.n_features_, int(self.directions_.size + self.offsets_.size)
        own = LayerSummary(self.name, (n,), None, held, n * self._macs_of_one)
        return [*self.part_.layers(), own]

    def _added_macs(self, chosen: np.ndarray, features: np.ndarray) -> np.ndarray:
        """Return what each unit alone adds to the cost of the chosen ones, (n,) int64."""
        first = 0 if len(chosen) else int(self.part_.macs())
        return np.full(len(features), self._macs_of_one + first)

    def _added_bytes(self, chosen: np.ndarray, features: np.ndarray) -> np.ndarray:
        each = self.directions_[:1].nbytes + self.offsets_.itemsize
        return np.full(len(features), each + (0 if len(chosen) else held_bytes(self.part_)))

    def describe(self, feature: int) -> dict[str, Any]:
        """Return the unit's direction and offset."""
        j = int(check_features(np.array([feature]), self.n_features_)[0])
        return {
            "kind": "unit",
            "activation": self.activation,
            "direction": self.directions_[j],
            "offset": float(self.offsets_[j]),
        }

    def take(self, features: np.ndarray) -> Units:
        """Return the family restricted to these units, in this order."""
        ids = check_features(features, self.n_features_)
        return self.of(self.part_, self.directions_[ids], self.offsets_[ids])

    def check_tunable(self) -> None:
        """Check that the parameters of the family inside can be moved."""
        self.family.check_tunable()

    def to_state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        parameters = self.get_params(deep=False)
        del parameters["family"]
        states, arrays = parts_to_state([self.part_])
        arrays.update({"directions": self.directions_, "offsets": self.offsets_})
        return family_state(self, parameters=parameters, parts=states), arrays

    @classmethod
    def from_state(cls, state: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Units:
        """Return the family that :meth:`to_state` described."""
        dimensions = {"directions": 2, "offsets": 1}
        family = unfitted(cls, state, arrays, dimensions, without=("family",))
        family._check_own()
        _, parts = parts_from_state(state, arrays)
        if len(parts) != 1:
            raise InputError("parts", len(parts), "one family")
        directions, offsets = arrays["directions"], arrays["offsets"]
        shape = (len(offsets), parts[0].n_features_)
        if directions.shape != shape or directions.dtype != np.float32:
            raise InputError("directions", directions.shape, f"float32 of shape {shape}")
        if offsets.dtype != np.float32:
            raise InputError("offsets", offsets.dtype, "float32")
        return family.of(parts[0], directions, offsets)
