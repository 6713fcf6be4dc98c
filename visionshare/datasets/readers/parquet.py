"""Images in Parquet files, as dataset hubs publish them; needs pyarrow, the extra ``parquet``."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from visionshare.datasets.broken_files import file_errors
from visionshare.datasets.readers.bounds import check_count, unpacked_limit
from visionshare.datasets.readers.labels import classes_of, role_of, roles_of
from visionshare.datasets.readers.picture_set import Content, PictureSet
from visionshare.errors import DataError

# Of all images and labels together.
_MAX_BYTES = 8 << 30
# Read from a file at once, however large its row groups are.
_BUFFER = 1 << 20
# Rows that are unpacked together, and how often what a file unpacks to may stand in its rows.
_BATCH = 8
_COPIES = 4
# Groups of rows that every file may have, and bytes of a file for each further one.
_FREE_GROUPS = 500
_GROUP_BYTES = 1 << 14
_IMAGES = ("image", "img")
_LABELS = "label"
# "train-00000-of-00002.parquet", "test.parquet"
_NAME = re.compile(r"(train|test|validation)(?![A-Za-z])(?:-(\d+)-of-(\d+))?")


class _File(NamedTuple):
    """A file: its number of rows, the column of its pictures, and the classes that it names."""

    path: Path
    n_rows: int
    image: str
    is_text: bool
    classes: tuple[str, ...]


def has_parquet(path: Path) -> bool:
    """Return whether a path is a Parquet file, or a folder that holds some or whose folders do."""
    return bool(_homes(path)) or path.suffix.lower() == ".parquet"


def parquet_pictures(path: Path) -> PictureSet:
    """Return the pictures of a Parquet file, or of those in a folder."""
    if path.is_dir():
        return pictures_of_files(_parts(path), path.resolve().name)
    return pictures_of_files([(None, [path])], path.stem)


def pictures_of_files(parts: Sequence[tuple[str | None, list[Path]]], name: str) -> PictureSet:
    """Return the pictures of Parquet files, given with their roles."""
    # The column ``image`` or ``img`` is a record with the ``bytes`` of a picture, or these bytes;
    # ``label`` is the name of its class, or its index where the schema's metadata ``huggingface``
    # names the classes.
    files: list[_File] = []
    labels: list[Any] = []
    given: list[str | None] = []
    for role, paths in parts:
        for file in map(_described, paths):
            files.append(file)
            if (file.classes, file.is_text) != (files[0].classes, files[0].is_text):
                raise DataError(f"{file.path}: classes differ from {files[0].path}")
            labels += _labels(file)
            given += [role] * file.n_rows
    source = str(files[0].path)
    if not labels:
        raise DataError(f"{source}: no images")
    if files[0].classes:
        classes = files[0].classes
        numbers = np.array(labels, np.int64)
    else:
        classes, numbers = classes_of(list(map(str, labels)), given, source)

    def contents() -> Iterator[Content]:
        for file in files:
            for row, content in enumerate(_rows(file)):
                # Missing bytes become empty ones, which no decoder accepts.
                yield Content(f"{file.path}: row {row}", content or b"")

    return PictureSet(name, classes, numbers, roles_of(given, source), contents)


def find_shards(folder: str | os.PathLike[str], split: str | None = None) -> list[Path]:
    """Return the Parquet files of a split in a folder, in the order of their names."""
    homes = _homes(Path(folder))
    if len(homes) > 1:
        names = ", ".join(home.name for home in homes[:10])
        raise DataError(f"{folder}: several of its folders have Parquet files; name one of {names}")
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


def _homes(folder: Path) -> list[Path]:
    """Return the folder, or else those in it, that Parquet files lie in."""
    # Of a name that is too long for the system this says no, where Path raises.
    if not os.path.isdir(folder):
        return []
    if any(folder.glob("*.parquet")):
        return [folder]
    return sorted({path.parent for path in folder.glob("*/*.parquet")})


def _parts(folder: Path) -> list[tuple[str | None, list[Path]]]:
    """Return the role and the shards of each split of a folder."""
    inner = {home: role_of(home.name) for home in _homes(folder) if home != folder}
    if "train" in inner.values():
        return [(role, find_shards(home)) for home, role in inner.items() if role is not None]
    names = {match[1] for path in find_shards(folder) if (match := _NAME.match(path.name))}
    if "train" not in names:
        return [(None, find_shards(folder))]
    return [(role_of(name), find_shards(folder, name)) for name in sorted(names, reverse=True)]


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """Open a Parquet file; what goes wrong inside of the block is a DataError."""
    try:
        from pyarrow import parquet
    except ImportError:
        message = 'reading Parquet needs pyarrow: pip install "visionshare[parquet]"'
        raise DataError(f"{path}: {message}") from None
    try:
        with (
            file_errors(path, "Parquet"),
            parquet.ParquetFile(path, buffer_size=_BUFFER, page_checksum_verification=True) as file,
        ):
            yield file
    except MemoryError as error:
        # A page may announce any size.
        raise DataError(f"{path}: cannot be read as Parquet ({error})") from None


def _described(path: Path) -> _File:
    with _opened(path) as file:
        schema = file.schema_arrow
        image = _image_column(path, schema)
        is_text = _are_texts(path, schema)
        classes = () if is_text else _named_classes(path, schema.metadata)
        n_rows = file.metadata.num_rows
        n_groups = file.metadata.num_row_groups
    n_bytes = path.stat().st_size
    check_count(str(path), n_rows, n_bytes)
    if n_groups > _FREE_GROUPS + n_bytes // _GROUP_BYTES:
        raise DataError(f"{path}: {n_groups} groups of rows; write larger ones")
    return _File(path, n_rows, image, is_text, classes)


def _image_column(path: Path, schema: Any) -> str:
    """Return the column of the pictures' bytes, perhaps in a record, if there is one of labels."""
    from pyarrow import types

    # Of a name that two columns have there is no index.
    name = next((name for name in _IMAGES if schema.get_field_index(name) >= 0), None)
    if name is None or schema.get_field_index(_LABELS) < 0:
        has = ", ".join(schema.names[:10]) or "none"
        raise DataError(f"{path}: no columns 'image' (or 'img') and 'label'; it has {has}")
    kind = schema.field(name).type
    index = kind.get_field_index("bytes") if types.is_struct(kind) else -1
    content = kind.field(index).type if index >= 0 else kind
    if not (types.is_binary(content) or types.is_large_binary(content)):
        raise DataError(f"{path}: its column {name!r} is no record with bytes, but {kind}")
    return name if index < 0 else f"{name}.bytes"


def _are_texts(path: Path, schema: Any) -> bool:
    """Return whether labels are texts, and not whole numbers."""
    from pyarrow import types

    kind = schema.field(_LABELS).type
    inner = kind.value_type if types.is_dictionary(kind) else kind
    is_text = bool(types.is_string(inner) or types.is_large_string(inner))
    if not is_text and not types.is_integer(kind):
        raise DataError(f"{path}: its column 'label' is no class, a text or an index, but {kind}")
    return is_text


def _named_classes(path: Path, metadata: dict[bytes, bytes] | None) -> tuple[str, ...]:
    """Return the classes that metadata of the hub names, none where it names none."""
    try:
        noted = json.loads((metadata or {})[b"huggingface"])
        names = noted["info"]["features"][_LABELS]["names"]
    except (KeyError, TypeError, ValueError, RecursionError):
        return ()
    if names is None:
        return ()
    are_texts = isinstance(names, list) and all(isinstance(name, str) for name in names)
    if not are_texts or not names or len(set(names)) < len(names):
        raise DataError(f"{path}: its metadata 'huggingface' does not name the classes, each once")
    return tuple(names)


def _labels(file: _File) -> list[Any]:
    """Return the label of each row; the pictures are not read."""
    labels: list[Any] = []
    # A text of many rows is kept once.
    kept: dict[Any, Any] = {}
    with _opened(file.path) as opened:
        for batch in opened.iter_batches(batch_size=1024, columns=[_LABELS], use_threads=False):
            labels += [kept.setdefault(label, label) for label in batch.column(0).to_pylist()]
            if len(labels) > file.n_rows:
                break
    _check_rows(file, len(labels))
    n_classes = len(file.classes)
    for row, label in enumerate(labels):
        if label is None or (n_classes and not 0 <= label < n_classes):
            accepted = f"a class from 0 to {n_classes - 1}" if n_classes else "a class"
            raise DataError(f"{file.path}: row {row}: label {label}, not {accepted}")
    return labels


def _rows(file: _File) -> Iterator[bytes | None]:
    """Yield the picture of each row."""
    # Few rows are unpacked together, and all of them to no more than the file's size allows: a
    # few bytes may stand for any number of large pictures.
    most = _COPIES * unpacked_limit(file.path.stat().st_size, _MAX_BYTES)
    is_record = "." in file.image
    n_rows = n_bytes = 0
    with _opened(file.path) as opened:
        for batch in opened.iter_batches(
            batch_size=_BATCH, columns=[file.image], use_threads=False
        ):
            pictures = batch.column(0)
            n_rows += len(pictures)
            n_bytes += batch.nbytes
            if n_rows > file.n_rows:
                break
            if n_bytes > most:
                raise DataError(f"{file.path}: unpacks to more than {most} bytes")
            # Of a record that is missing, flattening gives no bytes.
            yield from (pictures.flatten()[0] if is_record else pictures).to_pylist()
    _check_rows(file, n_rows)


def _check_rows(file: _File, n_rows: int) -> None:
    if n_rows != file.n_rows:
        raise DataError(f"{file.path}: it has not the {file.n_rows} rows that it announces")
