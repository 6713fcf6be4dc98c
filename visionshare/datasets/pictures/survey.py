"""What pictures are like, from their headers alone: sizes, modes, formats, what cannot be read."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from visionshare.datasets.opening import open_picture
from visionshare.datasets.readers.picture_set import Content, PictureSet
from visionshare.errors import DataError
from visionshare.machine.resources import resolve_jobs


@dataclass(frozen=True)
class Headers:
    """Headers of pictures."""

    sizes: np.ndarray
    modes: Counter[str]
    formats: Counter[str]
    broken: dict[int, str]


def survey_pictures(pictures: PictureSet, n_jobs: int = 1) -> Headers:
    """Return what the headers of pictures tell."""
    sizes: list[tuple[int, int]] = []
    modes: Counter[str] = Counter()
    formats: Counter[str] = Counter()
    broken: dict[int, str] = {}
    with ThreadPoolExecutor(resolve_jobs(n_jobs)) as threads:
        for numbers, contents in pictures.batches():
            for number, found in zip(numbers, threads.map(_header, contents), strict=True):
                if isinstance(found, DataError):
                    broken[number] = str(found)
                    continue
                height, width, mode, kind = found
                sizes.append((height, width))
                modes[mode] += 1
                formats[kind] += 1
    return Headers(np.array(sizes, np.int64).reshape(-1, 2), modes, formats, broken)


def _header(content: Content) -> tuple[int, int, str, str] | DataError:
    """Return height, width, mode and format of a picture; no pixel is decoded."""
    name, data = content
    if isinstance(data, np.ndarray):
        # A vector is a row of values.
        height, width = data.shape[:2] if data.ndim > 1 else (1, len(data))
        n_channels = data.shape[2] if data.ndim > 2 else 1
        mode = {1: "L", 3: "RGB", 4: "RGBA"}.get(n_channels, f"{n_channels} channels")
        mode = mode if data.dtype == np.uint8 else f"{mode} {data.dtype}"
        return height, width, mode, "array"
    try:
        picture = open_picture(data, name=name)
        return *picture.shape, picture.mode, picture.format
    except DataError as error:
        return error


def median_size(sizes: np.ndarray) -> tuple[int, int]:
    """Return the median height and width."""
    height, width = (max(1, int(np.median(sizes[:, axis]))) for axis in (0, 1))
    return height, width


def common_size(pictures: PictureSet) -> tuple[int, int] | None:
    """Return the one size that all pictures have."""
    sizes = survey_pictures(pictures).sizes
    if len(sizes) == 0:
        return None
    if (sizes == sizes[0]).all():
        return int(sizes[0, 0]), int(sizes[0, 1])
    (low, wide) = sizes.min(axis=0)
    (height, width) = sizes.max(axis=0)
    median = "×".join(map(str, median_size(sizes)))
    raise DataError(
        f"{pictures.name}: pictures of {low}×{wide} to {height}×{width} pixels; give a size, such "
        f"as their median {median} (data.height and data.width)"
    )
