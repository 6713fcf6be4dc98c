"""Labeled pictures in files of storage, a partition each: surveyed once, read where they are used.

No process lists or holds all pictures: a survey reads one file after the other, or has workers do
it, and keeps of each its size, digest, labels and what cannot be read in it.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import numpy as np

from visionshare.class_labels import in_order
from visionshare.datasets.decoding import MODES
from visionshare.datasets.pictures.reading import read_pictures
from visionshare.datasets.pictures.value_ranges import KNOWN_RANGES
from visionshare.datasets.preprocessing import Preprocessing
from visionshare.datasets.readers.arrays import array_pictures
from visionshare.datasets.readers.idx import is_idx, labels_beside
from visionshare.datasets.readers.picture_set import PictureSet
from visionshare.datasets.readers.registry import find_pictures
from visionshare.datasets.readers.stored_arrays import (
    has_stored_arrays,
    is_zarr,
    read_rows,
    row_blocks,
)
from visionshare.errors import DataError, InputError
from visionshare.files.durable import storage_errors, write_text
from visionshare.files.storage import is_url, matching_files, open_file

_VERSION = 1
_BLOCK = 8 << 20


@dataclass(frozen=True)
class Reading:
    """How pictures become images."""

    size: tuple[int, int]
    mode: str = "gray"
    steps: Preprocessing = field(default_factory=Preprocessing)
    skip_broken: bool = False


@dataclass(frozen=True)
class Shard:
    """A file of pictures and what a survey has found in it."""

    file: str
    n_bytes: int
    sha256: str
    labels: tuple[int, ...]
    broken: int = 0
    # Which of its pictures it stands for; None for all.
    rows: tuple[int, ...] | None = None

    def taken(self, rows: np.ndarray) -> Shard:
        """Return the shard with some of its pictures."""
        among = np.arange(len(self.labels)) if self.rows is None else np.array(self.rows)
        labels = np.array(self.labels, np.int64)[rows]
        return replace(self, labels=tuple(labels.tolist()), rows=tuple(among[rows].tolist()))

    def images(self, reading: Reading, folder: Path | None = None, n_jobs: int = 1) -> np.ndarray:
        """Read the file's pictures."""
        with opened_partition(self.file, folder) as partition:
            if (partition.n_bytes, partition.sha256) != (self.n_bytes, self.sha256):
                raise DataError(f"{self.file}: changed since it was surveyed; survey it again")
            images = read_pictures(
                partition.pictures, reading.size, reading.mode, reading.steps,
                skip_broken=reading.skip_broken, n_jobs=n_jobs,
            ).images  # fmt: skip
        if self.rows is not None:
            images = images[np.array(self.rows, np.int64)]
        if len(images) != len(self.labels):
            raise DataError(f"{self.file}: {len(images)} images, not {len(self.labels)}")
        return images


@dataclass(frozen=True)
class StoredPictures:
    """Labeled pictures in files, each of which is a partition.

    Attributes
    ----------
    shards : tuple of Shard
        Those that have pictures.
    classes : tuple of str
    reading : Reading
    skipped : tuple of str
        Files that cannot be read at all, and were left out.

    Examples
    --------
    >>> pictures = StoredPictures((Shard("a.tar", 10, "00", (1, 0)),), ("a", "b"), Reading((8, 8)))
    >>> pictures.labels.tolist(), pictures.broken
    ([1, 0], 0)
    """

    shards: tuple[Shard, ...]
    classes: tuple[str, ...]
    reading: Reading
    skipped: tuple[str, ...] = ()

    def __len__(self) -> int:
        return sum(len(shard.labels) for shard in self.shards)

    @property
    def labels(self) -> np.ndarray:
        """Class of each image, (m,) int64."""
        return np.concatenate([np.empty(0, np.int64), *(shard.labels for shard in self.shards)])

    @property
    def broken(self) -> int:
        """Pictures that cannot be read, in files that can."""
        return sum(shard.broken for shard in self.shards)

    def sample(self, n: int, files: int = 4, n_jobs: int = 1) -> np.ndarray:
        """Return images for a family to be fitted on, evenly chosen from a few files."""
        shards = tuple(self.shards[i] for i in _evenly(len(self.shards), files))
        some = replace(self, shards=shards)
        mask = np.zeros(len(some), bool)
        mask[_evenly(len(some), n)] = True
        return some.subset(mask).images(n_jobs)

    def subset(self, mask: np.ndarray) -> StoredPictures:
        """Return some of the pictures, in the files that have any of them."""
        ends = np.cumsum([len(shard.labels) for shard in self.shards])
        parts = zip(self.shards, np.split(mask, ends[:-1]), strict=True)
        shards = [shard.taken(np.flatnonzero(part)) for shard, part in parts if part.any()]
        return replace(self, shards=tuple(shards))

    def images(self, n_jobs: int = 1) -> np.ndarray:
        """Read all pictures, one file after the other."""
        return np.concatenate([shard.images(self.reading, None, n_jobs) for shard in self.shards])

    def grouped(self, n: int) -> list[StoredPictures]:
        """Return the files in at most n groups of neighbors, of nearly equally many each.

        Examples
        --------
        >>> shards = tuple(Shard(f"{i}.tar", 10, "00", (0,)) for i in range(5))
        >>> groups = StoredPictures(shards, ("a",), Reading((8, 8))).grouped(2)
        >>> [len(group.shards) for group in groups]
        [3, 2]
        """
        n = min(n, len(self.shards))
        ends = [-(-i * len(self.shards) // n) for i in range(n + 1)]
        return [replace(self, shards=self.shards[a:b]) for a, b in itertools.pairwise(ends)]

    def fingerprint(self) -> str:
        """Return the SHA-256 of what is read: the files' digests, labels and the preparation."""
        reading = self.reading
        values = [self.classes, reading.size, reading.mode, reading.steps.to_values()]
        read = [(shard.sha256, shard.labels, shard.rows) for shard in self.shards]
        return hashlib.sha256(json.dumps([values, read]).encode()).hexdigest()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a manifest, as JSON, atomically."""
        values = {"version": _VERSION, **asdict(self)}
        values["reading"]["steps"] = self.reading.steps.to_values()
        write_text(path, json.dumps(values, ensure_ascii=False) + "\n")


def _evenly(n: int, most: int) -> np.ndarray:
    """Return at most so many numbers below n, evenly apart."""
    return np.unique(np.linspace(0, n - 1, min(n, most)).astype(int))


def _here(
    function: Callable[..., Any],
    make: Callable[..., Any],
    given: tuple[Any, ...],
    items: Iterable[Any],
) -> Iterator[Any]:
    made = make(*given)
    return (function(made, item) for item in items)


def survey_shards(
    pattern: str | Sequence[str],
    size: tuple[int, int],
    mode: str = "gray",
    steps: Preprocessing | None = None,
    *,
    skip_broken: bool = False,
    mapper: Callable[..., Iterator[Any]] = _here,
) -> StoredPictures:
    """Read files of labeled pictures once, and return what is in them.

    Parameters
    ----------
    pattern : str or sequence of str
        Paths or URLs, such as "s3://bucket/train-*.parquet": tars, Parquet, HDF5, ``.npz`` or IDX
        files, see :func:`visionshare.datasets.readers.registry.find_pictures`. Each file is a
        partition: it should fit a worker's memory when it is decoded. Of HDF5 and of a Zarr group
        (``NAME.zarr``), with arrays ``images`` and ``labels``, blocks of about 64 MiB are.
    size : tuple of int
        Height and width of the images.
    mode : {"gray", "color"}, default "gray"
    steps : Preprocessing, optional
    skip_broken : bool, default False
        Leave out, and count, pictures and files that cannot be read.
    mapper : Mapper, optional
        Such as :class:`visionshare.distributed.mapping.ClusterMap`: workers read the files.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name in ("a", "b"):
    ...         np.savez(f"{folder}/{name}.npz", x=np.zeros((3, 4, 4), np.uint8), y=[0, 1, 1])
    ...     pictures = survey_shards(f"{folder}/*.npz", (4, 4))
    >>> len(pictures), len(pictures.shards), pictures.classes
    (6, 2, ('0', '1'))
    """
    names = stored_files(pattern) if isinstance(pattern, str) else list(pattern)
    names = [part for name in names for part in partitions_of(name)]
    if not names:
        raise DataError(f"no files match {pattern!r}")
    if mode not in MODES:
        raise InputError("mode", mode, "'gray' or 'color'")
    height, width = map(int, size)
    reading = Reading((height, width), mode, steps or Preprocessing(), skip_broken)
    surveys: list[tuple[Shard, tuple[str, ...]]] = []
    skipped = []
    given = tuple(vars(reading).values())
    for name, found in zip(names, mapper(_surveyed, Reading, given, names), strict=True):
        if isinstance(found, str):
            skipped.append(found)
        elif not found[0].labels:
            skipped.append(f"{name}: no pictures")
        else:
            surveys.append(found)
    if not surveys:
        raise DataError(f"{names[0]}: no pictures in {len(names)} files")
    # Labels of two files with the same name mean the same class.
    classes = in_order({name for _, names_of_file in surveys for name in names_of_file})
    number = {name: i for i, name in enumerate(classes)}
    shards = []
    for shard, names_of_file in surveys:
        table = [number[name] for name in names_of_file]
        shards.append(replace(shard, labels=tuple(table[label] for label in shard.labels)))
    return StoredPictures(tuple(shards), classes, reading, tuple(skipped))


def stored_files(pattern: str) -> list[str]:
    """Return the files, and the Zarr groups, that a pattern stands for."""
    return [pattern] if is_zarr(pattern) else matching_files(pattern)


def partitions_of(name: str) -> list[str]:
    """Return the partitions of a file: blocks of rows of Zarr and HDF5, else the file itself."""
    return row_blocks(name) if has_stored_arrays(name) and "#" not in name else [name]


def _surveyed(reading: Reading, name: str) -> tuple[Shard, tuple[str, ...]] | str:
    """Return what is in a file and its classes, or why it is skipped."""
    try:
        with opened_partition(name) as partition:
            pictures = partition.pictures
            if pictures.values is not None and pictures.values not in KNOWN_RANGES:
                # Each file would have a range of its own.
                low, high = pictures.values
                raise DataError(
                    f"{name}: values from {low:g} to {high:g}; files of one set need bytes, or "
                    "values from 0 to 1 or to 255"
                )
            read = read_pictures(
                pictures, reading.size, reading.mode, reading.steps,
                skip_broken=reading.skip_broken,
            )  # fmt: skip
    except DataError as error:
        if not reading.skip_broken:
            raise
        return str(error)
    labels = tuple(pictures.labels[read.numbers].tolist())
    shard = Shard(name, partition.n_bytes, partition.sha256, labels, len(read.broken))
    return shard, pictures.classes


class Partition(NamedTuple):
    """The pictures of a file, its bytes and their digest."""

    pictures: PictureSet
    n_bytes: int
    sha256: str


@contextmanager
def opened_partition(name: str, folder: Path | None = None) -> Iterator[Partition]:
    """Give the pictures of a file or of a block of rows; a file of storage is copied meanwhile."""
    if has_stored_arrays(name):
        images, labels = read_rows(name)
        n_bytes = images.nbytes + labels.nbytes
        pictures = array_pictures(name, {"images": images, "labels": labels}, n_bytes)
        digest = hashlib.sha256(np.ascontiguousarray(images).tobytes())
        digest.update(json.dumps(pictures.classes).encode() + pictures.labels.tobytes())
        yield Partition(pictures, n_bytes, digest.hexdigest())
        return
    if not is_url(name):
        with open_file(name) as file:
            found = _digested(file, None)
        yield Partition(find_pictures(name), *found)
        return
    with tempfile.TemporaryDirectory(prefix="visionshare-shard-", dir=folder) as home:
        path = Path(home, PurePosixPath(name).name)
        found = _copied(name, path)
        if is_idx(name):
            labels_path = labels_beside(path)
            _copied(f"{name.rpartition('/')[0]}/{labels_path.name}", labels_path)
        try:
            yield Partition(find_pictures(path), *found)
        except DataError as error:
            raise DataError(str(error).replace(str(path), name)) from None


def _copied(name: str, path: Path) -> tuple[int, str]:
    with open_file(name) as file, path.open("wb") as out:
        return _digested(file, out)


def _digested(file: Any, out: Any) -> tuple[int, str]:
    """Return the bytes of a file and their digest; write them to another one, if it is given."""
    digest = hashlib.sha256()
    n_bytes = 0
    while block := file.read(_BLOCK):
        digest.update(block)
        n_bytes += len(block)
        if out is not None:
            with storage_errors(out.name):
                out.write(block)
    return n_bytes, digest.hexdigest()
