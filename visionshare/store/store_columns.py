"""Columns in a store: a folder of write-once HDF5 shards under an atomic manifest."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from visionshare.columns.arrays import ArrayColumns, sampled
from visionshare.columns.base import Columns, Span, check_ids
from visionshare.errors import InputError, StoreError
from visionshare.fingerprints import images_fingerprint, spec_fingerprint
from visionshare.generators.registry import family_fingerprints
from visionshare.resources import parse_size
from visionshare.store.manifest import MANIFEST, Manifest, read_manifest, write_manifest
from visionshare.store.shards import MappedShard, remove, shard_problem, write_shard

__all__ = [
    "StoreColumns",
    "create_empty_store",
    "create_store",
    "open_store",
    "repair_store",
    "store_info",
    "verify_store",
]

_logger = logging.getLogger(__name__)
_SHARDS = "shards"


def create_store(
    path: str | os.PathLike[str],
    family: Any,
    images: np.ndarray,
    dtype: str = "float16",
    memory: str | int = "2GiB",
    n_jobs: int = 1,
) -> StoreColumns:
    """Make a store for a family's columns over images, or go on with one that is there.

    Parameters
    ----------
    path : path-like
        Folder of the store.
    family : FeatureFamily
        Fitted and finite.
    images : ndarray
    dtype : {"float16", "float32"}, default "float16"
    memory : str or int, default "2GiB"
        Bound of what the store holds in memory.
    n_jobs : int, default 1

    Raises
    ------
    StoreError
        If the folder holds a store of other images, another family or another dtype.
    """
    if dtype not in ("float16", "float32"):
        raise InputError("dtype", dtype, "'float16' or 'float32'")
    parse_size(memory)
    folder = Path(path)
    if not (folder / MANIFEST).exists():
        if folder.exists() and any(folder.iterdir()):
            raise StoreError(f"{folder}: not empty, and no store; give another folder")
        create_empty_store(folder, family, len(images), images_fingerprint(images), dtype)
    columns = open_store(folder, family, images, memory, n_jobs)
    if columns.dtype != dtype:
        raise StoreError(f"{folder}: holds {columns.dtype}, not {dtype}; give another folder")
    return columns


def create_empty_store(
    path: str | os.PathLike[str], family: Any, m: int, images_sha256: str, dtype: str
) -> StoreColumns:
    """Make a store whose columns are evaluated elsewhere, see :meth:`StoreColumns.commit`.

    Parameters
    ----------
    path : path-like
        Folder of the store.
    family : FeatureFamily
    m : int
        Number of images.
    images_sha256 : str
        What :func:`visionshare.fingerprints.images_fingerprint` says of them.
    dtype : {"float16", "float32"}
    """
    folder = Path(path)
    state, arrays = family.to_state()
    (folder / _SHARDS).mkdir(parents=True, exist_ok=True)
    identity = spec_fingerprint(state, arrays), images_sha256
    write_manifest(folder, Manifest((m, family.n_features_), dtype, state, *identity))
    return open_store(folder, family)


def open_store(
    path: str | os.PathLike[str],
    family: Any = None,
    images: np.ndarray | None = None,
    memory: str | int = "2GiB",
    n_jobs: int = 1,
) -> StoreColumns:
    """Open a store; with its family and images, columns that are missing can be evaluated.

    Raises
    ------
    StoreError
        If there is no sound store, or it belongs to other images or another family.
    """
    folder = Path(path)
    manifest = read_manifest(folder)
    if family is not None and manifest.family_sha256 not in family_fingerprints(family):
        raise StoreError(f"{folder}: belongs to another pool of features; give another folder")
    if images is not None and images_fingerprint(images) != manifest.images_sha256:
        raise StoreError(f"{folder}: belongs to other images; give another folder")
    return StoreColumns(folder, manifest, family, images, memory, n_jobs)


class StoreColumns(Columns):
    """Columns in a store; see :func:`create_store` and :func:`open_store`.

    A column that is asked for and missing is evaluated together with its block and committed.
    One process writes at a time; any number reads.
    """

    def __init__(
        self,
        folder: Path,
        manifest: Manifest,
        family: Any = None,
        images: np.ndarray | None = None,
        memory: str | int = "2GiB",
        n_jobs: int = 1,
    ) -> None:
        groups = None if family is None else family.groups
        super().__init__(manifest.shape, manifest.dtype, groups, n_jobs)
        self.folder = folder
        self._family, self._images = family, images
        self._memory = parse_size(memory)
        self._mapped: dict[str, MappedShard] = {}
        self._adopt(manifest)

    def _adopt(self, manifest: Manifest) -> None:
        self._manifest = manifest
        self._shard_of = np.full(self.shape[1], -1, np.int64)
        self._place_of = np.zeros(self.shape[1], np.int64)
        self._names = sorted(manifest.shards)
        for number, name in enumerate(self._names):
            ids = np.array(manifest.shards[name].ids)
            self._shard_of[ids] = number
            self._place_of[ids] = np.arange(len(ids))

    @property
    def missing(self) -> np.ndarray:
        """Ids of the columns that are not evaluated yet."""
        return np.flatnonzero(self._shard_of < 0)

    def macs(self, ids: np.ndarray) -> int | None:
        """Return the multiply-accumulates an image of these features, None where unknown."""
        return None if self._family is None else int(self._family.macs(ids))

    def added_macs(
        self,
        chosen: np.ndarray,
        ids: np.ndarray | None = None,
        starts: np.ndarray | None = None,
    ) -> np.ndarray | None:
        """Return what columns or groups add to the cost of chosen ones, None where unknown."""
        return None if self._family is None else self._family.added_macs(chosen, ids, starts)

    def sample(self, rows: np.ndarray, old: Columns | None = None) -> ArrayColumns:
        """Return all columns of some examples, copied to memory, with their scaling."""
        return sampled(self, rows, old)

    def spans(self, ids: np.ndarray | None) -> Iterator[Span]:
        """Yield a span a shard; pages are given back where all shards exceed the memory."""
        wanted = np.arange(self.shape[1]) if ids is None else ids
        self.fill(wanted)
        itemsize = np.dtype(self.dtype).itemsize
        tight = self.shape[0] * self.shape[1] * itemsize > self._memory // 2
        shard = self._shard_of[wanted]
        for number in np.unique(shard):
            places = np.flatnonzero(shard == number)
            held = self._map(self._names[number])
            yield Span(held.buffer, held.offsets[self._place_of[wanted[places]]], places)
            if tight:
                held.forget()

    def _map(self, name: str) -> MappedShard:
        if name not in self._mapped:
            entry = self._manifest.shards[name]
            path = self.folder / _SHARDS / name
            self._mapped[name] = MappedShard(path, entry, self.shape[0], self.dtype)
        return self._mapped[name]

    def fill(self, ids: np.ndarray | None = None, progress: bool = False) -> None:
        """Evaluate and commit what is missing of these columns, and of their blocks.

        Parameters
        ----------
        ids : ndarray of int, optional
            All when omitted.
        progress : bool, default False
            Show a progress bar.

        Raises
        ------
        StoreError
            If columns are missing and family or images were not given, or another process writes.
        """
        wanted = np.arange(self.shape[1]) if ids is None else ids
        if (self._shard_of[wanted] >= 0).all():
            return
        # Another process may have committed them since the manifest was read.
        self._adopt(read_manifest(self.folder))
        if (self._shard_of[wanted] >= 0).all():
            return
        if self._family is None or self._images is None:
            raise StoreError(
                f"{self.folder}: {len(self.missing)} columns are not evaluated yet; "
                "open the store with its family and images"
            )
        with self._writing():
            self._adopt(read_manifest(self.folder))
            batches: Any = self._batches(wanted)
            if progress:
                from tqdm import tqdm

                batches = tqdm(batches, "columns")
            for batch in batches:
                values = self._family.transform_columns(
                    self._images, batch, self.n_jobs, self.dtype
                )
                self._write(batch, values)

    def _batches(self, wanted: np.ndarray) -> list[np.ndarray]:
        """Return the missing blocks of these columns, joined up to a shard's size."""
        limit = max(1, min(self._memory // 8, 256 << 20))
        column = self.shape[0] * np.dtype(self.dtype).itemsize
        missing = np.zeros(self.shape[1], bool)
        missing[wanted] = self._shard_of[wanted] < 0
        batches: list[list[np.ndarray]] = [[]]
        for block in self._family.block_ids(np.arange(self.shape[1])):
            if not missing[block].any():
                continue
            block = block[self._shard_of[block] < 0]
            for start in range(0, len(block), max(1, limit // column)):
                part = block[start : start + max(1, limit // column)]
                held = sum(len(b) for b in batches[-1])
                if batches[-1] and (held + len(part)) * column > limit:
                    batches.append([])
                batches[-1].append(part)
        return [np.concatenate(batch) for batch in batches if batch]

    def commit(self, ids: np.ndarray, values: np.ndarray) -> None:
        """Commit columns that were evaluated elsewhere.

        Parameters
        ----------
        ids : ndarray of int
            Columns that the store does not hold yet.
        values : ndarray of shape (n, m)
            Of the store's dtype.

        Raises
        ------
        InputError
            If a column is there already, or the values have another shape or dtype.
        StoreError
            If another process writes.
        """
        checked = check_ids(ids, self.shape[1])
        ids = np.empty(0, np.int64) if checked is None else checked
        if values.shape != (len(ids), self.shape[0]) or values.dtype != self.dtype:
            given = f"{values.dtype} of shape {values.shape}"
            accepted = f"{self.dtype} of shape {(len(ids), self.shape[0])}"
            raise InputError("values", given, accepted)
        with self._writing():
            self._adopt(read_manifest(self.folder))
            if len(np.unique(ids)) < len(ids) or (self._shard_of[ids] >= 0).any():
                raise InputError("ids", "columns that are there", "each missing column once")
            self._write(ids, values)

    def _write(self, ids: np.ndarray, values: np.ndarray) -> None:
        numbers = [int(name[:-3]) for name in self._manifest.shards]
        name = f"{max(numbers, default=-1) + 1:05d}.h5"
        entry = write_shard(self.folder / _SHARDS / name, values, ids)
        manifest = replace(self._manifest, shards={**self._manifest.shards, name: entry})
        write_manifest(self.folder, manifest)
        self._adopt(manifest)
        _logger.info("committed %d columns in %s", len(ids), name)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Hold the store's writer lock, which a killed process leaves free."""
        with open(self.folder / "writer.lock", "w") as handle:
            try:
                import fcntl

                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise StoreError(
                    f"{self.folder}: another process writes; try again later"
                ) from None
            except (ImportError, OSError):
                _logger.warning("no file locks here: keep to one writer of %s", self.folder)
            yield


def store_info(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return what a store holds, as plain values."""
    manifest = read_manifest(Path(path))
    evaluated = sum(len(entry.ids) for entry in manifest.shards.values())
    return {
        "examples": manifest.shape[0],
        "columns": manifest.shape[1],
        "evaluated": evaluated,
        "dtype": manifest.dtype,
        "shards": len(manifest.shards),
        "bytes": sum(entry.size for entry in manifest.shards.values()),
        "family": manifest.family,
        "family_sha256": manifest.family_sha256,
        "images_sha256": manifest.images_sha256,
    }


def verify_store(path: str | os.PathLike[str]) -> dict[str, str]:
    """Return the broken shards of a store and what is wrong with each; reads every checksum."""
    folder = Path(path)
    manifest = read_manifest(folder)
    found = {}
    for name, entry in manifest.shards.items():
        problem = shard_problem(folder / _SHARDS / name, entry, manifest.shape[0], manifest.dtype)
        if problem is not None:
            found[name] = problem
    return found


def repair_store(path: str | os.PathLike[str]) -> list[str]:
    """Drop broken shards and files that no manifest knows; return their names.

    The dropped columns are evaluated again when they are asked for.
    """
    folder = Path(path)
    broken = verify_store(folder)
    manifest = read_manifest(folder)
    kept = {name: entry for name, entry in manifest.shards.items() if name not in broken}
    write_manifest(folder, replace(manifest, shards=kept))
    dropped = []
    for file in sorted((folder / _SHARDS).iterdir()):
        if file.name not in kept:
            remove(file)
            dropped.append(file.name)
    return dropped
