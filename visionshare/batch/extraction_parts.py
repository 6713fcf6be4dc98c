"""What an extraction keeps on disk beside its store: parts, and the digests of its images."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from visionshare.batch.regions import files_of
from visionshare.errors import StoreError
from visionshare.files.durable import is_partial, replace_file, write_text
from visionshare.files.fingerprints import file_digest, spec_fingerprint
from visionshare.store.listing import LISTING, listing_line

_BROKEN = "broken.json"
_CONTENTS = "contents.json"
# Of JSON files: the sha256 of their other values.
_SUM = "sum"
# Hexadecimal digits: 128 bits tell files apart, and a digest stands there for each image.
_DIGITS = 32


@dataclass(frozen=True)
class Part:
    """A few hundred images whose features are computed."""

    start: int
    stop: int
    count: int
    sha256: str
    broken: list[str] = field(default_factory=list)
    contents: list[str] = field(default_factory=list)
    columns: str = ""


def digests(paths: Sequence[str], n_jobs: int = 1) -> list[str]:
    """Return a digest of the bytes of each file, or of the files of a region."""
    # An empty text for what cannot be read. A file of many regions is read once.
    files = [files_of(path) for path in paths]
    unique = list(dict.fromkeys(file for some in files for file in some))
    with ThreadPoolExecutor(n_jobs) as threads:
        found = dict(zip(unique, threads.map(_digest, unique), strict=True))
    return ["+".join(found[file] for file in some) for some in files]


def _digest(path: str) -> str:
    try:
        return file_digest(path)[:_DIGITS]
    except (OSError, ValueError):
        return ""


def first_change(contents: Sequence[str], paths: Sequence[str], n_jobs: int = 1) -> str | None:
    """Return the first path whose file has another digest than before, None where none has."""
    if len(contents) != len(paths):
        return "the number of images"
    for start in range(0, len(paths), 1024):
        part = paths[start : start + 1024]
        now = digests(part, n_jobs)
        for path, before, digest in zip(part, contents[start : start + 1024], now, strict=True):
            if before != digest:
                return path
    return None


def write_part(folder: Path, number: int, part: Part, columns: np.ndarray) -> Part:
    """Write a part and its columns; return it with the digest of their file."""
    name = folder / f"{number:07d}"
    with replace_file(name.with_suffix(".npy")) as partial:
        with open(partial, "wb") as handle:
            np.save(handle, columns, allow_pickle=False)
        written = replace(part, columns=file_digest(partial))
    # The description is written last: a part without one does not count.
    _write(name.with_suffix(".json"), asdict(written))
    return written


def committed_parts(folder: Path, paths: Sequence[str], n_jobs: int = 1) -> list[Part]:
    """Return the parts from the first on, up to one that is missing, damaged or of other images."""
    parts: list[Part] = []
    start = 0
    while (part := _read_part(folder, len(parts))) is not None:
        tried = paths[start : part.stop]
        if part.start != start or first_change(part.contents, tried, n_jobs) is not None:
            break
        parts.append(part)
        start = part.stop
    return parts


def _read_part(folder: Path, number: int) -> Part | None:
    values = _read(folder / f"{number:07d}.json")
    if values is None or set(values) != set(Part.__dataclass_fields__):
        return None
    part = Part(**values)
    try:
        intact = file_digest(folder / f"{number:07d}.npy") == part.columns
    except OSError:
        return None
    return part if intact else None


def holds_parts_alone(folder: Path) -> bool:
    """Return whether a folder holds nothing that an extraction did not write, or does not exist."""
    if not folder.exists():
        return True
    return all(
        is_partial(path) or (path.stem.isdigit() and path.suffix in (".json", ".npy"))
        for path in folder.iterdir()
    )


def part_columns(folder: Path, number: int) -> np.ndarray:
    """Return the columns of a part, mapped from its file."""
    return np.load(folder / f"{number:07d}.npy", mmap_mode="r")


def write_contents(
    folder: Path, paths: Sequence[str], broken: Sequence[str], contents: Sequence[str]
) -> None:
    """Write which images the examples are, which were left out, and the digests of all files."""
    left_out = set(broken)
    write_text(folder / LISTING, "".join(listing_line(p) for p in paths if p not in left_out))
    write_text(folder / _BROKEN, json.dumps(list(broken)))
    files = {name: file_digest(folder / name) for name in (LISTING, _BROKEN)}
    _write(folder / _CONTENTS, {"files": files, "images": list(contents)})


def read_contents(folder: Path) -> list[str] | None:
    """Return the digests of the images, None where an earlier version kept none."""
    if not (folder / _CONTENTS).exists():
        return None
    values = _read(folder / _CONTENTS)
    if values is None:
        raise StoreError(f"{folder / _CONTENTS}: is damaged; choose another folder")
    for name, digest in values["files"].items():
        if _digest(str(folder / name)) != digest[:_DIGITS]:
            raise StoreError(f"{folder / name}: is damaged; choose another folder")
    return values["images"]


def read_broken(folder: Path) -> list[str]:
    """Return the paths that were left out."""
    try:
        broken: list[str] = json.loads((folder / _BROKEN).read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        raise StoreError(f"{folder / _BROKEN}: is damaged; choose another folder") from None
    return broken


def _write(path: Path, values: Mapping[str, Any]) -> None:
    write_text(path, json.dumps({**values, _SUM: spec_fingerprint(values, {})}))


def _read(path: Path) -> dict[str, Any] | None:
    """Return the values of a JSON file with a sum, None where it is missing or damaged."""
    try:
        values = json.loads(path.read_text("utf-8"))
        intact = values.pop(_SUM, None) == spec_fingerprint(values, {})
    except (OSError, ValueError, TypeError, AttributeError, RecursionError):
        return None
    return values if intact else None
