"""Regions of images as rows of a table: tiles of scans, objects of masks, patches around points.

A region is written as text, ``scan.png#y0,x0,y1,x1``, so that extraction lists, resumes and checks
regions as it does files. A level of a pyramid follows after a slash, ``…,256,256/2``; an object
adds its number and its mask, ``…,7@masks/scan.png``.
"""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path

import numpy as np

from visionshare.datasets.preprocessing import Preprocessing
from visionshare.datasets.scans import Scan
from visionshare.errors import DataError, InputError
from visionshare.machine.memory import check_fits

_TEXT = re.compile(r"(.+)#(-?\d+),(-?\d+),(\d+),(\d+)(?:/(\d+))?(?:,(\d+)@(.+))?", re.DOTALL)
# Regions of a file that one thread cuts out.
_PIECE = 32
# Masks are decoded by Pillow; larger ones would be refused as pictures, too.
_MOST_OBJECTS = 1_000_000


@dataclass(frozen=True)
class Region:
    """A rectangle of an image, and the object of a mask that is cut out of it."""

    #: The image.
    path: str
    #: First row, first column, last row and last column (exclusive); it may reach beyond the image,
    #: which is black there.
    box: tuple[int, int, int, int]
    #: Number of the object in the mask; 0 without a mask.
    number: int = 0
    #: The image of numbers; empty for a whole rectangle.
    mask: str = ""
    #: Level of the pyramid whose pixels the box counts.
    level: int = 0

    def __str__(self) -> str:
        ends = f"/{self.level}" if self.level else ""
        ends += f",{self.number}@{self.mask}" if self.mask else ""
        return f"{self.path}#{','.join(map(str, self.box))}{ends}"


def region_of(text: str) -> Region | None:
    """Return the region that a text describes, None for the path of a whole file."""
    found = _TEXT.fullmatch(text)
    if found is None or os.path.exists(text):
        return None
    path, y0, x0, y1, x1, level, number, mask = found.groups()
    box = (int(y0), int(x0), int(y1), int(x1))
    return Region(path, box, int(number or 0), mask or "", int(level or 0))


def files_of(text: str) -> tuple[str, ...]:
    """Return the files that a path or a region is read from."""
    region = region_of(text)
    if region is None:
        return (text,)
    return (region.path, region.mask) if region.mask else (region.path,)


def tiles_of(path: str, side: int, level: int = 0) -> Iterator[Region]:
    """Yield the tiles of an image, row by row; the last ones of a row or column overlap others."""
    height, width = Scan(path, level).shape
    for y in _starts(height, side):
        for x in _starts(width, side):
            box = (y, x, min(y + side, height), min(x + side, width))
            yield Region(path, box, level=level)


def _starts(length: int, side: int) -> list[int]:
    """Return where tiles begin that cover a length."""
    starts = list(range(0, max(length - side, 0) + 1, side))
    if starts[-1] + side < length:
        starts.append(length - side)
    return starts


def objects_of(
    paths: Sequence[str], masks: Path, level: int = 0, n_jobs: int = 1
) -> Iterator[Region]:
    """Yield the objects of images, by the numbers in their masks."""
    # Masks are label images, files of the images' names: 0 is the ground, others are objects.
    files: dict[str, Path] = {}
    for file in sorted(masks.iterdir(), reverse=True):
        if file.is_file():
            files[file.stem] = file

    def of_one(path: str) -> list[Region]:
        mask = files.get(Path(path).stem)
        if mask is None:
            missing = masks / Path(path).stem
            raise DataError(f"{missing}.*: no mask for {path}; accepted: a label image")
        return _objects(path, mask, level)

    with ThreadPoolExecutor(n_jobs) as threads:
        try:
            for regions in threads.map(of_one, paths):
                yield from regions
        except BaseException:
            threads.shutdown(cancel_futures=True)
            raise


def _objects(path: str, mask: Path, level: int) -> list[Region]:
    """Return the objects of one image."""
    from visionshare.batch.object_kernels import object_boxes

    numbers = _numbers(mask)
    size = Scan(path, level).shape
    if numbers.shape != size:
        given = f"{numbers.shape[0]} × {numbers.shape[1]} pixels"
        raise DataError(f"{mask}: {given}; accepted: {size[0]} × {size[1]}, as {path} has")
    boxes = object_boxes(numbers)
    found = np.flatnonzero(boxes[:, 3])
    return [
        Region(path, tuple(boxes[number].tolist()), number, str(mask), level)
        for number in found.tolist()
    ]


def _numbers(mask: Path) -> np.ndarray:
    """Return a label image as whole numbers (H, W)."""
    from PIL import Image

    try:
        with Image.open(mask) as picture:
            # One that may be written: kernels are compiled for these anyway.
            numbers = np.array(picture)
    except (OSError, ValueError, Image.DecompressionBombError) as error:
        raise DataError(f"{mask}: not a label image ({error})") from None
    whole = numbers.ndim == 2 and numbers.dtype.kind in "uib"
    if not whole or int(numbers.max(initial=0)) > _MOST_OBJECTS:
        raise DataError(
            f"{mask}: {numbers.dtype} of shape {numbers.shape}; accepted: whole numbers, one per "
            f"pixel, at most {_MOST_OBJECTS}"
        )
    native = np.uint8 if numbers.dtype == bool else numbers.dtype.newbyteorder("=")
    return numbers.astype(native, copy=False)


def patches_around(
    points: Path, paths: Sequence[str], side: int, level: int = 0
) -> Iterator[Region]:
    """Yield the patches around the points of a CSV file with the columns path, y and x."""
    known = {os.path.basename(path): path for path in paths} | {path: path for path in paths}
    try:
        with open(points, newline="", encoding="utf-8-sig") as file:
            lines = csv.DictReader(file)
            for line in lines:
                yield replace(_patch(points, lines.line_num, line, known, side), level=level)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{points}: cannot be read ({error})") from None


def _patch(
    points: Path, number: int, line: dict[str, str], known: dict[str, str], side: int
) -> Region:
    """Return the patch around the point of a line."""
    try:
        path = known[line["path"]]
        y = round(float(line["y"]))
        x = round(float(line["x"]))
    except (KeyError, TypeError, ValueError, OverflowError):
        raise DataError(
            f"{points}: line {number}: {dict(line)}; accepted: path (of one of the images), y and x"
        ) from None
    first = (y - side // 2, x - side // 2)
    return Region(path, (*first, first[0] + side, first[1] + side))


def read_regions(
    texts: Sequence[str],
    size: tuple[int, int],
    mode: str,
    steps: Preprocessing,
    n_jobs: int = 1,
    broken: list[str] | None = None,
) -> np.ndarray:
    """Return regions as images of one size, (n, height, width) or (n, height, width, 3), uint8."""
    regions = []
    for text in texts:
        region = region_of(text)
        if region is None:
            raise InputError("paths", text, "regions, such as 'scan.png#0,0,256,256'")
        regions.append(region)
    channels = 3 if mode == "color" else 1
    check_fits("regions", float(len(texts) * size[0] * size[1] * channels), "a smaller size")
    files = groupby(zip(texts, regions, strict=True), lambda r: (r[1].path, r[1].level, r[1].mask))
    pieces = []
    for _, group in files:
        listed = list(group)
        # A mask is decoded whole, once for all of its objects.
        step = len(listed) if listed[0][1].mask else _PIECE
        pieces += [listed[i : i + step] for i in range(0, len(listed), step)]

    def one_piece(piece: list[tuple[str, Region]]) -> list[np.ndarray] | DataError:
        try:
            return list(_cut([region for _, region in piece], size, mode, steps))
        except DataError as error:
            return error

    images: list[np.ndarray] = []
    with ThreadPoolExecutor(n_jobs) as threads:
        for piece, found in zip(pieces, threads.map(one_piece, pieces), strict=True):
            if not isinstance(found, DataError):
                images += found
            elif broken is None:
                threads.shutdown(cancel_futures=True)
                raise found
            else:
                broken += [text for text, _ in piece]
    shape = (*size, 3) if mode == "color" else size
    return np.stack(images) if images else np.empty((0, *shape), np.uint8)


def _cut(
    regions: Sequence[Region], size: tuple[int, int], mode: str, steps: Preprocessing
) -> Iterator[np.ndarray]:
    """Yield regions of one file."""
    from visionshare.batch.object_kernels import object_alone

    scan = Scan(regions[0].path, regions[0].level)
    numbers = _numbers(Path(regions[0].mask)) if regions[0].mask else None
    for region in regions:
        y0, x0, y1, x1 = region.box
        patch = np.zeros((y1 - y0, x1 - x0, 3)[: 3 if mode == "color" else 2], np.uint8)
        rows = slice(max(y0, 0), min(y1, scan.shape[0]))
        columns = slice(max(x0, 0), min(x1, scan.shape[1]))
        if rows.start < rows.stop and columns.start < columns.stop:
            inside = scan.block(rows.start, rows.stop, columns.start, columns.stop, mode, steps)
            if numbers is not None:
                own = numbers[rows, columns].copy()
                inside = object_alone(inside.copy(), own, region.number)
            to_rows = slice(rows.start - y0, rows.stop - y0)
            to_columns = slice(columns.start - x0, columns.stop - x0)
            patch[to_rows, to_columns] = inside
        yield steps.apply(patch, size)
