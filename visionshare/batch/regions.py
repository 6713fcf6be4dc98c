"""Regions of images as rows of a table: tiles of scans, objects of masks, patches around points.

A region is written as text, ``scan.png#y0,x0,y1,x1``, so that extraction lists, resumes and checks
regions as it does files. An object adds its number and its mask: ``…,7@masks/scan.png``.
"""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import numpy as np

from visionshare.datasets.decoding import decode_image, picture_header
from visionshare.datasets.preprocessing import Preprocessing
from visionshare.errors import DataError, InputError
from visionshare.machine.memory import check_fits

__all__ = [
    "Region", "files_of", "objects_of", "patches_around", "read_regions", "region_of", "tiles_of",
]  # fmt: skip

_TEXT = re.compile(r"(.+)#(-?\d+),(-?\d+),(\d+),(\d+)(?:,(\d+)@(.+))?", re.DOTALL)
# Masks are decoded by Pillow; larger ones would be refused as pictures, too.
_MOST_OBJECTS = 1_000_000


@dataclass(frozen=True)
class Region:
    """A rectangle of an image, and the object of a mask that is cut out of it.

    Attributes
    ----------
    path : str
        The image.
    box : tuple of int
        First row, first column, last row and last column (exclusive); it may reach beyond the
        image, which is black there.
    number : int
        Number of the object in the mask; 0 without a mask.
    mask : str
        The image of numbers; empty for a whole rectangle.
    """

    path: str
    box: tuple[int, int, int, int]
    number: int = 0
    mask: str = ""

    def __str__(self) -> str:
        ends = f",{self.number}@{self.mask}" if self.mask else ""
        return f"{self.path}#{','.join(map(str, self.box))}{ends}"


def region_of(text: str) -> Region | None:
    """Return the region that a text describes, None for the path of a whole file."""
    found = _TEXT.fullmatch(text)
    if found is None or os.path.exists(text):
        return None
    path, y0, x0, y1, x1, number, mask = found.groups()
    return Region(path, (int(y0), int(x0), int(y1), int(x1)), int(number or 0), mask or "")


def files_of(text: str) -> tuple[str, ...]:
    """Return the files that a path or a region is read from."""
    region = region_of(text)
    if region is None:
        return (text,)
    return (region.path, region.mask) if region.mask else (region.path,)


def tiles_of(path: str, side: int) -> Iterator[Region]:
    """Yield the tiles of an image, row by row; the last ones of a row or column overlap others.

    Parameters
    ----------
    path : str
    side : int
        Rows and columns of a tile; an image that is smaller is one tile.

    Raises
    ------
    DataError
        If the image cannot be read.
    """
    height, width = picture_header(path)[:2]
    for y in _starts(height, side):
        for x in _starts(width, side):
            yield Region(path, (y, x, min(y + side, height), min(x + side, width)))


def _starts(length: int, side: int) -> list[int]:
    """Return where tiles begin that cover a length."""
    starts = list(range(0, max(length - side, 0) + 1, side))
    if starts[-1] + side < length:
        starts.append(length - side)
    return starts


def objects_of(path: str, masks: Path) -> Iterator[Region]:
    """Yield the objects of an image, by the numbers in its mask: the file of its name in a folder.

    Parameters
    ----------
    path : str
    masks : pathlib.Path
        Folder of label images: 0 is the ground, every other number an object.

    Raises
    ------
    DataError
        If there is no mask, or it has another size than the image.
    """
    from scipy.ndimage import find_objects

    mask = _mask_file(path, masks)
    numbers = _numbers(mask)
    size = picture_header(path)[:2]
    if numbers.shape != size:
        given = f"{numbers.shape[0]} × {numbers.shape[1]} pixels"
        raise DataError(f"{mask}: {given}; accepted: {size[0]} × {size[1]}, as {path} has")
    for number, found in enumerate(find_objects(numbers), 1):
        if found is not None:
            rows, columns = found
            box = (rows.start, columns.start, rows.stop, columns.stop)
            yield Region(path, box, number, str(mask))


def _mask_file(path: str, masks: Path) -> Path:
    """Return the mask of an image: a file of its name with any ending."""
    stem = Path(path).stem
    found = sorted(file for file in masks.glob(f"{_escaped(stem)}.*") if file.is_file())
    if not found:
        raise DataError(f"{masks / stem}.*: no mask for {path}; accepted: a label image")
    return found[0]


def _escaped(name: str) -> str:
    return re.sub(r"([*?\[])", r"[\1]", name)


def _numbers(mask: Path) -> np.ndarray:
    """Return a label image as whole numbers (H, W)."""
    from PIL import Image

    try:
        with Image.open(mask) as picture:
            numbers = np.asarray(picture)
    except (OSError, ValueError, Image.DecompressionBombError) as error:
        raise DataError(f"{mask}: not a label image ({error})") from None
    whole = numbers.ndim == 2 and numbers.dtype.kind in "uib"
    if not whole or int(numbers.max(initial=0)) > _MOST_OBJECTS:
        raise DataError(
            f"{mask}: {numbers.dtype} of shape {numbers.shape}; accepted: whole numbers, one per "
            f"pixel, at most {_MOST_OBJECTS}"
        )
    return numbers.astype(np.int32)


def patches_around(points: Path, paths: Sequence[str], side: int) -> Iterator[Region]:
    """Yield the patches around the points of a CSV file with the columns path, y and x.

    Parameters
    ----------
    points : pathlib.Path
    paths : sequence of str
        The images; a point names one of them by its path or its file name.
    side : int
        Rows and columns of a patch, whose middle is the point.

    Raises
    ------
    DataError
        If the file cannot be read, or a line is not a point of one of the images.
    """
    known = {os.path.basename(path): path for path in paths} | {path: path for path in paths}
    try:
        with open(points, newline="", encoding="utf-8-sig") as file:
            lines = csv.DictReader(file)
            for line in lines:
                yield _patch(points, lines.line_num, line, known, side)
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
    regions = [(text, region_of(text)) for text in texts]
    for text, region in regions:
        if region is None:
            raise InputError("paths", text, "regions, such as 'scan.png#0,0,256,256'")
    channels = 3 if mode == "color" else 1
    check_fits("regions", float(len(texts) * size[0] * size[1] * channels), "a smaller size")
    files = groupby(((text, region) for text, region in regions if region), lambda r: r[1].path)
    groups = [list(group) for _, group in files]

    def one_file(group: list[tuple[str, Region]]) -> list[np.ndarray] | DataError:
        try:
            return list(_cut(group[0][1].path, [region for _, region in group], size, mode, steps))
        except DataError as error:
            return error

    images: list[np.ndarray] = []
    with ThreadPoolExecutor(n_jobs) as threads:
        for group, found in zip(groups, threads.map(one_file, groups), strict=True):
            if not isinstance(found, DataError):
                images += found
            elif broken is None:
                raise found
            else:
                broken += [text for text, _ in group]
    shape = (*size, 3) if mode == "color" else size
    return np.stack(images) if images else np.empty((0, *shape), np.uint8)


def _cut(
    path: str, regions: Iterable[Region], size: tuple[int, int], mode: str, steps: Preprocessing
) -> Iterator[np.ndarray]:
    """Yield the regions of one file, which is decoded once."""
    image = decode_image(path, mode, steps)
    masks: dict[str, np.ndarray] = {}
    for region in regions:
        y0, x0, y1, x1 = region.box
        patch = np.zeros((y1 - y0, x1 - x0, *image.shape[2:]), np.uint8)
        rows = slice(max(y0, 0), min(y1, image.shape[0]))
        columns = slice(max(x0, 0), min(x1, image.shape[1]))
        if rows.start < rows.stop and columns.start < columns.stop:
            inside = image[rows, columns]
            if region.mask:
                numbers = masks.setdefault(region.mask, _numbers(Path(region.mask)))
                own = numbers[rows, columns] == region.number
                inside = np.where(own if inside.ndim == 2 else own[..., None], inside, 0)
            to_rows = slice(rows.start - y0, rows.stop - y0)
            to_columns = slice(columns.start - x0, columns.stop - x0)
            patch[to_rows, to_columns] = inside
        yield steps.apply(patch, size)
