"""The features of another family, of images whose slant was taken out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from visionshare.errors import InputError
from visionshare.generators.around import FamilyAround
from visionshare.generators.base import FeatureFamily, check_images
from visionshare.generators.computed import ComputedImages
from visionshare.generators.contributions import clipped_boxes
from visionshare.generators.nested import parts_from_state, parts_to_state
from visionshare.generators.parameters import unfitted_copy
from visionshare.generators.states import check_state, family_state
from visionshare.resources import run_blocks

__all__ = ["Deslanted", "deslanted"]

# Sums of a row's values and of their moments, and the two pixels that each one is made of.
MACS_PER_VALUE = 4
_ACCEPTED = "images of shape (n, H, W) or (n, H, W, C)"
# Images of one call of the kernel.
_AT_ONCE = 64


def deslanted(images: np.ndarray, n_jobs: int = 1) -> np.ndarray:
    """Return images whose rows are moved so that the mean column is the same in all of them.

    Handwriting leans; what it says does not depend on that. The shear is along the rows, about
    the center of mass, by the slope of the columns' mean over the rows, at most 1.

    Parameters
    ----------
    images : ndarray of shape (n, H, W) or (n, H, W, C), uint8 or float
        Light ink on a dark ground: a value is a weight, a negative one no weight.
    n_jobs : int, default 1
        Threads; no image depends on it.

    Returns
    -------
    ndarray
        Like images; float32 where they are not bytes.

    Raises
    ------
    InputError
        If they are no such images.

    Examples
    --------
    >>> leaning = np.eye(5, dtype=np.uint8)[None] * 9
    >>> deslanted(leaning)[0, :, 2].tolist()
    [9, 9, 9, 9, 9]
    """
    images = np.asarray(images)
    if images.ndim == 2:
        raise InputError("images", images.shape, _ACCEPTED)
    return _deslanted(check_images(images), n_jobs).reshape(images.shape)


def _deslanted(images: np.ndarray, n_jobs: int) -> np.ndarray:
    """Return deslanted images of checked ones, (n, H, W, C)."""
    from visionshare.generators.deslanted.kernels import deslant

    images = np.ascontiguousarray(images)
    out, half = np.empty_like(images), np.float32(0.5 if images.dtype == np.uint8 else 0)

    def block(start: int, stop: int) -> None:
        deslant(images[start:stop], half, out[start:stop])

    run_blocks(block, len(images), _AT_ONCE, n_jobs)
    return out


class Deslanted(FamilyAround):
    """The features of a family, of images whose slant was taken out first.

    What a feature has to know of handwriting is less where none of it leans. Deslanting costs
    four multiply-accumulates per pixel, once for all features; see :func:`deslanted`.

    Parameters
    ----------
    family : FeatureFamily
        Unfitted.

    Attributes
    ----------
    part_ : FeatureFamily
        The fitted family.
    n_features_ : int
    image_shape_ : tuple of int

    Examples
    --------
    >>> from visionshare import Pixels
    >>> leaning = np.eye(5, dtype=np.uint8)[None] * 255
    >>> family = Deslanted(Pixels()).fit(leaning)
    >>> family.transform(leaning).reshape(5, 5)[:, 2].tolist()
    [1.0, 1.0, 1.0, 1.0, 1.0]
    """

    name: ClassVar[str] = "deslanted"

    def __init__(self, family: Any = None) -> None:
        self.family = family

    @classmethod
    def of(cls, part: FeatureFamily) -> Deslanted:
        """Return the features of a fitted family, of deslanted images."""
        return cls(unfitted_copy(part))._with(part)

    def _with(self, part: FeatureFamily) -> Deslanted:
        self.part_, self.n_features_ = part, part.n_features_
        self.image_shape_ = tuple(part.image_shape_)
        return self

    def fit(self, images: np.ndarray, y: np.ndarray | None = None) -> Deslanted:
        """Fit a copy of the family to deslanted images."""
        self.check_parameters()
        raster = self._see(images)
        if len(self.image_shape_) == 1:
            raise InputError("images", np.shape(images), _ACCEPTED)
        seen = ComputedImages(images, self.inner_images, self.image_shape_, raster.dtype)
        return self._with(unfitted_copy(self.family).fit(seen, y))

    def _inner_shape(self) -> tuple[int, ...]:
        return self.image_shape_

    def around(self, part: FeatureFamily) -> Deslanted:
        return self._like()._with(part)

    def inner_images(self, images: np.ndarray, n_jobs: int = 1) -> np.ndarray:
        """Return deslanted images of the shape that the family knows."""
        return _deslanted(check_images(images, self.image_shape_), n_jobs).reshape(np.shape(images))

    def outer_boxes(self, image: np.ndarray, boxes: np.ndarray) -> np.ndarray:
        """Return the smallest boxes (n, 4) of the image that hold the sheared ones."""
        from visionshare.generators.deslanted.kernels import slant_of

        slant, middle = slant_of(check_images(np.asarray(image)[None], self.image_shape_)[0])
        moves = [slant * (boxes[:, 0] - middle), slant * (boxes[:, 1] - 1 - middle)]
        # A moved pixel lies between two others.
        least, most = np.floor(np.minimum(*moves)), np.ceil(np.maximum(*moves))
        moved = np.stack([boxes[:, 0], boxes[:, 1], boxes[:, 2] + least, boxes[:, 3] + most], 1)
        return clipped_boxes(moved, self.image_shape_)

    @property
    def shared_macs(self) -> int:
        """Multiply-accumulates per image of deslanting."""
        return MACS_PER_VALUE * int(np.prod(self.image_shape_))

    def describe(self, feature: int) -> dict[str, Any]:
        """Return what the family says of the feature."""
        return {**self.part_.describe(feature), "deslanted": True}

    def to_state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        states, arrays = parts_to_state([self.part_])
        return family_state(self, parts=states), arrays

    @classmethod
    def from_state(cls, state: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Deslanted:
        check_state(state, arrays, cls.name, {})
        shape, parts = parts_from_state(state, arrays)
        if len(parts) != 1 or len(shape) < 2:
            raise InputError("parts", len(parts), "one family of images")
        return cls.of(parts[0])
