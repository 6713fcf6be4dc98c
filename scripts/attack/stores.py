"""Manifests of stores with faults, beside shards that are whole."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from scripts.attack.classifiers import absurd_json, change_json
from scripts.attack.damage import Inputs, mutated
from visionshare.errors import StoreError

__all__ = ["STORES"]

_ARCHIVES = Path(__file__).parents[2] / "tests" / "archives"
_STORE = "store-v2-patches"
_LARGEST = 1 << 22


@cache
def store_seeds() -> list[bytes]:
    """Return the manifest of the archived store."""
    return [(_ARCHIVES / _STORE / "manifest.json").read_bytes()]


@cache
def _folder() -> Path:
    """Return a copy of the archived store, for this process."""
    made = Path(tempfile.gettempdir()) / f"attack-{os.getpid()}.store"
    shutil.rmtree(made, ignore_errors=True)
    return Path(shutil.copytree(_ARCHIVES / _STORE, made))


def mutated_manifest(seeds: list[bytes], rng: np.random.Generator) -> bytes:
    """Return a damaged manifest, or one of absurd values with a valid digest."""
    content = seeds[rng.integers(0, len(seeds))]
    fault = rng.random()
    if fault < 0.2:
        return mutated(content, rng)
    if fault < 0.23:
        return absurd_json(rng)
    values = json.loads(content)
    for _ in range(rng.integers(1, 4)):
        change_json(values, rng)
    if isinstance(values, dict):
        from visionshare.files.fingerprints import spec_fingerprint

        values.pop("sha256", None)
        with suppress(Exception):
            values["sha256"] = spec_fingerprint(values, {})
    try:
        return json.dumps(values).encode()
    except RecursionError:
        return absurd_json(rng)


def use_manifest(content: bytes, rng: np.random.Generator) -> None:
    """Verify the store, and read it where it is not too large."""
    from visionshare.store import open_store, store_info, verify_store

    folder = _folder()
    (folder / "manifest.json").write_bytes(content)
    store_info(folder)
    problems = verify_store(folder)
    columns = open_store(folder)
    n = len(columns.missing)
    if columns.shape[0] * columns.shape[1] <= _LARGEST and not n:
        values: Any = columns.columns_of()
        if problems and values.size:
            raise AssertionError(f"read in spite of {problems}")
    if n:
        raise StoreError("columns are missing")


STORES = Inputs(store_seeds, mutated_manifest, use_manifest)
