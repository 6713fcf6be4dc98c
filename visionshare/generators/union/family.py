"""Several families as one pool."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from visionshare.errors import InputError
from visionshare.generators.base import (
    FeatureFamily,
    Ids,
    check_dtype,
    check_feature,
    check_features,
    checked_images,
)
from visionshare.generators.contributions import Contributions, Numbers
from visionshare.generators.layer_summary import LayerSummary
from visionshare.generators.nested import DEEPEST, parts_from_state, parts_to_state
from visionshare.generators.parameters import unfitted_copy
from visionshare.generators.states import Arrays, State, StateAndArrays, check_state, family_state


def blocks_of(family: FeatureFamily) -> tuple[int, ...]:
    """Return widths of runs of features of one kind: :class:`visionshare.DenseClassifier` asks."""
    return getattr(family, "blocks", (family.n_features_,))


class UnionOfFamilies(FeatureFamily):
    """The features of several families, one family after the other.

    A search compares them all; features of different families share no work, and enter alone or
    in the groups of their family.

    Parameters
    ----------
    families : sequence of FeatureFamily
        Unfitted; unions among them are allowed, a few levels deep.

    Attributes
    ----------
    parts_ : list of FeatureFamily
        The fitted families.
    part_ : ndarray of shape (n_features_,), int64
        Which part a feature is of; the features of a part stand in the part's order.
    n_features_ : int
    image_shape_ : tuple of int

    Examples
    --------
    >>> import numpy as np
    >>> from visionshare import Pixels, RandomFourier
    >>> images = np.random.default_rng(0).random((6, 4, 4))
    >>> family = UnionOfFamilies([Pixels(), RandomFourier(n_pairs=3)]).fit(images)
    >>> family.transform(images).shape, family.groups[14:].tolist()
    ((6, 22), [14, 15, 16, 16, 17, 17, 18, 18])
    """

    name = "union"
    inner_families = "several"
    parts_: list[FeatureFamily]
    part_: np.ndarray

    def __init__(self, families: Sequence[FeatureFamily] = ()) -> None:
        self.families = families

    @classmethod
    def from_families(cls, families: Sequence[FeatureFamily]) -> UnionOfFamilies:
        """Return the unfitted union of other families."""
        return cls(families)

    @property
    def in_whole_numbers(self) -> bool:  # type: ignore[override]
        """Whether all features are whole numbers."""
        return all(part.in_whole_numbers for part in self.parts_)

    @property
    def bytes_elsewhere(self) -> int:
        """Bytes of all parts that a classifier's file only names."""
        return sum(part.bytes_elsewhere for part in self.parts_)

    @property
    def origins(self) -> tuple[str, ...]:
        """Networks of others that any part comes from, each once."""
        return tuple(dict.fromkeys(origin for part in self.parts_ for origin in part.origins))

    @property
    def blocks(self) -> tuple[int, ...]:
        """Widths of the blocks of all parts."""
        return tuple(width for part in self.parts_ for width in blocks_of(part))

    @property
    def groups(self) -> np.ndarray | None:
        """Number of each feature's group, None where no part has groups."""
        groups_of = [part.groups for part in self.parts_]
        if all(groups is None for groups in groups_of):
            return None
        numbers = np.empty(self.n_features_, np.int64)
        start = 0
        for p, groups in enumerate(groups_of):
            n = self.parts_[p].n_features_
            group = np.arange(n) if groups is None else np.unique(groups, return_inverse=True)[1]
            numbers[self._ids[p]] = start + group.reshape(-1)
            start += int(group.max(initial=-1)) + 1
        return numbers

    def check_parameters(self) -> None:
        """Check the parameters of all families without images."""
        if not self._listed():
            raise InputError("families", self.families, "a list of one or more families")
        level: list[Any] = [self]
        for _ in range(DEEPEST + 1):
            unions = [family for family in level if isinstance(family, UnionOfFamilies)]
            level = [family for union in unions for family in union._listed()]
        if level:
            raise InputError("families", "unions in unions", f"at most {DEEPEST} levels of them")
        for family in self.families:
            if not isinstance(family, FeatureFamily):
                raise InputError("families", family, "families such as Pixels()")
            family.check_parameters()

    def _listed(self) -> Sequence[FeatureFamily]:
        """Return the families, none where something else was given."""
        return self.families if isinstance(self.families, (list, tuple)) else ()

    def fit(self, images: np.ndarray, y: np.ndarray | None = None) -> UnionOfFamilies:
        """Fit a copy of each family to the same images.

        Raises
        ------
        InputError
            If a parameter of a family is out of range or the images do not fit.
        """
        self.check_parameters()
        self._see(images)
        families = [unfitted_copy(family).fit(images, y) for family in self.families]
        return self._side_by_side(families)

    @classmethod
    def of(cls, families: Sequence[FeatureFamily]) -> UnionOfFamilies:
        """Return the union of fitted families of images of one shape.

        Raises
        ------
        InputError
            If there is none, or their images are of several shapes.
        """
        parts = list(families)
        shapes = sorted({tuple(part.image_shape_) for part in families})
        if len(shapes) != 1:
            raise InputError("families", shapes, "fitted families of images of one shape")
        return cls._of(parts, shapes[0])._side_by_side(parts)

    @classmethod
    def _of(cls, parts: list[FeatureFamily], shape: tuple[int, ...]) -> UnionOfFamilies:
        family = cls(tuple(unfitted_copy(part) for part in parts))
        family.image_shape_ = shape
        return family

    def _side_by_side(self, parts: list[FeatureFamily]) -> UnionOfFamilies:
        return self._with(parts, np.repeat(np.arange(len(parts)), [p.n_features_ for p in parts]))

    def _with(self, parts: list[FeatureFamily], part: np.ndarray) -> UnionOfFamilies:
        self.parts_ = parts
        self.part_ = part
        self.n_features_ = len(part)
        order = np.argsort(part, kind="stable")
        ends = np.searchsorted(part[order], np.arange(len(parts) + 1))
        # Feature j of part p is feature _ids[p][j], and feature i is number _number[i] of its part.
        self._ids = [order[a:b] for a, b in pairwise(ends)]
        self._number = np.empty(len(part), np.int64)
        for ids in self._ids:
            self._number[ids] = np.arange(len(ids))
        return self

    def _split(self, features: Ids) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
        """Yield part, indices among these features, and their ids in the part."""
        ids = check_features(features, self.n_features_)
        part = self.part_[ids]
        for p in np.unique(part):
            rows = np.flatnonzero(part == p)
            yield int(p), rows, self._number[ids[rows]]

    def transform(self, images: np.ndarray, features: Ids = None, n_jobs: int = 1) -> np.ndarray:
        images = checked_images(images, self.image_shape_)
        n = len(check_features(features, self.n_features_))
        out = np.empty((len(images), n), np.float32)
        for p, columns, ids in self._split(features):
            # Without ids a part need not restrict itself at each call.
            chosen = None if features is None else ids
            out[:, columns] = self.parts_[p].transform(images, chosen, n_jobs)
        return out

    def weighted_sums(self, images: np.ndarray, weights: np.ndarray, n_jobs: int = 1) -> np.ndarray:
        """Return sums of all features times weights, (n_images, k), float32: the parts' sums."""
        images = checked_images(images, self.image_shape_)
        out = np.zeros((len(images), len(weights)), np.float32)
        # Entered once: for a single image this takes as long as computing a layer.
        with np.errstate(over="ignore", invalid="ignore"):
            for part, of_part in zip(self.parts_, self._shared_out(weights), strict=True):
                out += part.weighted_sums(images, of_part, n_jobs)
        return out

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        state.pop("_shared", None)
        return state

    def _shared_out(self, weights: np.ndarray) -> list[np.ndarray]:
        """Return the weights of each part: the same arrays again, which networks know plans by."""
        known: tuple[np.ndarray, list[np.ndarray]] | None = vars(self).get("_shared")
        if known is None or known[0] is not weights:
            runs = [len(ids) > 0 and ids[-1] - ids[0] == len(ids) - 1 for ids in self._ids]
            known = (
                weights,
                [
                    weights[:, ids[0] : ids[-1] + 1] if run else weights[:, ids]
                    for run, ids in zip(runs, self._ids, strict=True)
                ],
            )
            # What can be written to may change.
            if not weights.flags.writeable:
                self._shared = known
        return known[1]

    def window_sums(
        self,
        image: np.ndarray,
        ys: np.ndarray,
        xs: np.ndarray,
        weights: np.ndarray,
        n_jobs: int = 1,
    ) -> np.ndarray:
        """Return the weighted sums of windows: the parts' sums."""
        parts = zip(self.parts_, self._shared_out(weights), strict=True)
        sums = [part.window_sums(image, ys, xs, own, n_jobs) for part, own in parts]
        return np.asarray(np.sum(sums, axis=0))

    def contributions(
        self, image: np.ndarray, weights: np.ndarray, numbers: Numbers = None
    ) -> Contributions:
        """Return what the features of all families add, one family after the other."""
        ordered = np.arange(1, self.n_features_ + 1) if numbers is None else np.asarray(numbers)
        return Contributions.joined(
            [
                part.contributions(image, weights[:, ids], ordered[ids])
                for part, ids in zip(self.parts_, self._ids, strict=True)
            ]
        )

    def boxes(self, image: np.ndarray) -> np.ndarray:
        boxes = np.empty((self.n_features_, 4))
        for part, ids in zip(self.parts_, self._ids, strict=True):
            boxes[ids] = part.boxes(image)
        return boxes

    def transform_columns(
        self, images: np.ndarray, features: Ids = None, n_jobs: int = 1, dtype: str = "float32"
    ) -> np.ndarray:
        check_dtype(dtype)
        images = checked_images(images, self.image_shape_)
        n = len(check_features(features, self.n_features_))
        out = np.empty((n, len(images)), dtype)
        for p, rows, ids in self._split(features):
            chosen = None if features is None else ids
            out[rows] = self.parts_[p].transform_columns(images, chosen, n_jobs, dtype)
        return out

    @property
    def shares_windows(self) -> bool:
        """Whether a part of it shares work among the windows of a larger image."""
        return any(part.shares_windows for part in self.parts_)

    def transform_windows(
        self, image: np.ndarray, ys: np.ndarray, xs: np.ndarray, n_jobs: int = 1
    ) -> np.ndarray:
        out = np.empty((self.n_features_, len(ys), len(xs)), np.float32)
        for part, ids in zip(self.parts_, self._ids, strict=True):
            out[ids] = part.transform_windows(image, ys, xs, n_jobs)
        return out

    def block_ids(self, features: np.ndarray) -> list[np.ndarray]:
        """Return these ids in the blocks of their families."""
        return [
            self._ids[p][block]
            for p, _, ids in self._split(features)
            for block in self.parts_[p].block_ids(ids)
        ]

    def macs(self, features: Ids = None) -> int:
        """Return the multiply-accumulates per image: the sum over the families."""
        return sum(self.parts_[p].macs(ids) for p, _, ids in self._split(features))

    def layer_summaries(self) -> list[LayerSummary]:
        """Return the layers of all families, one family after the other, with its number."""
        return [
            replace(layer, name=f"{layer.name}, family {p}")
            for p, part in enumerate(self.parts_, 1)
            for layer in part.layer_summaries()
        ]

    def _added_macs(self, chosen: np.ndarray, features: np.ndarray) -> np.ndarray:
        added = np.empty(len(features), np.int64)
        for p, rows, before, ids in self._beside(chosen, features):
            added[rows] = self.parts_[p].added_macs(before, ids)
        return added

    def _added_bytes(self, chosen: np.ndarray, features: np.ndarray) -> np.ndarray:
        added = np.empty(len(features), np.int64)
        for p, rows, before, ids in self._beside(chosen, features):
            added[rows] = self.parts_[p].added_bytes(before, ids) + self.part_.itemsize
        return added

    def _beside(
        self, chosen: np.ndarray, features: np.ndarray
    ) -> Iterator[tuple[int, np.ndarray, np.ndarray, np.ndarray]]:
        """Yield part, indices among these features, ids of the chosen and of these in the part."""
        before = {p: ids for p, _, ids in self._split(chosen)}
        for p, rows, ids in self._split(features):
            yield p, rows, before.get(p, np.empty(0, np.int64)), ids

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names of the parts' features; of parts with one name, "lbp_1_17"."""
        names = [part.name for part in self.parts_]
        heads = [
            f"{name}_{number}_" if names.count(name) > 1 else name
            for number, name in enumerate(names)
        ]
        numbers = zip(self.part_.tolist(), self._number.tolist(), strict=True)
        return np.array([f"{heads[part]}{number}" for part, number in numbers], dtype=object)

    def describe(self, feature: int) -> dict[str, Any]:
        """Return what the feature's family says of it."""
        number = check_feature(feature, self.n_features_)
        return self.parts_[int(self.part_[number])].describe(int(self._number[number]))

    def take(self, features: np.ndarray) -> UnionOfFamilies:
        """Return the union restricted to these features, in this order; parts not used are left."""
        ids = check_features(features, self.n_features_)
        parts = [self.parts_[p].take(part_ids) for p, _, part_ids in self._split(ids)]
        return self._like()._with(
            parts, np.unique(self.part_[ids], return_inverse=True)[1].reshape(-1)
        )

    def to_state(self) -> StateAndArrays:
        """Return the states of the parts in a list; their arrays as "0.name" and so on."""
        states, arrays = parts_to_state(self.parts_)
        return family_state(self, parts=states), {"part": self.part_, **arrays}

    @classmethod
    def from_state(cls, state: State, arrays: Arrays) -> UnionOfFamilies:
        check_state(state, arrays, cls.name, {"part": 1})
        (shape, parts), part = parts_from_state(state, arrays), arrays["part"]
        sizes = [family.n_features_ for family in parts]
        if part.dtype != np.int64 or (part < 0).any() or (part >= len(parts)).any():
            raise InputError("part", part.shape, f"int64 numbers of {len(parts)} parts")
        if np.bincount(part, minlength=len(parts)).tolist() != sizes:
            raise InputError("part", "other numbers of features", f"{sizes} features of the parts")
        return cls._of(parts, shape)._with(parts, part)
