"""The manifest of a store: what it belongs to, and which columns are in which shard."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from visionshare.errors import StoreError
from visionshare.errors.names import nothing_named
from visionshare.files.durable import write_text
from visionshare.files.fingerprints import spec_fingerprint

MANIFEST = "manifest.json"
_FORMAT = "visionshare-store"
VERSION = 2
_LARGEST = 256 << 20
# More than a manifest of the largest size can list; a store keeps a table of so many.
MOST_COLUMNS = 1 << 26
_SHARD_NAME = re.compile(r"\d{5,9}\.h5")


@dataclass(frozen=True)
class ShardEntry:
    """One shard of a store."""

    ids: tuple[int, ...]
    size: int
    blake3: str
    offsets: tuple[int, ...]


@dataclass(frozen=True)
class Manifest:
    """What ``manifest.json`` says."""

    shape: tuple[int, int]
    dtype: str
    family: dict[str, Any]
    family_sha256: str
    images_sha256: str
    shards: dict[str, ShardEntry] = field(default_factory=dict)


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Replace the manifest of a store, atomically."""
    shards = {
        name: {**asdict(entry), "ids": list(entry.ids), "offsets": list(entry.offsets)}
        for name, entry in manifest.shards.items()
    }
    values = {
        "format": _FORMAT,
        "version": VERSION,
        "shape": list(manifest.shape),
        "dtype": manifest.dtype,
        "family": manifest.family,
        "family_sha256": manifest.family_sha256,
        "images_sha256": manifest.images_sha256,
        "shards": shards,
    }
    values["sha256"] = spec_fingerprint(values, {})
    write_text(folder / MANIFEST, json.dumps(values))


def read_manifest(folder: Path) -> Manifest:
    """Read and check the manifest of a store."""
    path = folder / MANIFEST
    try:
        if path.stat().st_size > _LARGEST:
            raise StoreError(f"{path}: too large for a manifest")
        values = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        if not folder.is_dir():
            raise StoreError(nothing_named(folder, "folder of a store")) from None
        raise StoreError(f"{folder}: a folder without {MANIFEST}, so no store") from None
    except OSError as error:
        raise StoreError(f"{folder}: no store ({error.strerror} for {MANIFEST})") from None
    except (ValueError, RecursionError):
        raise StoreError(f"{path}: broken; start again in another folder") from None
    if not isinstance(values, dict) or values.get("format") != _FORMAT:
        raise StoreError(f"{path}: not the manifest of a visionshare store")
    version = values.get("version")
    if type(version) is not int or version != VERSION:
        problem = f"format version {version!r}; this library reads {VERSION}"
        raise StoreError(f"{path}: {problem}; install a newer visionshare, or make the store again")
    try:
        if values.pop("sha256", None) != spec_fingerprint(values, {}):
            raise ValueError("its digest does not match: the file is damaged")
        return _checked(values)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise StoreError(f"{path}: broken ({error})") from None


def _integer(value: Any, least: int, most: int) -> int:
    if type(value) is not int or not least <= value <= most:
        raise ValueError(f"got {value!r}; accepted: an integer from {least} to {most}")
    return value


def _shard_entry(entry: dict[str, Any], ids: tuple[int, ...]) -> ShardEntry:
    size = _integer(entry["size"], 0, 2**60)
    digest = entry["blake3"]
    offsets = tuple(_integer(start, 0, size) for start in entry["offsets"])
    if not isinstance(digest, str) or len(offsets) != len(ids):
        raise ValueError("a shard without a digest, or without the position of each column")
    return ShardEntry(ids, size, digest, offsets)


def _checked(values: dict[str, Any]) -> Manifest:
    m, d = values["shape"]
    m = _integer(m, 0, 2**40)
    d = _integer(d, 0, MOST_COLUMNS)
    if values["dtype"] not in ("float16", "float32"):
        raise ValueError(f"dtype {values['dtype']!r}")
    texts = values["family_sha256"], values["images_sha256"]
    if not all(isinstance(text, str) for text in texts) or not isinstance(values["family"], dict):
        raise ValueError("no identity of family and images")
    shards: dict[str, ShardEntry] = {}
    seen: set[int] = set()
    for name, entry in values["shards"].items():
        if not _SHARD_NAME.fullmatch(name):
            raise ValueError(f"shard name {name!r}")
        ids = tuple(_integer(j, 0, d - 1) for j in entry["ids"])
        if len(set(ids)) != len(ids) or not seen.isdisjoint(ids) or not ids:
            raise ValueError(f"shard {name} has no columns, or some twice")
        seen.update(ids)
        shards[name] = _shard_entry(entry, ids)
    return Manifest((m, d), values["dtype"], values["family"], *texts, shards)
