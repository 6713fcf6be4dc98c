"""What pictures are like, from their headers alone: sizes, modes, formats, what cannot be read."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from visionshare.datasets.pictures.labeled import Content, Header, PictureSet, header
from visionshare.errors import DataError
from visionshare.machine.resources import resolve_jobs

__all__ = ["Survey", "common_size", "median_size", "survey_pictures"]


@dataclass(frozen=True)
class Survey:
    """Headers of pictures."""

    sizes: np.ndarray
    modes: Counter[str]
    formats: Counter[str]
    broken: dict[int, str]


def survey_pictures(pictures: PictureSet, n_jobs: int = 1) -> Survey:
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
                sizes.append((found.height, found.width))
                modes[found.mode] += 1
                formats[found.format] += 1
    return Survey(np.array(sizes, np.int64).reshape(-1, 2), modes, formats, broken)


def _header(content: Content) -> Header | DataError:
    try:
        return header(content)
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
    (low, wide), (height, width) = sizes.min(axis=0), sizes.max(axis=0)
    median = "×".join(map(str, median_size(sizes)))
    raise DataError(
        f"{pictures.name}: pictures of {low}×{wide} to {height}×{width} pixels; give a size, such "
        f"as their median {median} (data.height and data.width)"
    )
