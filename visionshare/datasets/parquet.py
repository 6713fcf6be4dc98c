"""Images in Parquet files, as dataset hubs publish them."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from visionshare.class_labels import in_order
from visionshare.datasets.bounds import check_count, unpacked_limit
from visionshare.datasets.pictures.folders import role_of, roles_of
from visionshare.datasets.pictures.labeled import Content, PictureSet
from visionshare.errors import DataError

__all__ = ["find_shards", "has_parquet", "parquet_pictures"]

# Of all images and labels together.
_MAX_BYTES = 8 << 30
# Read from a file at once, however large its row groups are.
_BUFFER = 1 << 20
# Rows that are unpacked together, and how often what a file unpacks to may stand in its rows.
_BATCH, _COPIES = 8, 4
# Groups of rows that every file may have, and bytes of a file for each further one.
_FREE_GROUPS, _GROUP_BYTES = 500, 1 << 14
_IMAGES, _LABELS = ("image", "img"), "label"
# "train-00000-of-00002.parquet", "test.parquet"
_NAME = re.compile(r"(train|test|validation)(?![A-Za-z])(?:-(\d+)-of-(\d+))?")


class _Shard(NamedTuple):
    """A file: its number of rows, the column of its pictures, and its classes."""

    path: Path
    n_rows: int
    image: str
    is_text: bool
    classes: tuple[str, ...]


class _Classes(NamedTuple):
    """The names of all classes, and the number of each label."""

    names: tuple[str, ...]
    numbers: dict[int | str, int]

    def number(self, where: str, label: int | str | None) -> int:
        """Return the number of the class of a label."""
        if label is None or label not in self.numbers:
            accepted = f"a class from 0 to {len(self.names) - 1}"
            raise DataError(f"{where}: label {label}, not {accepted}")
        return self.numbers[label]


def has_parquet(folder: str | os.PathLike[str]) -> bool:
    """Return whether a folder holds Parquet files, or one of its folders does."""
    return bool(_homes(Path(folder)))


def _homes(folder: Path) -> list[Path]:
    """Return the folder, or else those in it, that Parquet files lie in."""
    # Of a name that is too long for the system this says no, where Path raises.
    if not os.path.isdir(folder):
        return []
    inner = sorted(p for p in folder.iterdir() if p.is_dir())
    here = [folder] if any(folder.glob("*.parquet")) else inner
    return [home for home in here if any(home.glob("*.parquet"))]


def find_shards(folder: str | os.PathLike[str], split: str | None = None) -> list[Path]:
    """Return the Parquet files of a split in a folder, in the order of their names."""
    homes = _homes(Path(folder))
    if len(homes) > 1:
        names = ", ".join(home.name for home in homes[:10])
        raise DataError(f"{folder}: several of its folders have Parquet files; say one of {names}")
    files = sorted(homes[0].glob("*.parquet")) if homes else []
    if not files:
        raise DataError(f"{folder}: no Parquet files")
    named = [(path, match) for path in files if (match := _NAME.match(path.name))]
    if split is None or not named:
        return files
    chosen = [(path, match) for path, match in named if match[1] == split]
    if not chosen:
        splits = ", ".join(sorted({match[1] for _, match in named}))
        raise DataError(f"{homes[0]}: no files {split}-*.parquet; it has {splits}")
    for path, match in chosen:
        if match[3] is not None and len(chosen) != int(match[3]):
            raise DataError(f"{path}: {len(chosen)} of {int(match[3])} shards are here")
    return [path for path, _ in chosen]


def parquet_pictures(source: Sequence[str | os.PathLike[str]], name: str) -> PictureSet:
    """Return the pictures of Parquet files, undecoded; needs pyarrow, the extra ``parquet``."""
    first = Path(source[0])
    parts = _parts(first) if first.is_dir() else [(None, [Path(p) for p in source])]
    described = [(role, _described(path)) for role, paths in parts for path in paths]
    shards = [shard for _, shard in described]
    classes = _classes_of(shards)
    given: list[str | None] = []
    labels: list[int] = []
    for role, shard in described:
        numbers = [classes.number(where, label) for where, label in _labels(shard)]
        labels += numbers
        given += [role] * len(numbers)
    if not labels:
        raise DataError(f"{first}: no images")
    roles = roles_of(given, str(first))

    def contents() -> Iterator[Content]:
        for shard in shards:
            for row, (content, _) in enumerate(_rows(shard)):
                # Bytes that are not in the file are those of no picture.
                yield Content(f"{shard.path}: row {row}", content or b"")

    return PictureSet(name, classes.names, np.array(labels, np.int64), roles, contents)


def _parts(folder: Path) -> list[tuple[str | None, list[Path]]]:
    """Return the role and the shards of each split of a folder."""
    inner = {path.name: role_of(path.name) for path in _homes(folder) if path != folder}
    if "train" in inner.values():
        homes = [(role, folder / name) for name, role in inner.items() if role is not None]
        return [(role, find_shards(home)) for role, home in homes]
    names = {match[1] for path in find_shards(folder) if (match := _NAME.match(path.name))}
    if "train" not in names:
        return [(None, find_shards(folder))]
    return [(role_of(name), find_shards(folder, name)) for name in sorted(names, reverse=True)]


def _labels(shard: _Shard) -> Iterator[tuple[str, int | str | None]]:
    """Yield where each row is and its label; the pictures are not read."""
    n_rows = 0
    with _opened(shard.path) as file:
        for batch in file.iter_batches(batch_size=1024, columns=[_LABELS], use_threads=False):
            for label in batch.column(_LABELS).to_pylist():
                yield f"{shard.path}: row {n_rows}", label
                n_rows += 1
            if n_rows > shard.n_rows:
                break
    if n_rows != shard.n_rows:
        raise DataError(f"{shard.path}: other than the {shard.n_rows} rows that it tells of")


def _classes_of(shards: Sequence[_Shard]) -> _Classes:
    """Return the classes that all shards have: those that they name, or their labels in order."""
    first = shards[0]
    for shard in shards[1:]:
        if (shard.classes, shard.is_text) != (first.classes, first.is_text):
            raise DataError(f"{shard.path}: other classes than those of {first.path}")
    if first.classes:
        return _Classes(first.classes, {number: number for number in range(len(first.classes))})
    labels: set[Any] = set()
    for shard in shards:
        labels.update(label for _, label in _labels(shard) if label is not None)
    ordered: Sequence[Any] = in_order(labels) if first.is_text else sorted(labels)
    return _Classes(tuple(map(str, ordered)), {label: i for i, label in enumerate(ordered)})


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """Open a Parquet file; what goes wrong inside of the block is a DataError."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        message = 'reading Parquet needs pyarrow: pip install "visionshare[parquet]"'
        raise DataError(f"{path}: {message}") from None
    try:
        with parquet.ParquetFile(
            path, buffer_size=_BUFFER, page_checksum_verification=True
        ) as file:
            yield file
    except DataError:
        raise
    except (pyarrow.ArrowException, OSError, ValueError, OverflowError, MemoryError) as error:
        line = " ".join(str(error).split())[:300]
        raise DataError(f"{path}: cannot be read as Parquet ({line})") from None


def _described(path: Path) -> _Shard:
    with _opened(path) as file:
        schema = file.schema_arrow
        image, is_text = _image_column(path, schema), _are_texts(path, schema)
        classes = () if is_text else _named_classes(path, schema.metadata)
        size, about = path.stat().st_size, file.metadata
        check_count(str(path), about.num_rows, size)
        if about.num_row_groups > _FREE_GROUPS + size // _GROUP_BYTES:
            raise DataError(f"{path}: {about.num_row_groups} groups of rows; write larger ones")
        return _Shard(path, file.metadata.num_rows, image, is_text, classes)


def _are_texts(path: Path, schema: Any) -> bool:
    """Return whether labels are texts, once they are what names a class."""
    from pyarrow import types

    kind = schema.field(_LABELS).type
    inner = kind.value_type if types.is_dictionary(kind) else kind
    is_text = bool(types.is_string(inner) or types.is_large_string(inner))
    if not is_text and not types.is_integer(kind):
        raise DataError(f"{path}: its column 'label' is no class, a text or an index, but {kind}")
    return is_text


def _image_column(path: Path, schema: Any) -> str:
    """Return the column of the pictures' bytes, perhaps in a record, if there is one of labels."""
    from pyarrow import types

    # Of a name that two columns have there is no index.
    found = [name for name in _IMAGES if schema.get_field_index(name) >= 0]
    if not found or schema.get_field_index(_LABELS) < 0:
        has = ", ".join(schema.names[:10]) or "none"
        raise DataError(f"{path}: no columns 'image' (or 'img') and 'label'; it has {has}")
    kind = schema.field(found[0]).type
    index = kind.get_field_index("bytes") if types.is_struct(kind) else -1
    content = kind.field(index).type if index >= 0 else kind
    if not (types.is_binary(content) or types.is_large_binary(content)):
        raise DataError(f"{path}: its column {found[0]!r} is no record with bytes, but {kind}")
    return found[0] if index < 0 else f"{found[0]}.bytes"


def _named_classes(path: Path, metadata: dict[bytes, bytes] | None) -> tuple[str, ...]:
    """Return the classes that metadata of the hub names, none where it names none."""
    try:
        noted = json.loads((metadata or {})[b"huggingface"])
        names = noted["info"]["features"][_LABELS]["names"]
    except (KeyError, TypeError, ValueError, RecursionError):
        names = None
    if names is None:
        return ()
    if not isinstance(names, list) or not names:
        raise DataError(f"{path}: its metadata 'huggingface' does not name the classes")
    if not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
        raise DataError(f"{path}: its names of classes are no texts, or not all different")
    return tuple(names)


def _rows(shard: _Shard) -> Iterator[tuple[bytes | None, int | str | None]]:
    """Yield the picture and the label of each row."""
    # Few rows are unpacked together, and all of them to no more than the file's size allows: a
    # few bytes may stand for any number of large pictures.
    columns, n_rows, n_bytes = [shard.image, _LABELS], 0, 0
    most = _COPIES * unpacked_limit(shard.path.stat().st_size, _MAX_BYTES)
    column, *inner = shard.image.split(".")
    with _opened(shard.path) as file:
        for batch in file.iter_batches(batch_size=_BATCH, columns=columns, use_threads=False):
            pictures = batch.column(column)
            n_rows, n_bytes = n_rows + len(pictures), n_bytes + batch.nbytes
            if n_rows > shard.n_rows:
                break
            if n_bytes > most:
                raise DataError(f"{shard.path}: unpacks to more than {most} bytes")
            # Of a record that is missing, flattening gives no bytes.
            contents = (pictures.flatten()[0] if inner else pictures).to_pylist()
            yield from zip(contents, batch.column(_LABELS).to_pylist(), strict=True)
    if n_rows != shard.n_rows:
        raise DataError(f"{shard.path}: other than the {shard.n_rows} rows that it tells of")
