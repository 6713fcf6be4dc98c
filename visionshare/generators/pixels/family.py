"""Pixels, or the columns of a table."""

from __future__ import annotations

from typing import Any

import numpy as np

from visionshare.generators.base import (
    FeatureFamily,
    Ids,
    check_feature,
    check_features,
    check_images,
)
from visionshare.generators.contributions import pixel_boxes
from visionshare.generators.inputs import flattened, pixel_position
from visionshare.generators.states import Arrays, State, StateAndArrays, family_state, unfitted


class Pixels(FeatureFamily):
    """Each value of an image, or of a table's row, is a feature. uint8 is read as value / 255.

    Attributes
    ----------
    image_shape_ : tuple of int
    n_features_ : int
    ids_ : ndarray of int64
        Which values of the flattened image.

    Examples
    --------
    >>> import numpy as np
    >>> Pixels().fit(np.eye(3)).transform(np.eye(3), [2]).ravel().tolist()
    [0.0, 0.0, 1.0]
    """

    name = "pixels"

    def fit(self, images: np.ndarray, y: np.ndarray | None = None) -> Pixels:
        """Remember the shape of the images."""
        self._see(images)
        self.n_features_ = int(np.prod(self.image_shape_))
        self.ids_ = np.arange(self.n_features_)
        return self

    def transform(self, images: np.ndarray, features: Ids = None, n_jobs: int = 1) -> np.ndarray:
        ids = self.ids_[check_features(features, self.n_features_)]
        images = check_images(images, self.image_shape_)
        values = flattened(images)[:, ids].astype(np.float32)
        if images.dtype == np.uint8:
            values *= np.float32(1 / 255)
        return values

    def boxes(self, image: np.ndarray) -> np.ndarray:
        """Return the pixels themselves, (n_features_, 4)."""
        return pixel_boxes(self.ids_, self.image_shape_)

    def macs(self, features: Ids = None) -> int:
        """Return 0: a pixel is read, not computed."""
        check_features(features, self.n_features_)
        return 0

    def _added_macs(self, chosen: np.ndarray, features: np.ndarray) -> np.ndarray:
        return np.zeros(len(features), np.int64)

    def _added_bytes(self, chosen: np.ndarray, features: np.ndarray) -> np.ndarray:
        return np.full(len(features), self.ids_.itemsize)

    def describe(self, feature: int) -> dict[str, Any]:
        """Return the pixel's row, column and channel."""
        number = self.ids_[check_feature(feature, self.n_features_)]
        return {"kind": "pixel", "position": pixel_position(number, self.image_shape_)}

    def take(self, features: np.ndarray) -> Pixels:
        chosen = self._like()
        chosen.ids_ = self.ids_[check_features(features, self.n_features_)]
        chosen.n_features_ = len(chosen.ids_)
        return chosen

    def to_state(self) -> StateAndArrays:
        """Return the shape and the ids."""
        return family_state(self), {"ids": self.ids_}

    @classmethod
    def from_state(cls, state: State, arrays: Arrays) -> Pixels:
        family = unfitted(cls, state, arrays, {"ids": 1})
        family.ids_ = check_features(arrays["ids"], int(np.prod(family.image_shape_)))
        family.n_features_ = len(family.ids_)
        return family
