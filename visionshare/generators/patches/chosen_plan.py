"""What all ways of computing chosen features offer."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

__all__ = ["ChosenPlan"]


class ChosenPlan(ABC):
    """Everything about chosen features that does not depend on the image, made once.

    Attributes
    ----------
    n_features : int
    """

    n_features: int

    @abstractmethod
    def set_parameters(
        self, templates: np.ndarray, row_masks: np.ndarray, col_masks: np.ndarray
    ) -> None:
        """Take on other templates, and masks that reach as far."""

    def transform(self, images: np.ndarray, n_jobs: int = 1) -> np.ndarray:
        """Return features (n, n_features), float32, of images (n, H, W, C)."""
        return self._transform(images, n_jobs, np.empty((0, 0), np.int32))

    def transform_with_positions(
        self, images: np.ndarray, n_jobs: int = 1
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return features, and where each maximum is: (n, n_features), int32.

        A position is row · columns + column of the template's response; −1 where the feature
        is 0.
        """
        positions = np.empty((len(images), self.n_features), np.int32)
        return self._transform(images, n_jobs, positions), positions

    @abstractmethod
    def _transform(self, images: np.ndarray, n_jobs: int, positions: np.ndarray) -> np.ndarray:
        """Return features; write positions, if there is room for them."""
