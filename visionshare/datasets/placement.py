"""Where the image of a classifier lies in the picture that it was made from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

#: First row, last row (exclusive), first column, last column (exclusive).
Box = tuple[int, int, int, int]


@dataclass(frozen=True)
class Placement:
    """Which part of a picture became which part of an image."""

    part: Box
    place: Box

    def in_picture(self, boxes: np.ndarray) -> np.ndarray:
        """Return boxes of the image in pixels of the picture; canvas lies outside of its part."""
        moved = np.array(boxes, np.float64).reshape(-1, 4)
        for first in (0, 2):
            (start, stop), (low, high) = (box[first : first + 2] for box in (self.part, self.place))
            scale = (stop - start) / max(1, high - low)
            moved[:, first : first + 2] = start + (moved[:, first : first + 2] - low) * scale
        return moved
