"""Features of some image files, with what an extraction keeps of the files themselves."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np

from visionshare.batch.extraction_parts import digests
from visionshare.batch.regions import files_of, read_regions
from visionshare.datasets.folders import Fit, as_preprocessing, read_images
from visionshare.datasets.notices import collect_notices
from visionshare.datasets.pictures.value_ranges import limits_of, widest
from visionshare.datasets.scans import Scan
from visionshare.errors import DataError
from visionshare.generators import FeatureFamily
from visionshare.machine.resources import single_threaded_blas


@dataclass(frozen=True)
class Source:
    """How files become features."""

    family: FeatureFamily
    fit: Fit
    dtype: str
    skip_broken: bool
    threads: int
    regions: bool = False
    draft: bool = False


@dataclass(frozen=True)
class Evaluated:
    """Files that were read."""

    paths: list[str]
    contents: list[str]
    readable: np.ndarray
    images: np.ndarray
    columns: np.ndarray
    left_out: dict[str, int] = field(default_factory=dict)

    @property
    def broken(self) -> list[str]:
        """Paths of the images that could not be read."""
        return [path for path, whole in zip(self.paths, self.readable, strict=True) if not whole]

    def joined(self, other: Evaluated) -> Evaluated:
        """Return these files and the others after them."""
        return Evaluated(
            self.paths + other.paths,
            self.contents + other.contents,
            np.concatenate([self.readable, other.readable]),
            np.concatenate([self.images, other.images]),
            np.concatenate([self.columns, other.columns], axis=1),
        )

    def split(self, images: int) -> tuple[Evaluated, Evaluated]:
        """Return the first files, up to so many that can be read, and the others."""
        n = int(np.flatnonzero(self.readable)[images - 1]) + 1
        head = (self.paths[:n], self.contents[:n], self.readable[:n])
        tail = (self.paths[n:], self.contents[n:], self.readable[n:])
        return (
            Evaluated(*head, self.images[:images], self.columns[:, :images]),
            Evaluated(*tail, self.images[images:], self.columns[:, images:]),
        )


def value_limits(source: Source, paths: Sequence[str]) -> tuple[float, float] | None:
    """Return the lowest and highest value of those files whose range is their own."""
    files = list(dict.fromkeys(files_of(path)[0] for path in paths)) if source.regions else paths
    limits = scan_limits if source.regions else limits_of
    with ThreadPoolExecutor(source.threads) as threads:
        return widest(threads.map(limits, files))


def scan_limits(path: str) -> tuple[float, float] | None:
    """Return the limits of a scan's values; those that are read in blocks have a known range."""
    try:
        return None if Scan(path).in_blocks else limits_of(path)
    except DataError:
        # Reading it says why.
        return None


def evaluate_files(source: Source, paths: Sequence[str]) -> Evaluated:
    """Read files and evaluate the features of their images."""
    family = source.family
    shape = source.family.image_shape_
    size = (shape[0], shape[1])
    mode = "color" if shape[2:] == (3,) else "gray"
    # Before they are decoded: a file that is replaced meanwhile counts as changed later.
    contents = digests(paths, source.threads)
    broken: list[str] = []
    skipped = broken if source.skip_broken else None
    with collect_notices() as notices:
        if source.regions:
            steps = as_preprocessing(source.fit)
            read = read_regions(paths, size, mode, steps, source.threads, skipped)
        else:
            options = (source.fit, source.threads, skipped, source.draft)
            read = read_images(paths, size, mode, *options)
    images = read.reshape(-1, *shape)
    columns = np.empty((family.n_features_, 0), source.dtype)
    if len(images):
        with single_threaded_blas():
            columns = family.transform_columns(images, None, source.threads, source.dtype)
    unread = set(broken)
    readable = np.array([path not in unread for path in paths])
    return Evaluated(list(paths), contents, readable, images, columns, notices.pages)
