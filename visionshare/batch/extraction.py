"""Features of any number of images: read in batches, kept as a column store."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

import numpy as np

from visionshare.batch.evaluated_files import Evaluated, Source, evaluate_files, value_limits
from visionshare.batch.extraction_parts import (
    Part,
    committed_parts,
    first_change,
    holds_parts_alone,
    part_columns,
    read_broken,
    read_contents,
    write_contents,
    write_part,
)
from visionshare.batch.mapping import Mapper, itself, map_here
from visionshare.batch.tables import feature_descriptions
from visionshare.datasets.folders import Fit, as_preprocessing
from visionshare.datasets.notices import note_pages
from visionshare.datasets.pictures.value_ranges import widest, with_range
from visionshare.datasets.scans import forget_scans
from visionshare.errors import DataError, InputError, StoreError
from visionshare.files.durable import is_partial, make_folder, remove_folder, write_text
from visionshare.files.fingerprints import (
    IMAGE_BLOCK,
    array_fingerprint,
    joined_fingerprint,
    spec_fingerprint,
)
from visionshare.files.uploads import Destination
from visionshare.generators import FeatureFamily
from visionshare.machine.memory import check_fits, memory_limit
from visionshare.machine.progress import shown, stage, track
from visionshare.machine.resources import parse_size, resolve_jobs
from visionshare.store import StoreColumns, create_empty_store, open_store
from visionshare.store.listing import LABELS, listing_line, write_descriptions
from visionshare.store.manifest import MANIFEST
from visionshare.store.writer_lock import LOCK as STORE_LOCK
from visionshare.store.writer_lock import writer_lock

_PARTS_FOLDER = "work"
_IDENTITY = "extraction.json"
_LOCK = "extraction.lock"
FEATURES_FILE = "features.safetensors"
# Images that an estimate of the time evaluates; a whole block where these take less time.
_TRIED = 16
_LONG_ENOUGH = 0.3

T = TypeVar("T")

_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Extraction:
    """The result of an extraction.

    Attributes
    ----------
    folder : pathlib.Path or str
        The store, and ``images.txt`` with the path of each example; of results in object storage
        their URL.
    images, features : int
        Shape of the matrix.
    broken : tuple of str
        Images that could not be read and were skipped.

    Examples
    --------
    >>> done = Extraction("out.store", images=2000, features=500, broken=())
    >>> done.images * done.features
    1000000
    """

    folder: Path | str
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
    mapper: Mapper | None = None,
    labels: Sequence[str] | None = None,
    regions: bool = False,
    draft: bool = False,
) -> Extraction:
    """Evaluate a family on image files and write the columns to a store.

    Images are read and evaluated a few hundred at a time, and each part is committed: a run that
    was stopped resumes after the last one when it is started again. At the end the parts are
    turned into columns, which :func:`visionshare.store.open_store` opens.

    Contents of files count, not their names alone: where an image was replaced since a stopped run
    read it, its part and those after it are computed again; a finished extraction is refused then.

    Parameters
    ----------
    family : FeatureFamily
        Fitted, of gray or RGB images.
    paths : sequence of str
        Image files; example i of the store is the i-th that can be read.
    out : path-like
        Folder of the store; or a URL of object storage: it is then made in
        :func:`visionshare.files.uploads.local_place`, and uploaded when it is complete.
    fit : {"resize", "center"} or Preprocessing, default "resize"
        How images are brought to the family's size.
    dtype : {"float32", "float16"}, default "float32"
    memory : str or int, default "1GiB"
        Bound of the images and columns that are in memory at once.
    n_jobs : int, default 1
        Threads.
    skip_broken : bool, default False
        Leave images out that cannot be read, instead of stopping at the first.
    progress : bool, default False
        Show a progress bar.
    mapper : Mapper, optional
        Reads and evaluates images elsewhere, on a cluster for example; the store is the same.
    labels : sequence of str, optional
        A label for each path; tables then have a column of them.
    regions : bool, default False
        Paths are regions, such as "scan.png#0,0,256,256", see :mod:`visionshare.batch.regions`.
    draft : bool, default False
        Decode large JPEGs at a half, a quarter or an eighth of their size, at least twice the
        family's: some times as fast, with pixels that differ by a few gray values.

    Raises
    ------
    InputError
        If an argument is not accepted.
    DataError
        If there is no image, or one cannot be read.
    MemoryLimitError
        If a part of the images and their features do not fit into the memory.
    StoreError
        If the folder holds something else, or features of other images under the same names.
    StorageError
        If the store cannot be written.

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
    shape = family.image_shape_
    if len(shape) < 2 or shape[2:] not in ((), (1,), (3,)):
        raise InputError("family", f"one of shape {shape}", "a family of gray or RGB images")
    bound = parse_size(memory)
    threads = resolve_jobs(n_jobs)
    if not paths:
        raise DataError("no images to extract features from")
    if labels is not None and len(labels) != len(paths):
        raise InputError("labels", f"{len(labels)} labels", f"{len(paths)}, one for each path")
    if draft and regions:
        raise InputError("draft", draft, "False for regions, which are cut out at full size")
    place = Destination.of(out, replaces=False)
    check_extraction_folder(place.folder)
    source = Source(family, fit, dtype, skip_broken, threads, regions, draft)
    source = _with_range(source, paths, mapper)
    job = _Job(source, paths, place.folder, threads, mapper)
    make_folder(job.folder)
    with shown(progress), memory_limit(bound), writer_lock(job.folder, _LOCK):
        _check_fits(job)
        place.claim()
        extraction = _extracted(job, bound)
        _describe(job, extraction, labels)
        place.deliver((_PARTS_FOLDER, _LOCK, STORE_LOCK))
    place.clear()
    return extraction if place.url is None else replace(extraction, folder=place.url)


def estimated_seconds(source: Source, paths: Sequence[str]) -> float:
    """Return about how long an extraction takes, by that of some images; 0 where these fail."""
    # What is compiled or loaded once does not count.
    evaluate_files(source, paths[:1])
    for tried in (_TRIED, IMAGE_BLOCK):
        begun = time.perf_counter()
        found = evaluate_files(source, paths[1 : 1 + tried])
        seconds = time.perf_counter() - begun
        if seconds > _LONG_ENOUGH:
            break
    return seconds / max(1, len(found.images)) * len(paths)


def _describe(job: _Job, extraction: Extraction, labels: Sequence[str] | None) -> None:
    """Write what tables need beside the columns: names, descriptions and labels."""
    family = job.source.family
    names = [str(name) for name in family.get_feature_names_out()]
    write_descriptions(job.folder, names, feature_descriptions(family))
    if labels is not None:
        broken = set(extraction.broken)
        rows = zip(job.paths, labels, strict=True)
        lines = [listing_line(label) for path, label in rows if path not in broken]
        write_text(job.folder / LABELS, "".join(lines))


def _check_fits(job: _Job) -> None:
    """See that the images of a part, decoded one by one, and their columns fit into memory."""
    height, width, *channels = (*job.source.family.image_shape_, 1)
    image = float(height * width * channels[0])
    features = np.dtype(job.source.dtype).itemsize * job.source.family.n_features_
    ways = "a smaller size, fewer features"
    # While a part is read there are its images twice.
    check_fits("a part of the images", IMAGE_BLOCK * (2 * image + 2.0 * features), ways)


def check_extraction_folder(out: str | os.PathLike[str]) -> None:
    """Check that a folder does not exist, is empty, or is an extraction's; touch nothing."""
    folder = Path(out)
    if folder.exists() and not folder.is_dir():
        raise StoreError(f"{folder}: not a folder; choose another")
    if not folder.exists() or (folder / _IDENTITY).exists():
        return
    if any(
        path.name not in (FEATURES_FILE, _LOCK) and not is_partial(path)
        for path in folder.iterdir()
    ):
        raise StoreError(f"{folder}: not empty, and no extraction; choose another folder")


def _extracted(job: _Job, bound: int) -> Extraction:
    _claim(job)
    store = _begun_store(job) if (job.folder / MANIFEST).exists() else None
    parts = [] if store is not None and not len(store.missing) else _all_parts(job)
    return _assembled(job, store, parts, bound)


@dataclass(frozen=True)
class _Job:
    source: Source
    paths: Sequence[str]
    folder: Path
    threads: int
    mapper: Mapper | None


def _claim(job: _Job) -> None:
    """Write the identity of the extraction to its folder, or check the one that is there."""
    listing = "\n".join(job.paths).encode("utf-8", "surrogateescape")
    identity = {
        "family": spec_fingerprint(*job.source.family.to_state()),
        "paths": hashlib.sha256(listing).hexdigest(),
        "fit": job.source.fit if isinstance(job.source.fit, str) else job.source.fit.to_values(),
        "dtype": job.source.dtype,
        "skip_broken": job.source.skip_broken,
        # Absent where it is not set, as in stores of versions that did not have it.
        **({"draft": True} if job.source.draft else {}),
    }
    file = job.folder / _IDENTITY
    if file.exists():
        if file.read_bytes() != json.dumps(identity).encode():
            raise StoreError(
                f"{job.folder}: holds an extraction of other features, images or settings; "
                "choose another folder"
            )
        return
    write_text(file, json.dumps(identity))


def _begun_store(job: _Job) -> StoreColumns:
    """Return the store that an earlier call made; refuse it where an image is another one now."""
    contents = read_contents(job.folder)
    if contents is None:
        _logger.warning("%s: of a version that kept no digests of images", job.folder)
    elif (changed := first_change(contents, job.paths, job.threads)) is not None:
        raise StoreError(
            f"{job.folder}: {changed} changed since its features were extracted; "
            "choose another folder"
        )
    return open_store(job.folder, job.source.family)


def _all_parts(job: _Job) -> list[Part]:
    """Return all parts: those that are committed, intact and of the same images, then new ones."""
    work = job.folder / _PARTS_FOLDER
    parts = committed_parts(work, job.paths, job.threads)
    start = parts[-1].stop if parts else 0
    with stage("images", len(job.paths), start) as advance:
        for evaluated in _blocks(_evaluations(job, start)):
            stop = start + len(evaluated.paths)
            images = evaluated.images
            block = Part(
                start,
                stop,
                len(images),
                array_fingerprint(images),
                evaluated.broken,
                evaluated.contents,
            )
            parts.append(write_part(work, len(parts), block, evaluated.columns))
            advance(stop - start)
            start = stop
    return parts


def _evaluations(job: _Job, start: int) -> Iterator[Evaluated]:
    """Return the images from one on, read and evaluated some at a time, here or elsewhere."""
    for evaluated in _mapped(evaluate_files, job.source, job.paths[start:], job.mapper):
        # Workers of a cluster cannot tell it here.
        for name, n_pages in evaluated.left_out.items():
            note_pages(name, n_pages)
        yield evaluated


def _mapped(
    function: Callable[[Source, Sequence[str]], T],
    source: Source,
    paths: Sequence[str],
    mapper: Mapper | None,
) -> Iterator[T]:
    """Yield a function's results of the files, some hundred at a time, here or elsewhere."""
    chunks = (paths[i : i + IMAGE_BLOCK] for i in range(0, len(paths), IMAGE_BLOCK))
    if mapper is None:
        return map_here(function, itself, (source,), chunks)
    return mapper(function, itself, (replace(source, threads=1),), chunks)


def _with_range(source: Source, paths: Sequence[str], mapper: Mapper | None) -> Source:
    """Return the source with one range of values for all files that have one of their own."""
    limits = widest(_mapped(value_limits, source, paths, mapper))
    if limits is None:
        return source
    return replace(source, fit=with_range(as_preprocessing(source.fit), limits))


def _blocks(evaluations: Iterable[Evaluated]) -> Iterator[Evaluated]:
    """Yield the same files again, :data:`IMAGE_BLOCK` readable images at a time."""
    # So the store's identity is that of the readable images, however many were skipped.
    left: Evaluated | None = None
    for evaluated in evaluations:
        left = evaluated if left is None else left.joined(evaluated)
        while len(left.images) >= IMAGE_BLOCK:
            block, left = left.split(IMAGE_BLOCK)
            yield block
    if left is not None and left.paths:
        yield left


def _assembled(
    job: _Job, store: StoreColumns | None, parts: Sequence[Part], bound: int
) -> Extraction:
    """Turn the parts into columns, some columns at a time."""
    forget_scans()
    columns = _new_store(job, parts) if store is None else store
    m = columns.shape[0]
    missing = columns.missing
    if len(missing) and sum(part.count for part in parts) != m:
        raise StoreError(f"{job.folder}: parts are missing; delete the folder and restart")
    step = max(1, bound // 4 // (m * np.dtype(job.source.dtype).itemsize))
    batches = [missing[i : i + step] for i in range(0, len(missing), step)]
    for ids in track(batches, "writing columns"):
        values = np.empty((len(ids), m), job.source.dtype)
        start = 0
        for number, part in enumerate(parts):
            stop = start + part.count
            values[:, start:stop] = part_columns(job.folder / _PARTS_FOLDER, number)[ids]
            start = stop
        columns.commit(ids, values)
    if holds_parts_alone(job.folder / _PARTS_FOLDER):
        remove_folder(job.folder / _PARTS_FOLDER)
    return Extraction(job.folder, *columns.shape, tuple(read_broken(job.folder)))


def _new_store(job: _Job, parts: Sequence[Part]) -> StoreColumns:
    broken = [path for part in parts for path in part.broken]
    m = sum(part.count for part in parts)
    if m == 0:
        raise DataError(f"none of {len(broken)} images can be read; the first is {broken[0]}")
    write_contents(job.folder, job.paths, broken, [d for part in parts for d in part.contents])
    blocks = [part.sha256 for part in parts if part.count]
    identity = joined_fingerprint((m, *job.source.family.image_shape_), blocks)
    return create_empty_store(job.folder, job.source.family, m, identity, job.source.dtype)
