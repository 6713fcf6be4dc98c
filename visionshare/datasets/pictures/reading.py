"""Pictures of a set as one array: decoded by threads, prepared, and known by their pixels."""

from __future__ import annotations

import hashlib
import math
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import takewhile

import numpy as np

from visionshare.datasets.decoding import decode_array, decode_image
from visionshare.datasets.folders import file_text
from visionshare.datasets.notices import collect_notices
from visionshare.datasets.opening import open_picture
from visionshare.datasets.pictures.value_ranges import SetRange
from visionshare.datasets.preprocessing import Preprocessing
from visionshare.datasets.readers.picture_set import Content, PictureSet
from visionshare.errors import DataError
from visionshare.machine.memory import check_fits
from visionshare.machine.progress import stage
from visionshare.machine.resources import resolve_jobs, size_text

_MAX_BYTES = 8 << 30
_DIGEST = 16


@dataclass(frozen=True)
class ReadPictures:
    """Pictures that were read."""

    images: np.ndarray
    numbers: np.ndarray
    names: list[str]
    digests: list[bytes]
    broken: list[str]
    left_out: dict[str, int] = field(default_factory=dict)

    @property
    def short_names(self) -> tuple[str, ...]:
        """What tells the pictures apart in their names: what is behind the folder of all."""
        # Names between two that begin alike begin so, too.
        ends_of = min(self.names, default=""), max(self.names, default="")
        same = takewhile(lambda pair: pair[0] == pair[1], zip(*ends_of, strict=False))
        common = "".join(first for first, _ in same)
        ends = (common.rfind(mark) + len(mark) for mark in ("/", os.sep, ": ") if mark in common)
        first = max(ends, default=0)
        return tuple(file_text(name[first:]) for name in self.names)


def read_pictures(
    pictures: PictureSet,
    size: tuple[int, int] | None = None,
    mode: str | None = None,
    steps: Preprocessing | None = None,
    *,
    chosen: np.ndarray | None = None,
    skip_broken: bool = False,
    n_jobs: int = 1,
    max_bytes: int = _MAX_BYTES,
) -> ReadPictures:
    """Read the pictures of a set."""
    steps = Preprocessing() if steps is None or pictures.kind == "prepared" else steps
    n = len(pictures) if chosen is None else int(np.sum(chosen))
    images = _Images(n, size, max_bytes)
    if _are_taken_as_they_are(pictures, size, mode, steps):
        return _taken_as_they_are(pictures, chosen, max_bytes)
    names: list[str] = []
    digests: list[bytes] = []
    kept: list[int] = []
    broken: list[str] = []

    values = SetRange.of(pictures)

    def one(content: Content) -> tuple[np.ndarray, bytes] | DataError:
        try:
            pixels = _pixels(content, mode, steps, values)
        except DataError as error:
            return error
        digest = _digest(pixels)
        return images.fitted(pixels, steps, content.name), digest

    n_threads = resolve_jobs(n_jobs)
    with (
        collect_notices() as notices,
        ThreadPoolExecutor(n_threads) as threads,
        stage("reading", n) as advance,
    ):
        for numbers, contents in pictures.batches(chosen):
            # One thread would wait for another with each picture.
            found = threads.map(one, contents) if n_threads > 1 else map(one, contents)
            for number, content, result in zip(numbers, contents, found, strict=True):
                if isinstance(result, DataError):
                    broken.append(str(result))
                    continue
                images.add(result[0], content.name)
                names.append(content.name)
                digests.append(result[1])
                kept.append(number)
            advance(len(numbers))
    if broken and not skip_broken:
        raise DataError(broken_sentence(broken, n))
    if n and not kept:
        raise DataError(f"{pictures.name}: no picture can be read; the first: {broken[0]}")
    numbers_kept = np.array(kept, np.int64)
    return ReadPictures(images.filled(), numbers_kept, names, digests, broken, notices.pages)


def broken_sentence(broken: list[str], n: int) -> str:
    """Return how many of ``n`` pictures cannot be read, why the first cannot, and what to do."""
    return (
        f"{len(broken)} of {n} pictures cannot be read, the first: {broken[0]}; skip_broken "
        "(--skip-broken) leaves them out, and `visionshare data check` lists them"
    )


def _are_taken_as_they_are(
    pictures: PictureSet, size: tuple[int, int] | None, mode: str | None, steps: Preprocessing
) -> bool:
    """Return whether all are arrays of one shape and type, of which nothing is to be changed."""
    kinds = {(images.shape[1:], images.dtype) for _, images in pictures.blocks}
    if len(kinds) != 1:
        return False
    ((shape, dtype),) = kinds
    is_picture = len(shape) == 2 or (len(shape) == 3 and shape[2] in (1, 3, 4))
    if dtype not in (np.uint8, np.uint16) or not is_picture:
        return size is None
    own = {2: "gray", 3: "color"}[len(shape)]
    return (
        dtype == np.uint8
        and shape[2:] in ((), (3,))
        and size in (None, shape[:2])
        and mode in (None, own)
        and steps == Preprocessing()
    )


def _taken_as_they_are(
    pictures: PictureSet, chosen: np.ndarray | None, max_bytes: int
) -> ReadPictures:
    """Return arrays as pictures that were read, with few steps of the interpreter for each."""
    wanted = np.ones(len(pictures), bool) if chosen is None else chosen
    numbers = np.flatnonzero(wanted)
    names = [f"{name} {i}" for name, images in pictures.blocks for i in range(len(images))]
    if len(numbers) < len(names):
        names = [names[number] for number in numbers]
    name, first = pictures.blocks[0]
    _check_size(name, len(numbers), first.shape[1:], first.dtype, max_bytes)
    ends = np.cumsum([len(images) for _, images in pictures.blocks])[:-1]
    parts = [
        images if part.all() else images[part]
        for (_, images), part in zip(pictures.blocks, np.split(wanted, ends), strict=True)
    ]
    images = np.ascontiguousarray(parts[0] if len(parts) == 1 else np.concatenate(parts))
    return ReadPictures(images, numbers.astype(np.int64), names, _digests(images), [])


def _digests(images: np.ndarray) -> list[bytes]:
    """Return the digest of each image, see :func:`_digest`."""
    shape = images.shape[1:]
    start = hashlib.blake2b(repr((shape, str(images.dtype))).encode(), digest_size=_DIGEST)
    content = images.reshape(-1).view(np.uint8).data
    n_bytes = images[:1].nbytes
    digests = []
    for first in range(0, len(content), max(1, n_bytes)):
        digest = start.copy()
        digest.update(content[first : first + n_bytes])
        digests.append(digest.digest())
    return digests or [start.digest()] * len(images)


def _pixels(
    content: Content, mode: str | None, steps: Preprocessing, values: SetRange
) -> np.ndarray:
    name, data = content
    if not isinstance(data, np.ndarray):
        picture = open_picture(data, name=name)
        return decode_image(picture, mode or "gray", values.steps_for(picture, steps))
    is_picture = data.ndim == 2 or (data.ndim == 3 and data.shape[2] in (1, 3, 4))
    if data.dtype not in (np.uint8, np.uint16) or not is_picture:
        # Vectors, floats and images of other channels are taken as they are.
        return data
    if mode is None:
        mode = "gray" if data.ndim == 2 or data.shape[2] == 1 else "color"
    try:
        return decode_array(data, mode, steps)
    except DataError as error:
        raise DataError(f"{name}: {error}") from None


def _digest(pixels: np.ndarray) -> bytes:
    digest = hashlib.blake2b(repr((pixels.shape, str(pixels.dtype))).encode(), digest_size=_DIGEST)
    digest.update(np.ascontiguousarray(pixels).data)
    return digest.digest()


def _check_size(name: str, n: int, shape: tuple[int, ...], dtype: np.dtype, max_bytes: int) -> None:
    """Check that so many images are accepted, and that there is memory for them."""
    needed = n * math.prod(shape) * dtype.itemsize
    if needed > max_bytes:
        raise DataError(
            f"{name}: {n} images of shape {shape} take {size_text(needed)}, at "
            f"most {size_text(max_bytes)} are accepted; give a smaller size"
        )
    check_fits(f"{n} images of shape {shape}", needed, "a smaller size")


class _Images:
    """Images of one shape, whose number is known at most."""

    def __init__(self, n: int, size: tuple[int, int] | None, max_bytes: int) -> None:
        self._n, self._max_bytes, self._size = n, max_bytes, size
        self._images: np.ndarray | None = None
        self._filled = 0

    def fitted(self, pixels: np.ndarray, steps: Preprocessing, name: str) -> np.ndarray:
        """Return a picture in the size that is asked for."""
        if pixels.dtype != np.uint8 or pixels.ndim < 2:
            if self._size is not None and pixels.shape[:2] != self._size:
                raise DataError(
                    f"{name}: {pixels.dtype} of shape {pixels.shape}; only bytes are resized"
                )
            return pixels
        # Steps that crop leave pictures of one size in several: without a size, its own.
        size = (pixels.shape[0], pixels.shape[1]) if self._size is None else self._size
        if steps == Preprocessing() and size == pixels.shape[:2]:
            return pixels
        return steps.apply(pixels, size)

    def add(self, image: np.ndarray, name: str) -> None:
        """Take one more."""
        if self._images is None:
            _check_size(name, self._n, image.shape, image.dtype, self._max_bytes)
            self._images = np.empty((self._n, *image.shape), image.dtype)
        if image.shape != self._images.shape[1:]:
            shapes = f"shape {image.shape}, not {self._images.shape[1:]}"
            raise DataError(f"{name}: {shapes}; give a size")
        self._images[self._filled] = image
        self._filled += 1

    def filled(self) -> np.ndarray:
        """Return the images that were taken."""
        if self._images is None:
            return np.zeros((0, *(self._size or (0, 0))), np.uint8)
        return self._images[: self._filled]
