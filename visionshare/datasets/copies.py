"""Examples that are copies of each other: they train together or test together."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np

from visionshare.files.fingerprints import file_digest

_DIGEST = 16


def groups_of_copies(images: Iterable[Any]) -> np.ndarray:
    """Return a number (n,) for each image; equal images, and files of equal content, share it."""
    # Groups are numbered in the order of their first images.
    return group_numbers(map(_digest, images))


def image_digests(images: Iterable[Any]) -> list[str]:
    """Return what tells each image from others, as hexadecimal digits."""
    return [_digest(image).hex() for image in images]


def group_numbers(keys: Iterable[Hashable]) -> np.ndarray:
    """Return a number (n,) for each key; equal keys share it, the first key has 0."""
    numbers: dict[Hashable, int] = {}
    return np.array([numbers.setdefault(key, len(numbers)) for key in keys], np.int64)


def joined_groups(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return groups (n,) in which examples are together that are so in one of two groupings."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    _, one = np.unique(first, return_inverse=True)
    _, other = np.unique(second, return_inverse=True)
    # Each example connects its two groups.
    n = int(one.max(initial=-1)) + 1
    size = n + int(other.max(initial=-1)) + 1
    edges = coo_array((np.ones(len(one)), (one, n + other)), shape=(size, size))
    _, component = connected_components(edges, directed=False)
    return group_numbers(component[one].tolist())


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
