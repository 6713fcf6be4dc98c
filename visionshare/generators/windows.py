"""The windows of a larger image, as images of a family."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from visionshare.generators.checks import Ids

# Windows that are cut out and transformed together.
_AT_ONCE = 4096


def cut_windows(
    image: np.ndarray, ys: np.ndarray, xs: np.ndarray, shape: tuple[int, ...]
) -> np.ndarray:
    """Return the windows (len(ys) · len(xs), *shape) that begin at these rows and columns."""
    height, width = shape[:2]
    cut = [image[y : y + height, x : x + width] for y in ys.tolist() for x in xs.tolist()]
    return np.stack(cut).reshape(-1, *shape)


class Windows(ABC):
    """What a family makes of windows, each of them alone; some families share work among them."""

    n_features_: int
    image_shape_: tuple[int, ...]

    @abstractmethod
    def transform(self, images: np.ndarray, features: Ids = None, n_jobs: int = 1) -> np.ndarray:
        """Return features (n_images, n), float32."""

    @abstractmethod
    def weighted_sums(self, images: np.ndarray, weights: np.ndarray, n_jobs: int = 1) -> np.ndarray:
        """Return sums of all features times weights, (n_images, k), float32."""

    @property
    def shares_windows(self) -> bool:
        """Whether overlapping windows of a larger image share the family's work."""
        return False

    def transform_windows(
        self, image: np.ndarray, ys: np.ndarray, xs: np.ndarray, n_jobs: int = 1
    ) -> np.ndarray:
        """Return the features of the windows that begin at rows ``ys`` and columns ``xs``.

        Parameters
        ----------
        image : ndarray of shape (height, width) or (height, width, C)
        ys, xs : ndarray of int
            Evenly spaced, ascending.
        n_jobs : int, default 1
            Threads.

        Returns
        -------
        ndarray of shape (n_features_, len(ys), len(xs)), float32
        """
        out = np.empty((self.n_features_, len(ys), len(xs)), np.float32)
        at_once = max(1, _AT_ONCE // len(xs))
        for start in range(0, len(ys), at_once):
            rows = ys[start : start + at_once]
            windows = cut_windows(image, rows, xs, self.image_shape_)
            made = self.transform(windows, None, n_jobs).T
            out[:, start : start + at_once] = made.reshape(-1, len(rows), len(xs))
        return out

    def window_sums(
        self,
        image: np.ndarray,
        ys: np.ndarray,
        xs: np.ndarray,
        weights: np.ndarray,
        n_jobs: int = 1,
    ) -> np.ndarray:
        """Return :meth:`weighted_sums` of the windows that begin at rows ``ys`` and columns ``xs``.

        Parameters
        ----------
        image : ndarray of shape (height, width) or (height, width, C)
        ys, xs : ndarray of int
        weights : ndarray of shape (k, n_features_), float32
        n_jobs : int, default 1
            Threads.

        Returns
        -------
        ndarray of shape (len(ys) · len(xs), k), float32
        """
        windows = cut_windows(image, ys, xs, self.image_shape_)
        return self.weighted_sums(windows, weights, n_jobs)
