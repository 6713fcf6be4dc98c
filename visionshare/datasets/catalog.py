"""The data catalog: one TOML per data set, looked up, verified and fetched by name."""

from __future__ import annotations

import gzip
import hashlib
import os
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from pydantic import ValidationError

from visionshare.datasets import bundled_sets
from visionshare.datasets.catalog_entry import CatalogFile, DataSetInfo, Split
from visionshare.datasets.glyphs import Fonts, load_fonts
from visionshare.datasets.imageset import ImageSet
from visionshare.datasets.sampling import stratified_mask
from visionshare.datasets.textures import Cut, texture_patches
from visionshare.errors import DataError
from visionshare.errors.names import did_you_mean
from visionshare.files.bundled import bundled
from visionshare.files.toml import read_toml_file
from visionshare.machine.resources import cache_folder

__all__ = [
    "LISTED_DATASETS",
    "Catalog",
    "DataSetInfo",
    "data_roots",
    "dataset_info",
    "fetch_dataset",
    "list_datasets",
    "load_dataset",
    "load_plates",
    "uses_folder",
    "verify_dataset",
]

#: Where an error without a nearer hint sends its reader.
LISTED_DATASETS = "`visionshare data list` lists the data sets"
# A folder with a TOML file for each data set; the bundled ones when it is None.
Catalog: TypeAlias = "str | os.PathLike[str] | None"
Folder: TypeAlias = "str | os.PathLike[str] | None"


def list_datasets(catalog: Catalog = None) -> list[str]:
    """Return the names in the catalog.

    Parameters
    ----------
    catalog : path-like, optional
        A folder with a TOML file for each data set; the bundled catalog when omitted.

    Raises
    ------
    DataError
        If there is no such folder.

    Examples
    --------
    >>> "mnist" in list_datasets()
    True
    """
    return sorted(_entries(catalog))


def _entries(catalog: Catalog) -> dict[str, Path]:
    """Return the files of a catalog by the names of their data sets."""
    if catalog is None:
        return bundled("data")
    if not Path(catalog).is_dir():
        raise DataError(f"{catalog}: no such folder; a catalog is a folder of TOML files")
    return {path.stem: path for path in Path(catalog).glob("*.toml")}


def dataset_info(name: str, catalog: Catalog = None) -> DataSetInfo:
    """Return a catalog entry.

    Parameters
    ----------
    name : str
        See :func:`list_datasets`.
    catalog : path-like, optional
        As in :func:`list_datasets`.

    Raises
    ------
    DataError
        If there is none of that name, or it is invalid.

    Examples
    --------
    >>> dataset_info("mnist").splits["test"].shape
    (10000, 28, 28)
    """
    path = _entries(catalog).get(name)
    if path is None:
        near = did_you_mean(name, list_datasets(catalog), LISTED_DATASETS)
        raise DataError(f"no data set named {name!r}{near}")
    try:
        return DataSetInfo(**read_toml_file(path))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise DataError(f"{path}: invalid catalog entry ({where}: {first['msg']})") from None
    except (ValueError, RecursionError, OSError, TypeError) as error:
        raise DataError(f"{path}: invalid catalog entry ({error})") from None


def data_roots(data_dir: Folder = None) -> list[Path]:
    """Return the folders that are searched, in order: given, ``VISIONSHARE_DATA``, the cache."""
    # The cache is :func:`visionshare.machine.resources.cache_folder`.
    roots = [] if data_dir is None else [Path(data_dir)]
    if os.environ.get("VISIONSHARE_DATA"):
        roots.append(Path(os.environ["VISIONSHARE_DATA"]))
    return [*roots, cache_folder()]


def uses_folder(name: str, data_dir: str | os.PathLike[str], catalog: Catalog = None) -> bool:
    """Return whether a data set would be read from a folder of data sets."""
    # It is not where it comes inside a package, or where the folder does not have it.
    from visionshare.datasets.readers.parquet import has_parquet

    info, root = dataset_info(name, catalog), Path(data_dir)
    if info.kind == "bundled":
        # Of fonts the folder has more.
        return info.name == "fonts"
    if info.kind == "parquet":
        return bool(info.folder) and has_parquet(root / info.folder)
    files = {file.path for file in info.files} | {plate.image for plate in info.plates}
    files |= {path for part in info.splits.values() for path in (part.images, part.labels)}
    return any(os.path.isfile(root / path) for path in files)


def _find(info: DataSetInfo, path: str, data_dir: Folder) -> Path:
    roots = data_roots(data_dir)
    for root in roots:
        if os.path.isfile(root / path):
            return root / path
    searched = ", ".join(map(str, roots))
    raise DataError(
        f"{info.name}: {path} is not in {searched}; run `visionshare data fetch {info.name}` "
        "or give --data DIR"
    )


def _checked(info: DataSetInfo, path: str, data_dir: Folder) -> Path:
    """Return where a file of a data set lies, once its content is that of the catalog."""
    # It is hashed at each reading: a size and a time do not tell whether a file is intact.
    found = _find(info, path, data_dir)
    listed = {file.path: file for file in info.files}.get(path)
    if listed is not None and not _is_the_file(found, listed):
        raise DataError(
            f"{info.name}: {found} is not the file of the catalog (another sha256); "
            f"remove it and run `visionshare data fetch {info.name}`"
        )
    return found


def _is_the_file(path: Path, listed: CatalogFile) -> bool:
    """Return whether a file has the digest of the catalog, as it is or unpacked."""
    try:
        with open(path, "rb") as file:
            if _sha256(file) == listed.sha256:
                return True
        if listed.content_sha256 is None:
            return False
        with gzip.open(path, "rb") as content:
            return _sha256(content) == listed.content_sha256
    except (OSError, EOFError, zlib.error):
        return False


def _sha256(file: Any) -> str:
    digest = hashlib.sha256()
    while part := file.read(1 << 22):
        digest.update(part)
    return digest.hexdigest()


def verify_dataset(name: str, data_dir: Folder = None, catalog: Catalog = None) -> dict[str, str]:
    """Return, for each file of a data set, "ok", "missing" or "broken" (another sha256).

    Parameters
    ----------
    name : str
    data_dir : path-like, optional
        Searched before ``VISIONSHARE_DATA`` and the user's cache.
    catalog : path-like, optional
        As in :func:`list_datasets`.

    Examples
    --------
    >>> verify_dataset("digits")
    {}
    """
    info = dataset_info(name, catalog)
    states = {}
    for file in info.files:
        try:
            path = _find(info, file.path, data_dir)
        except DataError:
            states[file.path] = "missing"
            continue
        states[file.path] = "ok" if _is_the_file(path, file) else "broken"
    return states


def fetch_dataset(
    name: str,
    data_dir: Folder = None,
    base_url: str | None = None,
    progress: bool = False,
    catalog: Catalog = None,
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
    catalog : path-like, optional
        As in :func:`list_datasets`.

    Returns
    -------
    list of Path
        The files.

    Raises
    ------
    DataError
        If a file has no address, cannot be downloaded, or has another sha256.

    Examples
    --------
    >>> fetch_dataset("digits")
    []
    """
    import pooch

    info = dataset_info(name, catalog)
    if info.kind == "parquet" and not info.files:
        raise DataError(f"{name}: its files have no download addresses; {_by_hand(info)}")
    root = data_roots(data_dir)[0]
    paths = []
    for file in info.files:
        url = f"{base_url.rstrip('/')}/{file.path}" if base_url else file.url
        target = root / file.path
        if url is None:
            raise DataError(f"{name}: {file.path} has no download address; see {info.homepage}")
        try:
            path = pooch.retrieve(
                url,
                known_hash=f"sha256:{file.sha256}",
                fname=target.name,
                path=target.parent,
                progressbar=progress,
            )
        except (OSError, ValueError) as error:
            raise DataError(f"{name}: {url}: {error}") from None
        paths.append(Path(path))
    return paths


def load_dataset(
    name: str,
    split: str = "train",
    data_dir: Folder = None,
    cut: Cut | None = None,
    fonts: Fonts | None = None,
    catalog: Catalog = None,
) -> ImageSet:
    """Return one split of a data set of the catalog.

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
    catalog : path-like, optional
        As in :func:`list_datasets`.

    Raises
    ------
    DataError
        If the data set or a file of it is not there, or is another file than the catalog's
        sha256 says, and what to do about it.

    Examples
    --------
    >>> load_dataset("digits", "test").images.shape
    (599, 8, 8)
    """
    if split not in ("train", "test"):
        raise DataError(f"split {split!r}: it is 'train' or 'test'")
    info = dataset_info(name, catalog)
    # A catalog of one's own may give these names to other data.
    inside = info.name if info.kind == "bundled" else None
    if fonts is not None and inside != "fonts":
        raise DataError(f"{name}: its images are not rendered; only those of 'fonts' are")
    if inside == "textures":
        return bundled_sets.load_textures(split, cut)
    if info.kind == "plates":
        if not info.plates:
            raise DataError(f"{name}: its catalog entry has no plates")
        return texture_patches(_read_plates(info, data_dir), split, cut, info.name)
    if cut is not None:
        raise DataError(f"{name}: its images have one size; patches are cut from textures only")
    if inside == "fonts":
        return load_fonts(split, fonts, data_dir)
    if inside == "digits":
        return bundled_sets.load_digits(split)
    if info.kind == "bundled":
        raise DataError(f"{name}: {info.name!r} is not bundled; digits, fonts and textures are")
    return _LOADERS[info.kind](info, split, data_dir)


def load_plates(
    name: str, data_dir: Folder = None, catalog: Catalog = None
) -> dict[str, np.ndarray]:
    """Return the whole images of a set of textures by class, without blank rows at the bottom.

    Parameters
    ----------
    name : str
        A catalog entry of textures, such as "brodatz".
    data_dir : path-like, optional
        As in :func:`load_dataset`.
    catalog : path-like, optional
        As in :func:`list_datasets`.

    Raises
    ------
    DataError
        If the data set is of another kind, or a file of it is missing or no image.

    Examples
    --------
    >>> load_plates("brodatz", "/data")  # doctest: +SKIP
    {'grass': array(...), 'bark': array(...), ...}
    """
    info = dataset_info(name, catalog)
    if not info.plates:
        raise DataError(f"{name}: no set of textures")
    return _read_plates(info, data_dir)


def _read_plates(info: DataSetInfo, data_dir: Folder) -> dict[str, np.ndarray]:
    from visionshare.datasets.folders import read_image

    return {
        plate.name: read_image(_checked(info, plate.image, data_dir))[: plate.rows]
        for plate in info.plates
    }


def _split(info: DataSetInfo, name: str) -> Split:
    if name not in info.splits:
        raise DataError(f"{info.name}: its catalog entry has no [splits.{name}]")
    return info.splits[name]


def _check_shape(info: DataSetInfo, part: Split, images: np.ndarray, labels: np.ndarray) -> None:
    if images.shape != part.shape:
        raise DataError(f"{info.name}: {part.images} has shape {images.shape}, not {part.shape}")
    if labels.shape != images.shape[:1]:
        raise DataError(f"{info.name}: labels of shape {labels.shape} for images {images.shape}")


def _load_idx(info: DataSetInfo, split: str, data_dir: Folder) -> ImageSet:
    from visionshare.datasets.readers.idx import read_idx

    part = _split(info, split)
    images = read_idx(_checked(info, part.images, data_dir))
    labels = read_idx(_checked(info, part.labels, data_dir))
    _check_shape(info, part, images, labels)
    return ImageSet(images, labels.astype(np.int64), info.classes, info.name)


def _load_libsvm(info: DataSetInfo, split: str, data_dir: Folder) -> ImageSet:
    from visionshare.datasets.readers.libsvm import read_libsvm

    part = _split(info, split)
    values, labels = read_libsvm(_checked(info, part.images, data_dir), part.shape[1:])
    low, high = info.value_range
    if len(values) != part.shape[0] or values.min() < low or values.max() > high:
        raise DataError(f"{info.name}: {part.images} is not the file of the catalog")
    values -= low
    values /= high - low
    present, index = np.unique(labels, return_inverse=True)
    if len(present) != len(info.classes):
        raise DataError(f"{info.name}: {part.images} has {len(present)} classes")
    return ImageSet(values, index.astype(np.int64), info.classes, info.name)


def _load_npz(info: DataSetInfo, split: str, data_dir: Folder) -> ImageSet:
    from visionshare.datasets.readers.npz import read_npz

    part = _split(info, "all")
    arrays = read_npz(_checked(info, part.images, data_dir))
    missing = {"images", part.labels} - set(arrays)
    if missing:
        raise DataError(f"{info.name}: {part.images} has no array {min(missing)!r}")
    _check_shape(info, part, arrays["images"], arrays[part.labels])
    _, labels = np.unique(arrays[part.labels], return_inverse=True)
    # No official split: a seeded fraction of each class tests.
    tests = stratified_mask(labels, info.test_fraction, 0)
    chosen = tests if split == "test" else ~tests
    return ImageSet(arrays["images"][chosen], labels[chosen], info.classes, info.name)


def _load_parquet(info: DataSetInfo, split: str, data_dir: Folder) -> ImageSet:
    from visionshare.datasets.pictures.reading import read_pictures
    from visionshare.datasets.readers.parquet import find_shards, has_parquet, pictures_of_files

    roots = data_roots(data_dir)
    found = [folder for root in roots if has_parquet(folder := root / info.folder)]
    if not info.folder or not found:
        searched = ", ".join(map(str, roots))
        raise DataError(f"{info.name}: no {info.folder}/*.parquet in {searched}; {_by_hand(info)}")
    mode = "color" if len(info.image_shape) == 3 else "gray"
    pictures = pictures_of_files([(None, find_shards(found[0], split))], info.name)
    images = read_pictures(pictures, mode=mode).images
    if images.shape[1:] != info.image_shape or pictures.classes != info.classes:
        raise DataError(f"{info.name}: {found[0]} has images or classes of another data set")
    return ImageSet(images, pictures.labels, info.classes, info.name)


def _by_hand(info: DataSetInfo) -> str:
    where = f"DIR/{info.folder} and give --data DIR"
    return f"put its files, such as train-00000-of-00001.parquet, into {where}; see {info.homepage}"


_LOADERS: dict[str, Callable[[DataSetInfo, str, Folder], ImageSet]] = {
    "idx": _load_idx,
    "libsvm": _load_libsvm,
    "npz": _load_npz,
    "parquet": _load_parquet,
}
