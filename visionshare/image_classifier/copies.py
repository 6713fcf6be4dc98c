"""Held-out examples: a copy of one is never among those that train."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from visionshare.datasets.copies import groups_of_copies
from visionshare.datasets.image_kinds import as_array
from visionshare.datasets.sampling import stratified_mask
from visionshare.errors import InputError

__all__ = ["held_out_mask"]


def held_out_mask(images: Any, labels: np.ndarray, fraction: float, seed: int) -> np.ndarray:
    """Return a mask (n,) of a random fraction of each class, copies together.

    As :func:`visionshare.datasets.sampling.stratified_mask` draws it from images of any form.

    Parameters
    ----------
    images : array or sequence
        Images, vectors or paths.
    labels : ndarray of shape (n,)
    fraction : float
        From 0 to 1.
    seed : int

    Raises
    ------
    InputError
        If there is not a label for each.

    Examples
    --------
    >>> images = np.arange(6).reshape(6, 1, 1) // 2
    >>> mask = held_out_mask(images, np.zeros(6), 1 / 3, 0)
    >>> int(mask.sum()), bool((mask[::2] == mask[1::2]).all())
    (2, True)
    """
    groups = groups_of_copies(_entries(images))
    if len(groups) != len(labels):
        raise InputError("y", len(labels), f"a class for each of {len(groups)} images")
    return stratified_mask(labels, fraction, seed, groups)


def _entries(images: Any) -> Iterable[Any]:
    if hasattr(images, "toarray"):
        return (row.toarray() for row in images.tocsr())
    if hasattr(images, "iloc"):
        return images.to_numpy()
    return as_array(images)
