"""HDF5 files of damaged heaps, packed chunks, values that are nowhere, very many small parts."""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from scripts.attack.costs.costly import Builder, Costly, loaded

__all__ = ["HDF5"]

_PIXELS = np.random.default_rng(0).integers(0, 256, (12, 8, 8), np.uint8)
_NAMES = [f"class-{number % 3}" for number in range(12)]


def _file(fill: Callable[[Any], None], **options: Any) -> bytes:
    import h5py

    file = io.BytesIO()
    with h5py.File(file, "w", **options) as opened:
        fill(opened)
    return file.getvalue()


def _set(images: Any, labels: Any, **options: Any) -> bytes:
    """Return a file of images and labels, each given as h5py's options or as values."""

    def fill(file: Any) -> None:
        for name, values in (("images", images), ("labels", labels)):
            given = values if isinstance(values, dict) else {"data": values}
            file.create_dataset(name, **given)

    return _file(fill, **options)


def _texts(names: list[str]) -> dict[str, Any]:
    import h5py

    return {"data": np.array(names, object), "dtype": h5py.string_dtype()}


@cache
def _seeds() -> list[bytes]:
    """Return small sets of every layout."""
    numbers = np.arange(12) % 3
    packed = {"data": _PIXELS, "chunks": (2, 8, 8), "compression": "gzip"}
    files = []
    for options in ({}, {"libver": "latest"}):
        files.append(_set(_PIXELS, _texts(_NAMES), **options))
        files.append(_set(_PIXELS, _texts(_NAMES) | {"chunks": (4,)}, **options))
        files.append(_set(packed, {"data": numbers, "chunks": (3,), "shuffle": True}, **options))
        files.append(_set(_PIXELS, numbers, **options))
    return files


def _heap(change: Callable[[bytearray, int], None]) -> Builder:
    """A set of texts whose first heap is changed."""

    def build(size: int, rng: np.random.Generator) -> bytes:
        n = size // 80
        images = np.zeros((n, 1, 1), np.uint8)
        content = bytearray(_set(images, _texts([f"{number:08}" for number in range(n)])))
        change(content, content.index(b"GCOL"))
        return bytes(content)

    return build


def _endless(content: bytearray, start: int) -> None:
    content[start + 16 : start + 32] = bytes(16)


def _numberless(content: bytearray, start: int) -> None:
    content[start + 16 : start + 18] = b"\0\0"


def _huge(content: bytearray, start: int) -> None:
    content[start + 24 : start + 32] = struct.pack("<Q", 1 << 40)


def _overlapping(size: int, rng: np.random.Generator) -> bytes:
    """References to a heap at every 16 bytes of a file, each of which ends with the file."""
    n = size // 48
    content = bytearray(_set(np.zeros((n, 1, 1), np.uint8), _texts(["a"] * n)))
    end = len(content)
    heaps = b"".join(struct.pack("<4sB3xQ", b"GCOL", 1, 16 * (n - number)) for number in range(n))
    import h5py

    with h5py.File(io.BytesIO(bytes(content)), "r") as file:
        offset = file["labels"].id.get_offset()
    for number in range(n):
        place = offset + 16 * number
        content[place : place + 16] = struct.pack("<IQI", 1, end + 16 * number, 1)
    return bytes(content) + heaps


def _one_text(size: int, rng: np.random.Generator) -> bytes:
    """Very many labels, all of which are one long text."""
    n = size // 17
    content = bytearray(_set(np.zeros((n, 1, 1), np.uint8), _texts(["a" * 60_000, *"b" * (n - 1)])))
    import h5py

    with h5py.File(io.BytesIO(bytes(content)), "r") as file:
        offset = file["labels"].id.get_offset()
    content[offset : offset + 16 * n] = content[offset : offset + 16] * n
    return bytes(content)


def _bomb(chunks: int) -> Builder:
    """Chunks that unpack to more than they may."""

    def build(size: int, rng: np.random.Generator) -> bytes:
        zeros = zlib.compress(bytes(1 << 24), 9)

        def fill(file: Any) -> None:
            shape = (chunks, 100, 100)
            images = file.create_dataset("images", shape, "u1", chunks=(1, 100, 100), compression=9)
            for number in range(chunks):
                images.id.write_direct_chunk((number, 0, 0), zeros)
            file["labels"] = np.arange(chunks) % 2

        return _file(fill)

    return build


def _nowhere(size: int, rng: np.random.Generator) -> bytes:
    return _set({"shape": (4000, 1000, 1000), "dtype": "u1"}, np.arange(4000) % 2)


def _zeros(size: int, rng: np.random.Generator) -> bytes:
    """A gigabyte of zeros, packed as well as gzip can."""
    zeros = zlib.compress(bytes(1 << 20), 9)

    def fill(file: Any) -> None:
        shape = (1000, 1024, 1024)
        images = file.create_dataset("images", shape, "u1", chunks=(1, 1024, 1024), compression=9)
        for number in range(1000):
            images.id.write_direct_chunk((number, 0, 0), zeros)
        file["labels"] = np.arange(1000) % 2

    return _file(fill)


def _chunked(size: int, rng: np.random.Generator) -> bytes:
    """Chunks of one value each."""
    n = min(size // 100, 30_000)
    images = {"data": np.zeros((n, 1, 1), np.uint8), "chunks": (1, 1, 1)}
    return _set(images, np.zeros(n, np.uint8))


def _unwritten(size: int, rng: np.random.Generator) -> bytes:
    """Chunks of one value each, none of which is there."""
    images = {"shape": (6000, 100, 100), "dtype": "u1", "chunks": (1, 1, 1)}
    return _set(images, np.zeros(6000, np.uint8))


def _pixels(size: int, rng: np.random.Generator) -> bytes:
    return _set(np.zeros((size // 2, 1, 1), np.uint8), np.zeros(size // 2, np.uint8))


def _links(size: int, rng: np.random.Generator) -> bytes:
    """Very many names in the folder of the arrays."""

    def fill(file: Any) -> None:
        file["images"] = _PIXELS
        file["labels"] = np.arange(12)
        for number in range(min(size // 300, 5000)):
            file[f"{number:06}"] = file["labels"]

    return _file(fill)


HDF5 = Costly(
    {
        "a heap of an endless object": _heap(_endless),
        "a heap of an object without a number": _heap(_numberless),
        "a heap of a huge object": _heap(_huge),
        "overlapping heaps": _overlapping,
        "one long text": _one_text,
        "a chunk that unpacks to more": _bomb(1),
        "chunks that unpack to more": _bomb(600),
        "a gigabyte of zeros": _zeros,
        "values that are nowhere": _nowhere,
        "tiny chunks": _chunked,
        "chunks that are nowhere": _unwritten,
        "images of a pixel": _pixels,
        "links": _links,
    },
    _seeds,
    loaded(".h5"),
)
