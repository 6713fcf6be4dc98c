"""Pictures of a set as one array: decoded by threads, prepared, and known by their pixels."""

from __future__ import annotations

import hashlib
import math
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import takewhile

import numpy as np

from visionshare.datasets.decoding import decode_array, decode_image
from visionshare.datasets.folders import file_text
from visionshare.datasets.notices import collect_notices
from visionshare.datasets.opening import SILENCE, open_picture
from visionshare.datasets.pictures.value_ranges import SetRange, are_pictures
from visionshare.datasets.preprocessing import Preprocessing
from visionshare.datasets.readers.picture_set import Content, PictureSet
from visionshare.errors import DataError
from visionshare.machine.memory import check_fits
from visionshare.machine.progress import stage
from visionshare.machine.resources import resolve_jobs, size_text

_MAX_BYTES = 8 << 30
_DIGEST = 16
_PLAIN = Preprocessing()


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
        ends = zip(min(self.names, default=""), max(self.names, default=""), strict=False)
        common = "".join(first for first, _ in takewhile(lambda pair: pair[0] == pair[1], ends))
        marks = [mark for mark in ("/", os.sep, ": ") if mark in common]
        first = max((common.rfind(mark) + len(mark) for mark in marks), default=0)
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
    if steps is None or pictures.kind == "prepared":
        steps = _PLAIN
    if _are_taken_as_they_are(pictures, size, mode, steps):
        return _taken_as_they_are(pictures, chosen, max_bytes)
    n = len(pictures) if chosen is None else int(np.sum(chosen))
    images: np.ndarray | None = None
    kept: list[int] = []
    names: list[str] = []
    digests: list[bytes] = []
    broken: list[str] = []
    values = SetRange.of(pictures)

    def one(content: Content) -> tuple[np.ndarray, bytes] | DataError:
        try:
            pixels = _pixels(content, mode, steps, values)
        except DataError as error:
            return error
        return _fitted(pixels, size, steps, content.name), _digest(pixels)

    n_threads = resolve_jobs(n_jobs)
    with (
        SILENCE,
        collect_notices() as notices,
        ThreadPoolExecutor(n_threads) as threads,
        stage("reading", n) as advance,
    ):
        for numbers, contents in pictures.batches(chosen):
            # One thread would wait for another with each picture.
            found = threads.map(one, contents) if n_threads > 1 else map(one, contents)
            for number, (name, _), result in zip(numbers, contents, found, strict=True):
                if isinstance(result, DataError):
                    broken.append(str(result))
                    continue
                image, digest = result
                if images is None:
                    _check_size(name, n, image.shape, image.dtype, max_bytes)
                    images = np.empty((n, *image.shape), image.dtype)
                if image.shape != images.shape[1:]:
                    shapes = f"shape {image.shape}, not {images.shape[1:]}"
                    raise DataError(f"{name}: {shapes}; give a size")
                images[len(kept)] = image
                kept.append(number)
                names.append(name)
                digests.append(digest)
            advance(len(numbers))
    if broken and not skip_broken:
        raise DataError(
            f"{len(broken)} of {n} pictures cannot be read, the first: {broken[0]}; skip_broken "
            "(--skip-broken) leaves them out, and `visionshare data check` lists them"
        )
    if images is None:
        if n:
            raise DataError(f"{pictures.name}: no picture can be read; the first: {broken[0]}")
        images = np.zeros((0, *(size or (0, 0))), np.uint8)
    read = images[: len(kept)]
    return ReadPictures(read, np.array(kept, np.int64), names, digests, broken, notices.pages)


def _are_taken_as_they_are(
    pictures: PictureSet, size: tuple[int, int] | None, mode: str | None, steps: Preprocessing
) -> bool:
    """Return whether the pictures are arrays, of which nothing is to be changed."""
    if not pictures.blocks:
        return False
    # All blocks are of one shape and type.
    first = pictures.blocks[0][1]
    shape = first.shape[1:]
    if first.dtype != np.uint8 or not are_pictures(first):
        return size is None and first.dtype != np.uint16
    own = "gray" if len(shape) == 2 else "color"
    is_plain = shape[2:] in ((), (3,)) and steps == _PLAIN
    return is_plain and size in (None, shape[:2]) and mode in (None, own)


def _taken_as_they_are(
    pictures: PictureSet, chosen: np.ndarray | None, max_bytes: int
) -> ReadPictures:
    """Return arrays as pictures that were read."""
    numbers = np.arange(len(pictures)) if chosen is None else np.flatnonzero(chosen)
    names = [f"{name} {i}" for name, images in pictures.blocks for i in range(len(images))]
    name, first = pictures.blocks[0]
    _check_size(name, len(numbers), first.shape[1:], first.dtype, max_bytes)
    images = first
    if len(pictures.blocks) > 1:
        images = np.concatenate([images for _, images in pictures.blocks])
    if len(numbers) < len(images):
        images = images[numbers]
        names = [names[number] for number in numbers]
    images = np.ascontiguousarray(images)
    return ReadPictures(images, numbers.astype(np.int64), names, list(map(_digest, images)), [])


def _pixels(
    content: Content, mode: str | None, steps: Preprocessing, values: SetRange
) -> np.ndarray:
    name, data = content
    if not isinstance(data, np.ndarray):
        picture = open_picture(data, name=name)
        return decode_image(picture, mode or "gray", values.steps_for(picture, steps))
    if data.dtype not in (np.uint8, np.uint16) or not are_pictures(data[None]):
        # Vectors, floats and images of other channels are taken as they are.
        return data
    if mode is None:
        mode = "gray" if data.shape[2:] in ((), (1,)) else "color"
    try:
        return decode_array(data, mode, steps)
    except DataError as error:
        raise DataError(f"{name}: {error}") from None


def _fitted(
    pixels: np.ndarray, size: tuple[int, int] | None, steps: Preprocessing, name: str
) -> np.ndarray:
    """Return a picture in the size that is asked for, its own where none is."""
    if pixels.dtype == np.uint8 and pixels.ndim > 1:
        # Steps that crop leave pictures of one size in several.
        size = size or (pixels.shape[0], pixels.shape[1])
        is_plain = size == pixels.shape[:2] and steps == _PLAIN
        return pixels if is_plain else steps.apply(pixels, size)
    if size is not None and pixels.shape[:2] != size:
        raise DataError(f"{name}: {pixels.dtype} of shape {pixels.shape}; only bytes are resized")
    return pixels


def _digest(pixels: np.ndarray) -> bytes:
    digest = _begun_digest(pixels.shape, pixels.dtype).copy()
    digest.update(np.ascontiguousarray(pixels).data)
    return digest.digest()


@lru_cache(64)
def _begun_digest(shape: tuple[int, ...], dtype: np.dtype) -> hashlib.blake2b:
    return hashlib.blake2b(repr((shape, str(dtype))).encode(), digest_size=_DIGEST)


def _check_size(name: str, n: int, shape: tuple[int, ...], dtype: np.dtype, max_bytes: int) -> None:
    """Check that so many images are accepted, and that there is memory for them."""
    needed = n * math.prod(shape) * dtype.itemsize
    if needed > max_bytes:
        raise DataError(
            f"{name}: {n} images of shape {shape} take {size_text(needed)}, at "
            f"most {size_text(max_bytes)} are accepted; give a smaller size"
        )
    check_fits(f"{n} images of shape {shape}", needed, "a smaller size")
