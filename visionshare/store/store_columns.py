"""Columns in a store: a folder of write-once HDF5 shards under an atomic manifest."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from visionshare.columns.arrays import ArrayColumns, sampled
from visionshare.columns.base import Columns, Span, check_ids
from visionshare.errors import InputError, StoreError
from visionshare.generators import FeatureFamily
from visionshare.machine.progress import track
from visionshare.machine.resources import parse_size
from visionshare.store.listing import LABELS, LISTING, read_descriptions, read_lines
from visionshare.store.manifest import Manifest, read_manifest, write_manifest
from visionshare.store.shards import SHARDS, MappedShard, write_shard
from visionshare.store.writer_lock import writer_lock

_logger = logging.getLogger(__name__)
_LARGEST_SHARD = 256 << 20
# Bytes of columns that are evaluated together: what a family does once for an image, it does once
# for all of these.
_LARGEST_BATCH = 1 << 30


class StoreColumns(Columns):
    """Columns in a store, which :func:`create_store` and :func:`open_store` return.

    A column that is asked for and missing is evaluated together with its block and committed.
    One process writes at a time; any number reads.

    Examples
    --------
    >>> import tempfile
    >>> from visionshare import Pixels
    >>> from visionshare.store import create_store, open_store
    >>> images = np.arange(8.0).reshape(2, 2, 2)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     create_store(f"{folder}/store", Pixels().fit(images), images).fill()
    ...     open_store(f"{folder}/store").correlate(np.ones((2, 1))).ravel().tolist()
    [4.0, 6.0, 8.0, 10.0]
    """

    def __init__(
        self,
        folder: Path,
        manifest: Manifest,
        family: FeatureFamily | None = None,
        images: np.ndarray | None = None,
        memory: str | int = "2GiB",
        n_jobs: int = 1,
    ) -> None:
        groups = None if family is None else family.groups
        super().__init__(manifest.shape, manifest.dtype, groups, n_jobs)
        self.folder = folder
        self._family = family
        self._images = images
        self._memory = parse_size(memory)
        self._manifest = manifest
        self._mapped = dict[str, MappedShard]()
        self._adopt(manifest)

    def _adopt(self, manifest: Manifest) -> None:
        # Where another process has repaired the store, a name may stand for another shard now.
        self._mapped = {
            name: shard
            for name, shard in self._mapped.items()
            if manifest.shards.get(name) == self._manifest.shards[name]
        }
        self._manifest = manifest
        self._shard_of = np.full(self.shape[1], -1, np.int32)
        self._row_of = np.zeros(self.shape[1], np.int32)
        self._names = sorted(manifest.shards)
        for number, name in enumerate(self._names):
            ids = np.array(manifest.shards[name].ids)
            self._shard_of[ids] = number
            self._row_of[ids] = np.arange(len(ids))

    @property
    def missing(self) -> np.ndarray:
        """Ids of the columns that are not evaluated yet."""
        return np.flatnonzero(self._shard_of < 0)

    @property
    def paths(self) -> list[str] | None:
        """The image file of each row; None in a store that no extraction wrote."""
        return read_lines(self.folder / LISTING)

    @property
    def labels(self) -> list[str] | None:
        """The label of each row; None where the images came without."""
        return read_lines(self.folder / LABELS)

    @property
    def feature_names(self) -> list[str]:
        """A short name for each column, such as "lbp17"."""
        described = read_descriptions(self.folder)
        if described is not None:
            return [name for name, _ in described]
        return [f"{self._manifest.family['family']}{j}" for j in range(self.shape[1])]

    @property
    def feature_descriptions(self) -> list[str]:
        """A description of each column; empty texts in a store that no extraction wrote."""
        described = read_descriptions(self.folder)
        return [text for _, text in described] if described else [""] * self.shape[1]

    def rows(self, start: int, stop: int, ids: np.ndarray | None = None) -> np.ndarray:
        """Return some rows of columns, (stop − start, n), unscaled."""
        ids = np.arange(self.shape[1]) if ids is None else check_ids(ids, self.shape[1])
        out = np.empty((stop - start, len(ids)), self.dtype)
        for span in self.spans(ids):
            values = span.buffer.view(self.dtype)
            positions = np.arange(len(ids))[span.positions]
            for offset, position in zip(span.offsets, positions, strict=True):
                out[:, position] = values[offset + start : offset + stop]
        return out

    def to_frame(self, ids: np.ndarray | None = None) -> Any:
        """Return the columns as a pandas data frame, with paths and labels where there are any."""
        try:
            from pandas import DataFrame
        except ImportError:
            accepted = "pandas, first: pip install 'visionshare[tables]'"
            raise InputError("pandas", "not installed", accepted) from None
        ids = np.arange(self.shape[1]) if ids is None else check_ids(ids, self.shape[1])
        names = self.feature_names
        frame = DataFrame(self.rows(0, self.shape[0], ids), columns=[names[j] for j in ids])
        for number, (name, texts) in enumerate((("path", self.paths), ("label", self.labels))):
            if texts is not None:
                frame.insert(min(number, frame.shape[1]), name, texts)
        return frame

    def sample(self, rows: np.ndarray, old: Columns | None = None) -> ArrayColumns:
        return sampled(self, rows, old)

    def spans(self, ids: np.ndarray | None) -> Iterator[Span]:
        """Yield a span per shard; its pages are released where all shards exceed the memory."""
        ids = np.arange(self.shape[1]) if ids is None else ids
        self.fill(ids)
        itemsize = np.dtype(self.dtype).itemsize
        tight = self.shape[0] * self.shape[1] * itemsize > self._memory // 2
        shard_of = self._shard_of[ids]
        for number in np.unique(shard_of):
            positions = np.flatnonzero(shard_of == number)
            shard = self._map(self._names[number])
            yield Span(shard.buffer, shard.offsets[self._row_of[ids[positions]]], positions)
            if tight:
                shard.release_pages()

    def _map(self, name: str) -> MappedShard:
        if name not in self._mapped:
            entry = self._manifest.shards[name]
            path = self.folder / SHARDS / name
            self._mapped[name] = MappedShard(path, entry, self.shape[0], self.dtype)
        return self._mapped[name]

    def fill(self, ids: np.ndarray | None = None) -> None:
        """Evaluate and commit what is missing of these columns, and of their blocks."""
        ids = np.arange(self.shape[1]) if ids is None else ids
        if (self._shard_of[ids] >= 0).all():
            return
        # Another process may have committed them since the manifest was read.
        self._adopt(read_manifest(self.folder))
        if (self._shard_of[ids] >= 0).all():
            return
        if self._family is None or self._images is None:
            left = f"{len(self.missing)} columns are not evaluated yet"
            raise StoreError(f"{self.folder}: {left}; open the store with its family and images")
        with writer_lock(self.folder):
            self._adopt(read_manifest(self.folder))
            for shards in track(self._batches(self._family, ids), "columns"):
                batch = np.concatenate(shards)
                columns = self._family.transform_columns
                values = columns(self._images, batch, self.n_jobs, self.dtype)
                ends = np.cumsum([len(shard) for shard in shards])
                for shard, part in zip(shards, np.split(values, ends[:-1]), strict=True):
                    self._write(shard, part)

    def _batches(self, family: FeatureFamily, ids: np.ndarray) -> list[list[np.ndarray]]:
        """Return what is missing of these columns' blocks: batches of shards that are to be."""
        missing = np.zeros(self.shape[1], bool)
        missing[ids] = self._shard_of[ids] < 0
        blocks = [
            block[self._shard_of[block] < 0]
            for block in family.block_ids(np.arange(self.shape[1]))
            if missing[block].any()
        ]
        column_bytes = max(1, self.shape[0]) * np.dtype(self.dtype).itemsize
        most = max(1, min(self._memory // 8, _LARGEST_SHARD) // column_bytes)
        parts = [block[i : i + most] for block in blocks for i in range(0, len(block), most)]
        shards = [np.concatenate(shard) for shard in _joined(parts, most)]
        return _joined(shards, max(most, min(self._memory // 2, _LARGEST_BATCH) // column_bytes))

    def commit(self, ids: np.ndarray, values: np.ndarray) -> None:
        """Commit columns that were evaluated elsewhere."""
        ids = check_ids(ids, self.shape[1])
        if values.shape != (len(ids), self.shape[0]) or values.dtype != self.dtype:
            given = f"{values.dtype} of shape {values.shape}"
            accepted = f"{self.dtype} of shape {(len(ids), self.shape[0])}"
            raise InputError("values", given, accepted)
        with writer_lock(self.folder):
            self._adopt(read_manifest(self.folder))
            if len(np.unique(ids)) < len(ids) or (self._shard_of[ids] >= 0).any():
                raise InputError("ids", "committed or repeated columns", "each missing column once")
            self._write(ids, values)

    def _write(self, ids: np.ndarray, values: np.ndarray) -> None:
        numbers = [int(name[:-3]) for name in self._manifest.shards]
        name = f"{max(numbers, default=-1) + 1:05d}.h5"
        entry = write_shard(self.folder / SHARDS / name, values, ids)
        manifest = replace(self._manifest, shards={**self._manifest.shards, name: entry})
        write_manifest(self.folder, manifest)
        self._adopt(manifest)
        _logger.info("committed %d columns in %s", len(ids), name)


def _joined(parts: list[np.ndarray], most: int) -> list[list[np.ndarray]]:
    """Return the parts in lists of at most so many columns, in their order."""
    joined: list[list[np.ndarray]] = []
    size = most
    for part in parts:
        if size + len(part) > most:
            joined.append([])
            size = 0
        joined[-1].append(part)
        size += len(part)
    return joined
