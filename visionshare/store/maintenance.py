"""Looking after stores: what is in one, which shards are broken, and dropping those."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

from visionshare.errors.inputs import checked_path
from visionshare.files.durable import storage_errors
from visionshare.store.manifest import read_manifest, write_manifest
from visionshare.store.shards import SHARDS, shard_problem
from visionshare.store.writer_lock import writer_lock


def store_info(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return what a store contains, as plain values.

    Examples
    --------
    >>> store_info("out/mnist/work/store")["evaluated"]  # doctest: +SKIP
    10740
    """
    manifest = read_manifest(checked_path("path", path))
    entries = manifest.shards.values()
    return {
        "examples": manifest.shape[0],
        "columns": manifest.shape[1],
        "evaluated": sum(len(entry.ids) for entry in entries),
        "dtype": manifest.dtype,
        "shards": len(manifest.shards),
        "bytes": sum(entry.size for entry in entries),
        "family": manifest.family,
        "family_sha256": manifest.family_sha256,
        "images_sha256": manifest.images_sha256,
    }


def verify_store(path: str | os.PathLike[str]) -> dict[str, str]:
    """Return the broken shards of a store and what is wrong with each; reads every byte.

    Examples
    --------
    >>> verify_store("out/mnist/work/store")  # doctest: +SKIP
    {}
    """
    folder = checked_path("path", path)
    manifest = read_manifest(folder)
    problems = {
        name: shard_problem(folder / SHARDS / name, entry, manifest.shape[0], manifest.dtype)
        for name, entry in manifest.shards.items()
    }
    return {name: problem for name, problem in problems.items() if problem is not None}


def repair_store(path: str | os.PathLike[str]) -> list[str]:
    """Drop broken shards and files that the manifest does not list; return their names.

    The dropped columns are evaluated again when they are asked for.

    Examples
    --------
    >>> repair_store("out/mnist/work/store")  # doctest: +SKIP
    ['00003.h5']
    """
    folder = checked_path("path", path)
    # A folder without a store is left as it is: a lock would make a file in it.
    read_manifest(folder)
    with writer_lock(folder):
        broken = verify_store(folder)
        manifest = read_manifest(folder)
        kept = {name: entry for name, entry in manifest.shards.items() if name not in broken}
        write_manifest(folder, replace(manifest, shards=kept))
        dropped = [file for file in sorted((folder / SHARDS).glob("*")) if file.name not in kept]
        for file in dropped:
            with storage_errors(file):
                file.unlink(missing_ok=True)
    return [file.name for file in dropped]
