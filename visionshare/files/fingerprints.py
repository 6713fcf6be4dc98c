"""Fingerprints: the identity of an array or of a JSON-like description, as sha256."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from typing import IO, Any

import numpy as np

IMAGE_BLOCK = 256


def array_fingerprint(*arrays: np.ndarray) -> str:
    """Return the sha256 of dtype, shape and bytes of each array, in order."""
    digest = hashlib.sha256()
    for array in arrays:
        array = np.asarray(array)
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        if array.flags.c_contiguous:
            digest.update(array.reshape(-1).view(np.uint8).data if array.size else b"")
        else:
            for part in array:
                digest.update(np.ascontiguousarray(part).tobytes())
    return digest.hexdigest()


def content_digest(content: bytes) -> str:
    """Return the BLAKE3 digest of bytes, as hexadecimal digits."""
    from blake3 import blake3

    return str(blake3(content).hexdigest())


def file_digest(path: str | os.PathLike[str]) -> str:
    """Return the BLAKE3 digest of a file's content: read at memory speed, never held whole."""
    from blake3 import blake3

    digest = blake3()
    with open(path, "rb") as handle:
        while part := handle.read(1 << 22):
            digest.update(part)
    return str(digest.hexdigest())


def stream_sha256(file: IO[bytes]) -> str:
    """Return the sha256 of what is left of an open file, as hexadecimal digits."""
    digest = hashlib.sha256()
    while part := file.read(1 << 22):
        digest.update(part)
    return digest.hexdigest()


def images_fingerprint(images: np.ndarray) -> str:
    """Return the identity of images: :func:`joined_fingerprint` of their blocks."""
    blocks = [
        array_fingerprint(images[i : i + IMAGE_BLOCK]) for i in range(0, len(images), IMAGE_BLOCK)
    ]
    return joined_fingerprint(images.shape, blocks)


def joined_fingerprint(shape: tuple[int, ...], blocks: Sequence[str]) -> str:
    """Return the identity of images from their blocks' identities; they need not fit in memory."""
    return hashlib.sha256(json.dumps([list(shape), *blocks]).encode()).hexdigest()


def spec_fingerprint(spec: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> str:
    """Return the sha256 of a JSON-like description together with named arrays."""
    digest = hashlib.sha256(json.dumps(spec, sort_keys=True).encode())
    for name in sorted(arrays):
        digest.update(name.encode())
        digest.update(array_fingerprint(arrays[name]).encode())
    return digest.hexdigest()
