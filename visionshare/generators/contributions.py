"""What the features of one image add to weighted sums of them, and where they responded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from visionshare.generators.pictures import Field

#: Numbers of features, as a report calls them; from 1 when None.
Numbers = Sequence[int] | np.ndarray | None


@dataclass(frozen=True)
class Contributions:
    """Parts of weighted sums of the features of one image: a sum is ``amounts`` and ``rest``."""

    families: tuple[str, ...]
    numbers: np.ndarray
    values: np.ndarray
    amounts: np.ndarray
    rest: np.ndarray
    boxes: np.ndarray

    @classmethod
    def of(
        cls,
        family: str,
        values: np.ndarray,
        weights: np.ndarray,
        boxes: np.ndarray,
        numbers: Numbers = None,
    ) -> Contributions:
        """Return value × weight for each feature of a family."""
        weights = np.asarray(weights, np.float64)
        values = np.asarray(values, np.float64)
        p = len(values)
        ordered = np.arange(1, p + 1) if numbers is None else np.asarray(numbers, np.int64)
        rest = np.zeros(len(weights))
        return cls((family,) * p, ordered, values, weights * values, rest, boxes)

    @classmethod
    def joined(cls, parts: Sequence[Contributions]) -> Contributions:
        """Return the parts of several, at least one, together."""
        return cls(
            tuple(name for part in parts for name in part.families),
            np.concatenate([part.numbers for part in parts]),
            np.concatenate([part.values for part in parts]),
            np.concatenate([part.amounts for part in parts], axis=1),
            np.sum([part.rest for part in parts], axis=0),
            np.concatenate([part.boxes for part in parts]),
        )

    @property
    def sums(self) -> np.ndarray:
        """The weighted sums, (k,): scores without intercepts."""
        return self.amounts.sum(axis=1) + self.rest

    def plus(self, rest: np.ndarray) -> Contributions:
        """Return the same with more that no feature adds, (k,)."""
        return replace(self, rest=self.rest + rest)


def whole_boxes(n: int, shape: tuple[int, ...]) -> np.ndarray:
    """Return boxes (n, 4) that hold a whole image; of a vector, one row."""
    height, width = (1, shape[0]) if len(shape) == 1 else shape[:2]
    return np.tile(np.array([0, height, 0, width], np.float64), (n, 1))


def clipped_boxes(boxes: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Return what of boxes lies in an image, at least the pixel that is nearest."""
    clipped = np.array(boxes, np.float64).reshape(-1, 4)
    limits = whole_boxes(1, shape)[0]
    for first, last in ((0, 1), (2, 3)):
        side = limits[last]
        clipped[:, first] = np.clip(clipped[:, first], 0, side - 1)
        clipped[:, last] = np.clip(clipped[:, last], clipped[:, first] + 1, side)
    return clipped


def pixel_boxes(indexes: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Return the boxes (n, 4) of single values of a flattened image."""
    where = np.unravel_index(np.asarray(indexes, np.int64), shape)
    row, col = (np.zeros_like(where[0]), where[0]) if len(shape) == 1 else where[:2]
    return np.stack([row, row + 1, col, col + 1], axis=1).astype(np.float64)


def seen_boxes(boxes: np.ndarray, rows: Field, cols: Field) -> np.ndarray:
    """Return what boxes of positions see of the layer below, (n, 4)."""
    seen = []
    for field, (first, last) in ((rows, (0, 1)), (cols, (2, 3))):
        seen.append(field.start + field.stride * boxes[:, first])
        seen.append(field.start + field.stride * (boxes[:, last] - 1) + field.side)
    return np.stack(seen, axis=1)
