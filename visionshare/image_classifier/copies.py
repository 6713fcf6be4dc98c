"""Held-out examples: a copy of one is never among those that train."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from typing import Any

import numpy as np

from visionshare.datasets.sampling import stratified_mask
from visionshare.errors import InputError
from visionshare.fingerprints import file_digest
from visionshare.image_classifier.pictures import as_array

__all__ = ["groups_of_copies", "held_out_mask"]

_DIGEST = 16


def held_out_mask(images: Any, labels: np.ndarray, fraction: float, seed: int) -> np.ndarray:
    """Return a mask (n,) of a random fraction of each class, copies together.

    A copy counts for the class of the first of them. Where no image has a copy it is
    :func:`visionshare.datasets.sampling.stratified_mask`.

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
    groups = groups_of_copies(images)
    if len(groups) != len(labels):
        raise InputError("y", len(labels), f"a class for each of {len(groups)} images")
    # Groups are numbered by their first examples, which ascend.
    firsts = np.unique(groups, return_index=True)[1]
    return stratified_mask(labels[firsts], fraction, seed)[groups]


def groups_of_copies(images: Any) -> np.ndarray:
    """Return a number (n,) for each image; equal images, and files of equal content, share it.

    Examples
    --------
    >>> groups_of_copies([np.zeros((2, 2)), np.ones((2, 2)), np.zeros((2, 2))]).tolist()
    [0, 1, 0]
    """
    numbers: dict[bytes, int] = {}
    digests = map(_digest, _entries(images))
    return np.array([numbers.setdefault(digest, len(numbers)) for digest in digests], np.int64)


def _entries(images: Any) -> Iterable[Any]:
    if hasattr(images, "toarray"):
        return (row.toarray() for row in images.tocsr())
    if hasattr(images, "iloc"):
        return images.to_numpy()
    return as_array(images)


def _digest(entry: Any) -> bytes:
    if isinstance(entry, (str, os.PathLike)):
        try:
            return file_digest(entry).encode()
        except OSError:
            # Whoever reads it says what is wrong.
            return os.fsencode(entry)
    image = np.asarray(entry)
    digest = hashlib.blake2b(f"{image.shape}{image.dtype}".encode(), digest_size=_DIGEST)
    digest.update(np.ascontiguousarray(image).tobytes())
    return digest.digest()
