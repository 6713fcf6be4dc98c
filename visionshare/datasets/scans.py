"""A large picture, read in blocks: of a TIFF, only the tiles or strips that a block needs."""

from __future__ import annotations

import itertools
import os
import threading
from collections import OrderedDict
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np

from visionshare.datasets.broken_files import file_errors
from visionshare.datasets.decoding import decode_array, decode_image, picture_header
from visionshare.datasets.notices import note_pages
from visionshare.datasets.preprocessing import Preprocessing
from visionshare.errors import DataError

_TIFF = (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")
# Photometric interpretations: light on black, RGB, and YCbCr, which JPEG's decoder makes RGB.
_KINDS = (1, 2, 6)
_JPEG = 7
_ORIENTATION = 274
# Bytes of decoded tiles or strips that are kept for the next block.
_KEPT = 64 << 20
# Whole pictures of more pixels are decoded one at a time, and the last one is kept.
_LARGE = 1 << 24
_one_at_a_time = threading.Lock()


class Scan:
    """A picture of which blocks are decoded.

    Only TIFFs of 8 or 16 bits, gray or of colors, in tiles or strips of at most 64 MiB, are read
    in blocks. Other pictures are decoded whole, as are those with transparency, whose ground
    their ink decides.
    """

    def __init__(self, path: str, level: int = 0) -> None:
        self._path = path
        self._page = None
        self._decoded: tuple[Any, np.ndarray] | None = None
        self._segments = OrderedDict[int, np.ndarray]()
        with file_errors(path, "an image"), open(path, "rb") as file:
            is_tiff = file.read(4) in _TIFF
        if is_tiff:
            self._page = _page(path, level)
        elif level:
            raise DataError(f"{path}: no pyramid; accepted: level 0")
        self.in_blocks = self._page is not None
        if self._page is None:
            self.shape = _shape(path, _stamp(path))
        else:
            self.shape = (self._page.imagelength, self._page.imagewidth)

    def block(
        self,
        y0: int,
        y1: int,
        x0: int,
        x1: int,
        mode: str = "gray",
        steps: Preprocessing | None = None,
    ) -> np.ndarray:
        """Return the pixels of a block inside of the picture, (height, width) or with 3 colors."""
        if self._page is None:
            # The next block of the same picture finds it decoded.
            if self._decoded is None or self._decoded[0] != (mode, steps):
                self._decoded = ((mode, steps), _whole(self._path, self.shape, mode, steps))
            return self._decoded[1][y0:y1, x0:x1]
        with file_errors(self._path, "an image"):
            pixels = self._stored(y0, y1, x0, x1)
        if pixels.dtype == np.uint16 and pixels.ndim == 3:
            # As Pillow reads colors of 16 bits.
            pixels = (pixels >> 8).astype(np.uint8)
        return decode_array(pixels, mode, steps)

    def _stored(self, y0: int, y1: int, x0: int, x1: int) -> np.ndarray:
        """Return a block as it is stored."""
        page: Any = self._page
        if page.is_memmappable:
            order = page.parent.byteorder + page.dtype.char
            mapped = np.memmap(self._path, order, "r", page.dataoffsets[0], page.shape)
            return np.array(mapped[y0:y1, x0:x1], page.dtype)
        out = np.zeros((y1 - y0, x1 - x0, *page.shape[2:]), page.dtype)
        height, width = page.chunks[:2]
        rows = range(y0 // height, -(-y1 // height))
        columns = range(x0 // width, -(-x1 // width))
        per_row = -(-self.shape[1] // width)
        for row, column in itertools.product(rows, columns):
            segment = self._segment(row * per_row + column)
            top = row * height
            left = column * width
            # The part of the segment that lies in the block, and where it lies there.
            part = segment[max(y0 - top, 0) : y1 - top, max(x0 - left, 0) : x1 - left]
            y = max(top - y0, 0)
            x = max(left - x0, 0)
            out[y : y + part.shape[0], x : x + part.shape[1]] = part
        return out

    def _segment(self, number: int) -> np.ndarray:
        """Return the pixels of a tile or strip; those that were used last are kept."""
        if number in self._segments:
            self._segments.move_to_end(number)
            return self._segments[number]
        page: Any = self._page
        with open(self._path, "rb") as file:
            file.seek(page.dataoffsets[number])
            data = file.read(page.databytecounts[number])
        decoded, _, shape = page.decode(data, number, jpegtables=page.jpegtables)
        if decoded is None:
            # A tile that is not stored is black.
            decoded = np.zeros(shape, page.dtype)
        segment = decoded[0] if page.shape[2:] else decoded[0, ..., 0]
        self._segments[number] = segment
        while len(self._segments) > 1 and sum(s.nbytes for s in self._segments.values()) > _KEPT:
            self._segments.popitem(last=False)
        return segment


def _page(path: str, level: int) -> Any:
    """Return the page of a TIFF's level, None where it cannot be read in blocks."""
    from tifffile import TiffFile, TiffPage

    with file_errors(path, "an image"), TiffFile(path) as file:
        levels = [found.keyframe for found in _levels(file)]
        if level >= len(levels):
            raise DataError(f"{path}: no level {level}; accepted: 0 to {len(levels) - 1}")
        page = levels[level]
        is_plain = (
            isinstance(page, TiffPage)
            and page.dtype in (np.uint8, np.uint16)
            and page.axes in ("YX", "YXS")
            and page.shape[2:] in ((), (3,))
            and page.planarconfig == 1
            and (page.photometric in _KINDS[:2] or page.compression == _JPEG)
            and page.photometric in _KINDS
            and page.tags.valueof(_ORIENTATION, 1) == 1
            and (page.is_memmappable or np.prod(page.chunks, dtype=float) <= _KEPT)
        )
        # Loads what decodes tiles; without a package for it, the picture is decoded whole.
        if is_plain and (page.is_memmappable or _is_decodable(page)):
            note_pages(path, len(file.series) - 1 - (len(levels) - len(file.series[0].levels)))
            return page
    if level:
        raise DataError(
            f"{path}: level {level} cannot be read in blocks; accepted: gray or RGB of 8 or 16 "
            "bits, in tiles; pip install visionshare[tiff] where they are compressed"
        )
    return None


def _levels(file: Any) -> Iterator[Any]:
    """Yield the levels of a TIFF's first picture: its own, or the reduced pages that follow."""
    yield from file.series[0].levels
    for series in file.series[1:] if len(file.series[0].levels) == 1 else []:
        if not series.keyframe.is_reduced:
            return
        yield series


def _is_decodable(page: Any) -> bool:
    """Return whether the package that a TIFF's compression needs is installed."""
    try:
        # Without bytes nothing is decoded; what is missing is said first.
        page.decode(None, 0)
    except Exception:
        return False
    return True


def _whole(path: str, shape: tuple[int, int], mode: str, steps: Preprocessing | None) -> np.ndarray:
    """Return a picture that is decoded whole; large ones one at a time, the last one is kept."""
    if shape[0] * shape[1] <= _LARGE:
        return decode_image(path, mode, steps)
    with _one_at_a_time:
        return _last(path, mode, steps, _stamp(path))


def _stamp(path: str) -> tuple[int, int]:
    """Return what changes when a file is written again."""
    with file_errors(path, "an image"):
        status = os.stat(path)
    return status.st_mtime_ns, status.st_size


@lru_cache(maxsize=1 << 14)
def _shape(path: str, _: object) -> tuple[int, int]:
    """Return a picture's height and width; to find them, a large file is read."""
    return picture_header(path)[:2]


@lru_cache(maxsize=1)
def _last(path: str, mode: str, steps: Preprocessing | None, _: object) -> np.ndarray:
    return decode_image(path, mode, steps)


def forget_scans() -> None:
    """Free the last large picture that was decoded whole."""
    _last.cache_clear()
