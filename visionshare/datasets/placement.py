"""Where the image of a classifier lies in the picture that it was made from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

__all__ = ["Box", "Placement"]

#: First row, last row (exclusive), first column, last column (exclusive).
Box = tuple[int, int, int, int]


@dataclass(frozen=True)
class Placement:
    """Which part of a picture became which part of an image.

    Parameters
    ----------
    part : tuple of int
        First row, last row (exclusive), first column and last column (exclusive) of what was cut
        out of the picture.
    place : tuple of int
        The same of where it lies in the image; the rest of the image is canvas.

    Examples
    --------
    >>> placement = Placement((10, 30, 0, 40), (1, 6, 0, 10))
    >>> placement.in_picture(np.array([[1, 2, 5, 10], [0, 1, 0, 1]])).tolist()
    [[10.0, 14.0, 20.0, 40.0], [6.0, 10.0, 0.0, 4.0]]
    """

    part: Box
    place: Box

    def in_picture(self, boxes: np.ndarray) -> np.ndarray:
        """Return boxes of the image in pixels of the picture; canvas lies outside of its part.

        Parameters
        ----------
        boxes : ndarray of shape (n, 4)

        Returns
        -------
        ndarray of shape (n, 4), float64
        """
        moved = np.array(boxes, np.float64).reshape(-1, 4)
        for first in (0, 2):
            (start, stop), (low, high) = (box[first : first + 2] for box in (self.part, self.place))
            scale = (stop - start) / max(1, high - low)
            moved[:, first : first + 2] = start + (moved[:, first : first + 2] - low) * scale
        return moved
