"""The data catalogue: one TOML a data set, found, verified and fetched by name."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, ValidationError

from visionshare.bundled import bundled
from visionshare.datasets import bundled_sets
from visionshare.datasets.glyphs import Fonts, load_fonts
from visionshare.datasets.imageset import ImageSet
from visionshare.datasets.textures import Cut, texture_patches
from visionshare.errors import DataError
from visionshare.resources import cache_folder

__all__ = [
    "DataSetInfo",
    "data_roots",
    "dataset_info",
    "fetch_dataset",
    "list_datasets",
    "load_dataset",
    "load_plates",
    "verify_dataset",
]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class CatalogueFile(_Strict):
    """One file of a data set."""

    path: str
    sha256: str
    bytes: int | None = None
    url: str | None = None


class Split(_Strict):
    """Where a split's images and labels are."""

    images: str
    labels: str
    shape: tuple[int, ...]


class Plate(_Strict):
    """An image of one texture."""

    name: str
    image: str
    rows: int | None = None


class DataSetInfo(_Strict):
    """A catalogue entry."""

    name: str
    title: str
    kind: Literal["idx", "npz", "libsvm", "bundled", "plates"]
    license: str
    citation: str
    homepage: str = ""
    classes: tuple[str, ...] = ()
    notes: str = ""
    files: tuple[CatalogueFile, ...] = ()
    splits: dict[str, Split] = {}
    plates: tuple[Plate, ...] = ()
    test_fraction: float = 0.0
    value_range: tuple[float, float] = (0.0, 1.0)


def list_datasets() -> list[str]:
    """Return the names in the catalogue.

    Examples
    --------
    >>> "mnist" in list_datasets()
    True
    """
    return sorted(bundled("data"))


def dataset_info(name: str) -> DataSetInfo:
    """Return a catalogue entry.

    Raises
    ------
    DataError
        If there is none of that name, or it is not sound.
    """
    import sys

    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    path = bundled("data").get(name)
    if path is None:
        raise DataError(f"no data set {name!r}; known: {', '.join(list_datasets())}")
    try:
        return DataSetInfo(**tomllib.loads(path.read_text("utf-8")))
    except (ValidationError, ValueError) as error:
        raise DataError(f"{path}: not a sound catalogue entry ({error})") from None


def data_roots(data_dir: str | os.PathLike[str] | None = None) -> list[Path]:
    """Return the folders that are searched, in order: given, ``VISIONSHARE_DATA``, the cache.

    The cache is :func:`visionshare.resources.cache_folder`.
    """
    roots = [] if data_dir is None else [Path(data_dir)]
    if os.environ.get("VISIONSHARE_DATA"):
        roots.append(Path(os.environ["VISIONSHARE_DATA"]))
    return [*roots, cache_folder()]


def _find(info: DataSetInfo, path: str, data_dir: str | os.PathLike[str] | None) -> Path:
    roots = data_roots(data_dir)
    for root in roots:
        if (root / path).is_file():
            return root / path
    searched = ", ".join(map(str, roots))
    raise DataError(
        f"{info.name}: {path} is not in {searched}; run `visionshare data fetch {info.name}` "
        "or give --data DIR"
    )


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with open(path, "rb") as handle:
        while part := handle.read(1 << 20):
            digest.update(part)
    return digest.hexdigest()


def verify_dataset(name: str, data_dir: str | os.PathLike[str] | None = None) -> dict[str, str]:
    """Return, for each file of a data set, "ok", "missing" or "broken" (another sha256)."""
    info, found = dataset_info(name), {}
    for file in info.files:
        try:
            path = _find(info, file.path, data_dir)
        except DataError:
            found[file.path] = "missing"
            continue
        found[file.path] = "ok" if _sha256(path) == file.sha256 else "broken"
    return found


def fetch_dataset(
    name: str,
    data_dir: str | os.PathLike[str] | None = None,
    base_url: str | None = None,
    progress: bool = False,
) -> list[Path]:
    """Download the files of a data set that are not there yet, and check their sha256.

    Parameters
    ----------
    name : str
    data_dir : path-like, optional
        Where to put them; the first of :func:`data_roots` when omitted.
    base_url : str, optional
        A mirror: files are then ``base_url/path``.
    progress : bool, default False
        Show a progress bar.

    Raises
    ------
    DataError
        If a file has no address, cannot be had, or is not the one that was announced.
    """
    import pooch

    info = dataset_info(name)
    root = data_roots(data_dir)[0]
    done = []
    for file in info.files:
        url = f"{base_url.rstrip('/')}/{file.path}" if base_url else file.url
        target = root / file.path
        if url is None:
            raise DataError(f"{name}: {file.path} has no download address; see {info.homepage}")
        try:
            got = pooch.retrieve(
                url,
                known_hash=f"sha256:{file.sha256}",
                fname=target.name,
                path=target.parent,
                progressbar=progress,
            )
        except (OSError, ValueError) as error:
            raise DataError(f"{name}: {url}: {error}") from None
        done.append(Path(got))
    return done


def load_dataset(
    name: str,
    split: str = "train",
    data_dir: str | os.PathLike[str] | None = None,
    cut: Cut | None = None,
    fonts: Fonts | None = None,
) -> ImageSet:
    """Return one split of a data set of the catalogue.

    Parameters
    ----------
    name : str
        See :func:`list_datasets`.
    split : {"train", "test"}
    data_dir : path-like, optional
        Searched before ``VISIONSHARE_DATA`` and the user's cache.
    cut : Cut, optional
        How patches are cut, of a set of textures; see :mod:`visionshare.datasets.textures`.
    fonts : Fonts, optional
        How characters are rendered, of the set "fonts"; see :mod:`visionshare.datasets.glyphs`.

    Raises
    ------
    DataError
        If the data set or a file of it is not there, and what to do about it.
    """
    if split not in ("train", "test"):
        raise DataError(f"split {split!r}: 'train' or 'test' is wanted")
    info = dataset_info(name)
    if fonts is not None and name != "fonts":
        raise DataError(f"{name}: images as they are; characters are rendered by 'fonts' only")
    if name == "fonts" and cut is None:
        return load_fonts(split, fonts, data_dir)
    if name == "textures":
        cut = cut or Cut()
        return bundled_sets.load_textures(split, cut.size, cut.per_class, cut.seed)
    if info.kind == "plates":
        return _load_plates(info, split, data_dir, cut)
    if cut is not None:
        raise DataError(f"{name}: images of a size; patches are cut from textures only")
    if info.kind == "bundled":
        return bundled_sets.load_digits(split)
    if info.kind == "idx":
        return _load_idx(info, split, data_dir)
    if info.kind == "npz":
        return _load_npz(info, split, data_dir)
    return _load_libsvm(info, split, data_dir)


def load_plates(name: str, data_dir: str | os.PathLike[str] | None = None) -> dict[str, np.ndarray]:
    """Return the whole images of a set of textures by class, without blank rows at the bottom.

    Parameters
    ----------
    name : str
        A catalogue entry of textures, such as "brodatz".
    data_dir : path-like, optional
        As in :func:`load_dataset`.

    Raises
    ------
    DataError
        If the data set is of another kind, or a file of it is missing or no image.
    """
    from visionshare.datasets.folders import read_image

    info = dataset_info(name)
    if not info.plates:
        raise DataError(f"{name}: no set of textures")
    return {
        plate.name: read_image(_find(info, plate.image, data_dir))[: plate.rows]
        for plate in info.plates
    }


def _load_plates(info: DataSetInfo, split: str, data_dir: Any, cut: Cut | None) -> ImageSet:
    return texture_patches(load_plates(info.name, data_dir), split, cut, info.name)


def _load_idx(info: DataSetInfo, split: str, data_dir: Any) -> ImageSet:
    from visionshare.datasets.idx import read_idx

    held = info.splits[split]
    images = read_idx(_find(info, held.images, data_dir))
    labels = read_idx(_find(info, held.labels, data_dir))
    if images.shape != held.shape:
        raise DataError(f"{info.name}: {held.images} has shape {images.shape}, not {held.shape}")
    return ImageSet(images, labels.astype(np.int64), info.classes, info.name)


def _load_libsvm(info: DataSetInfo, split: str, data_dir: Any) -> ImageSet:
    from visionshare.datasets.libsvm import read_libsvm

    held = info.splits[split]
    values, labels = read_libsvm(_find(info, held.images, data_dir), held.shape[1:])
    low, high = info.value_range
    if len(values) != held.shape[0] or values.min() < low or values.max() > high:
        raise DataError(f"{info.name}: {held.images} is not the file of the catalogue")
    values -= low
    values /= high - low
    present, index = np.unique(labels, return_inverse=True)
    if len(present) != len(info.classes):
        raise DataError(f"{info.name}: {held.images} holds {len(present)} classes")
    return ImageSet(values, index.astype(np.int64), info.classes, info.name)


def _load_npz(info: DataSetInfo, split: str, data_dir: Any) -> ImageSet:
    from visionshare.datasets.arrays import read_npz

    held = info.splits["all"]
    arrays = read_npz(_find(info, held.images, data_dir))
    labels = arrays[held.labels].astype(np.int64)
    present = np.unique(labels)
    labels = np.searchsorted(present, labels)
    # No official split: a seeded share of each class tests.
    rng = np.random.default_rng(0)
    tests = np.zeros(len(labels), bool)
    for c in range(len(present)):
        members = rng.permutation(np.flatnonzero(labels == c))
        tests[members[: round(info.test_fraction * len(members))]] = True
    chosen = tests if split == "test" else ~tests
    return ImageSet(arrays["images"][chosen], labels[chosen], info.classes, info.name)
