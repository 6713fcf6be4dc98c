"""Features of any number of images: read in batches, kept as a column store."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from visionshare.datasets.folders import Fit, as_preprocessing, read_images
from visionshare.durable import is_partial, replace_file, write_text
from visionshare.errors import DataError, InputError, StoreError
from visionshare.fingerprints import (
    IMAGE_BLOCK,
    array_fingerprint,
    joined_fingerprint,
    spec_fingerprint,
)
from visionshare.generators import FeatureFamily
from visionshare.resources import parse_size, resolve_jobs
from visionshare.store import StoreColumns, create_empty_store, open_store
from visionshare.store.manifest import MANIFEST

__all__ = ["FEATURES_FILE", "Extraction", "extract_features"]

_PARTS_FOLDER = "work"
_LISTING = "images.txt"
_BROKEN = "broken.json"
_IDENTITY = "extraction.json"
FEATURES_FILE = "features.safetensors"


@dataclass(frozen=True)
class Extraction:
    """What an extraction wrote.

    Attributes
    ----------
    folder : pathlib.Path
        The store, and ``images.txt`` with the path of each example.
    images, features : int
        Shape of the matrix.
    broken : tuple of str
        Images that could not be read and were skipped.
    """

    folder: Path
    images: int
    features: int
    broken: tuple[str, ...]


def extract_features(
    family: FeatureFamily,
    paths: Sequence[str],
    out: str | os.PathLike[str],
    *,
    fit: Fit = "resize",
    dtype: str = "float32",
    memory: str | int = "1GiB",
    n_jobs: int = 1,
    skip_broken: bool = False,
    progress: bool = False,
) -> Extraction:
    """Evaluate a family on image files and write the columns to a store.

    Images are read and evaluated a few hundred at a time, and each part is committed: a run that
    was stopped resumes after the last one when it is started again. At the end the parts are
    turned into columns, which :func:`visionshare.store.open_store` opens.

    Parameters
    ----------
    family : FeatureFamily
        Fitted, of images (not vectors).
    paths : sequence of str
        Image files; example i of the store is the i-th that can be read.
    out : path-like
        Folder of the store.
    fit : {"resize", "center"} or Preprocessing, default "resize"
        How images are brought to the family's size.
    dtype : {"float32", "float16"}, default "float32"
    memory : str or int, default "1GiB"
        Bound of the columns that are in memory at once.
    n_jobs : int, default 1
        Threads.
    skip_broken : bool, default False
        Leave images out that cannot be read, instead of stopping at the first.
    progress : bool, default False
        Show a progress bar.

    Raises
    ------
    InputError
        If an argument is not accepted.
    DataError
        If there is no image, or one cannot be read.
    StoreError
        If the folder holds something else.

    Examples
    --------
    >>> import tempfile
    >>> from PIL import Image
    >>> from visionshare import Pixels
    >>> family = Pixels().fit(np.zeros((1, 2, 2), np.uint8))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Image.new("L", (9, 9), 7).save(f"{folder}/a.png")
    ...     extraction = extract_features(family, [f"{folder}/a.png"], f"{folder}/store")
    >>> extraction.images, extraction.features
    (1, 4)
    """
    if dtype not in ("float32", "float16"):
        raise InputError("dtype", dtype, "'float32' or 'float16'")
    as_preprocessing(fit)
    if len(family.image_shape_) < 2:
        raise InputError("family", f"vectors of {family.image_shape_}", "a family of images")
    bound, threads = parse_size(memory), resolve_jobs(n_jobs)
    job = _Job(family, paths, Path(out), fit, dtype, threads, skip_broken)
    _claim(job)
    if not (job.folder / MANIFEST).exists():
        for number, description, columns in _missing_parts(job, progress):
            _write_part(job.folder, number, description, columns)
    return _assembled(job, bound)


@dataclass(frozen=True)
class _Job:
    family: FeatureFamily
    paths: Sequence[str]
    folder: Path
    fit: Fit
    dtype: str
    threads: int
    skip_broken: bool


def _claim(job: _Job) -> None:
    """Write the identity of the extraction to its folder, or check the one that is there."""
    if not job.paths:
        raise DataError("no images to extract features from")
    listing = "\n".join(job.paths).encode("utf-8", "surrogateescape")
    identity = {
        "family": spec_fingerprint(*job.family.to_state()),
        "paths": hashlib.sha256(listing).hexdigest(),
        "fit": job.fit if isinstance(job.fit, str) else job.fit.to_values(),
        "dtype": job.dtype,
        "skip_broken": job.skip_broken,
    }
    file = job.folder / _IDENTITY
    if file.exists():
        if file.read_text("utf-8") != json.dumps(identity):
            raise StoreError(
                f"{job.folder}: holds an extraction of other features, images or settings; "
                "choose another folder"
            )
        return
    if job.folder.exists() and any(
        path.name != FEATURES_FILE and not is_partial(path) for path in job.folder.iterdir()
    ):
        raise StoreError(f"{job.folder}: not empty, and no extraction; choose another folder")
    write_text(file, json.dumps(identity))


def _parts(folder: Path) -> list[dict[str, Any]]:
    """Return the description of each committed part, in order."""
    descriptions: list[dict[str, Any]] = []
    while (file := folder / _PARTS_FOLDER / f"{len(descriptions):07d}.json").exists():
        descriptions.append(json.loads(file.read_text("utf-8")))
    return descriptions


def _missing_parts(job: _Job, progress: bool) -> Iterator[tuple[int, dict[str, Any], np.ndarray]]:
    """Yield number, description and columns of each part that is not committed yet."""
    committed = _parts(job.folder)
    number, start = len(committed), (committed[-1]["stop"] if committed else 0)
    bar: Any = None
    if progress:
        from tqdm import tqdm

        bar = tqdm(desc="images", total=len(job.paths), initial=start)
    while start < len(job.paths):
        images, stop, broken = _block(job, start)
        description = {
            "stop": stop,
            "count": len(images),
            "sha256": array_fingerprint(images),
            "broken": broken,
        }
        columns = np.empty((job.family.n_features_, 0), job.dtype)
        if len(images):
            columns = job.family.transform_columns(images, None, job.threads, job.dtype)
        yield number, description, columns
        if bar is not None:
            bar.update(stop - start)
        number, start = number + 1, stop
    if bar is not None:
        bar.close()


def _block(job: _Job, start: int) -> tuple[np.ndarray, int, list[str]]:
    """Return the next readable images, the index after the last path tried, and the broken ones.

    There are always :data:`IMAGE_BLOCK`, except at the end: so the store's identity is that of
    the readable images, however many were skipped.
    """
    shape = job.family.image_shape_
    size, mode = (shape[0], shape[1]), "color" if shape[2:] == (3,) else "gray"
    images, stop = np.zeros((0, *shape), np.uint8), start
    broken: list[str] = []
    while len(images) < IMAGE_BLOCK and stop < len(job.paths):
        paths = job.paths[stop : stop + IMAGE_BLOCK - len(images)]
        left_out = broken if job.skip_broken else None
        read = read_images(paths, size, mode, job.fit, job.threads, left_out)
        images = np.concatenate([images, read.reshape(-1, *shape)])
        stop += len(paths)
    return images, stop, broken


def _write_part(
    folder: Path, number: int, description: dict[str, Any], columns: np.ndarray
) -> None:
    name = folder / _PARTS_FOLDER / f"{number:07d}"
    with replace_file(name.with_suffix(".npy")) as partial, open(partial, "wb") as handle:
        np.save(handle, columns, allow_pickle=False)
    # The description is written last: a part without one does not count.
    write_text(name.with_suffix(".json"), json.dumps(description))


def _assembled(job: _Job, bound: int) -> Extraction:
    """Turn the parts into columns, some columns at a time."""
    parts = _parts(job.folder)
    if (job.folder / MANIFEST).exists():
        columns = open_store(job.folder, job.family)
    else:
        columns = _new_store(job, parts)
    m = columns.shape[0]
    if len(columns.missing) and sum(part["count"] for part in parts) != m:
        raise StoreError(f"{job.folder}: parts are missing; delete the folder and restart")
    step = max(1, bound // 4 // (m * np.dtype(job.dtype).itemsize))
    missing = columns.missing
    for ids in (missing[i : i + step] for i in range(0, len(missing), step)):
        values, start = np.empty((len(ids), m), job.dtype), 0
        for number, part in enumerate(parts):
            part_values = np.load(job.folder / _PARTS_FOLDER / f"{number:07d}.npy", mmap_mode="r")
            stop = start + part["count"]
            values[:, start:stop] = part_values[ids]
            start = stop
        columns.commit(ids, values)
    shutil.rmtree(job.folder / _PARTS_FOLDER, ignore_errors=True)
    broken = json.loads((job.folder / _BROKEN).read_text("utf-8"))
    return Extraction(job.folder, *columns.shape, tuple(broken))


def _new_store(job: _Job, parts: list[dict[str, Any]]) -> StoreColumns:
    broken = [path for part in parts for path in part["broken"]]
    m = sum(part["count"] for part in parts)
    if m == 0:
        raise DataError(f"none of {len(broken)} images can be read; the first is {broken[0]}")
    left_out = set(broken)
    write_text(
        job.folder / _LISTING, "".join(f"{path}\n" for path in job.paths if path not in left_out)
    )
    write_text(job.folder / _BROKEN, json.dumps(broken))
    blocks = [part["sha256"] for part in parts if part["count"]]
    identity = joined_fingerprint((m, *job.family.image_shape_), blocks)
    return create_empty_store(job.folder, job.family, m, identity, job.dtype)
