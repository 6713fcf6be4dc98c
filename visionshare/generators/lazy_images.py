"""Images that are made of others when they are asked for, some at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from visionshare.generators.inputs import raster_shape

#: What an evaluation holds at a time beside its images and its result, about.
WORKING_BYTES = 128 << 20
# Images of a batch at least: kernels work on so many together.
_LEAST = 16


def image_batches(n: int, bytes_per_image: float, budget: int = WORKING_BYTES) -> Iterator[slice]:
    """Yield the images of each batch: as many as a budget of memory holds, at least 16."""
    step = max(_LEAST, int(budget // max(1.0, bytes_per_image)) // _LEAST * _LEAST)
    for start in range(0, max(n, 1), step):
        yield slice(start, min(start + step, n))


class ComputedImages:
    """Images of which only those exist that were asked for last."""

    def __init__(
        self,
        images: Any,
        compute: Callable[[np.ndarray], np.ndarray],
        shape: tuple[int, ...],
        dtype: Any,
    ) -> None:
        self._images = images
        self._compute = compute
        self.shape = (len(images), *shape)
        self.dtype = np.dtype(dtype)

    @property
    def ndim(self) -> int:
        """Dimensions, with that of the images."""
        return len(self.shape)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> np.ndarray:
        return self._compute(self._images[rows]).reshape(-1, *self.shape[1:])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        out = np.empty(self.shape, self.dtype)
        for batch in image_batches(len(self), 4.0 * np.prod(self.shape[1:])):
            out[batch] = self[batch]
        return out if dtype is None else out.astype(dtype, copy=False)

    def raster(self) -> ComputedImages:
        """Return the same images as (n, H, W, C)."""
        shape = self.shape[1:]
        whole = raster_shape(shape)
        return ComputedImages(self._images, self._compute, whole, self.dtype)
