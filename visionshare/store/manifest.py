"""The manifest of a store: what it belongs to, and which columns are in which shard."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from visionshare.durable import write_text
from visionshare.errors import StoreError

__all__ = ["MANIFEST", "Manifest", "ShardEntry", "read_manifest", "write_manifest"]

MANIFEST = "manifest.json"
FORMAT = "visionshare-store"
VERSION = 1
_LARGEST = 256 << 20
_SHARD_NAME = re.compile(r"\d{5,9}\.h5")


@dataclass(frozen=True)
class ShardEntry:
    """One shard: its columns' ids in the file's order, and the file's size and time when sound."""

    ids: tuple[int, ...]
    size: int
    mtime_ns: int


@dataclass(frozen=True)
class Manifest:
    """What ``manifest.json`` says.

    Attributes
    ----------
    shape : tuple of int
        Examples and columns.
    dtype : {"float16", "float32"}
    family : dict
        Plain description of the feature family.
    family_sha256, images_sha256 : str
        Identity of the whole family and of the images.
    shards : dict of str to ShardEntry
    """

    shape: tuple[int, int]
    dtype: str
    family: dict[str, Any]
    family_sha256: str
    images_sha256: str
    shards: dict[str, ShardEntry] = field(default_factory=dict)


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Replace the manifest of a store, atomically."""
    shards = {
        name: {"ids": list(entry.ids), "size": entry.size, "mtime_ns": entry.mtime_ns}
        for name, entry in manifest.shards.items()
    }
    values = {
        "format": FORMAT,
        "version": VERSION,
        "shape": list(manifest.shape),
        "dtype": manifest.dtype,
        "family": manifest.family,
        "family_sha256": manifest.family_sha256,
        "images_sha256": manifest.images_sha256,
        "shards": shards,
    }
    write_text(folder / MANIFEST, json.dumps(values))


def read_manifest(folder: Path) -> Manifest:
    """Read and check the manifest of a store.

    Raises
    ------
    StoreError
        If there is none, or it is broken, foreign, or of an unknown version.
    """
    path = folder / MANIFEST
    try:
        if path.stat().st_size > _LARGEST:
            raise StoreError(f"{path}: too large for a manifest")
        values = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise StoreError(f"{folder}: no store ({error.strerror} for {MANIFEST})") from None
    except (ValueError, RecursionError):
        raise StoreError(f"{path}: broken; begin anew in another folder") from None
    if not isinstance(values, dict) or values.get("format") != FORMAT:
        raise StoreError(f"{path}: not the manifest of a visionshare store")
    if values.get("version") != VERSION:
        raise StoreError(
            f"{path}: format version {values.get('version')!r}, this library reads {VERSION}"
        )
    try:
        return _checked(values)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise StoreError(f"{path}: broken ({error})") from None


def _whole(value: Any, least: int, most: int) -> int:
    if type(value) is not int or not least <= value <= most:
        raise ValueError(f"{value!r} where a number from {least} to {most} is wanted")
    return value


def _checked(values: dict[str, Any]) -> Manifest:
    m, d = (_whole(side, 0, 2**40) for side in values["shape"])
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
        ids = tuple(_whole(j, 0, d - 1) for j in entry["ids"])
        if len(set(ids)) != len(ids) or not seen.isdisjoint(ids) or not ids:
            raise ValueError(f"columns of shard {name} stand twice or are none")
        seen.update(ids)
        size, time = _whole(entry["size"], 0, 2**60), _whole(entry["mtime_ns"], 0, 2**70)
        shards[name] = ShardEntry(ids, size, time)
    return Manifest((m, d), values["dtype"], values["family"], *texts, shards)
