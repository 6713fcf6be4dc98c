"""The images of the catalog's data sets: inside Python packages, or in files of any kind."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from visionshare.datasets.catalog import (
    Catalog,
    Folder,
    by_hand,
    checked_file,
    data_roots,
    dataset_info,
)
from visionshare.datasets.catalog_entry import DataSetInfo, Split
from visionshare.datasets.folders import read_image
from visionshare.datasets.glyphs import Fonts, load_fonts
from visionshare.datasets.imageset import ImageSet
from visionshare.datasets.pictures.reading import read_pictures
from visionshare.datasets.readers.idx import read_idx
from visionshare.datasets.readers.libsvm import read_libsvm
from visionshare.datasets.readers.npz import read_npz
from visionshare.datasets.readers.parquet import find_shards, has_parquet, pictures_of_files
from visionshare.datasets.sampling import stratified_mask
from visionshare.datasets.textures import Cut, texture_patches
from visionshare.errors import DataError

_TEXTURES = ("brick", "grass", "gravel")


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

    Examples
    --------
    >>> load_dataset("digits", "test").images.shape
    (599, 8, 8)
    """
    if split not in ("train", "test"):
        raise DataError(f"split {split!r}: it is 'train' or 'test'")
    info = dataset_info(name, catalog)
    # A catalog of one's own may give the names of bundled sets to other data.
    kind = info.name if info.kind == "bundled" else info.kind
    if fonts is not None and kind != "fonts":
        raise DataError(f"{name}: only the images of 'fonts' are rendered")
    if cut is not None and kind not in ("textures", "plates"):
        raise DataError(f"{name}: its images have one size; patches are cut from textures only")
    if kind == "fonts":
        return load_fonts(split, fonts, data_dir)
    if kind == "textures":
        return texture_patches(bundled_textures(), split, cut)
    if kind == "plates":
        return texture_patches(load_plates(name, data_dir, catalog), split, cut, info.name)
    if kind not in _LOADERS:
        raise DataError(f"{name}: {info.name!r} is not bundled; digits, fonts and textures are")
    return _LOADERS[kind](info, split, data_dir)


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

    Examples
    --------
    >>> load_plates("brodatz", "/data")  # doctest: +SKIP
    {'grass': array(...), 'bark': array(...), ...}
    """
    info = dataset_info(name, catalog)
    if not info.plates:
        raise DataError(f"{name}: no set of textures: its catalog entry has no plates")
    return {
        plate.name: read_image(checked_file(info, plate.image, data_dir))[: plate.rows]
        for plate in info.plates
    }


def bundled_textures() -> dict[str, np.ndarray]:
    """Return the textures that come with scikit-image."""
    from skimage import data

    # Files of the package itself, unlike most of its images: nothing is downloaded.
    return {name: getattr(data, name)() for name in _TEXTURES}


def load_digits(split: str) -> ImageSet:
    """Return scikit-learn's 8×8 digits: two thirds of each class train, a third tests."""
    images, labels = _digits()
    chosen = _drawn(labels, 1 / 3, split)
    return ImageSet(images[chosen], labels[chosen], tuple("0123456789"), "digits")


@cache
def _digits() -> tuple[np.ndarray, np.ndarray]:
    """Return all digits. They are read once, as parsing them takes as long as a short training."""
    from sklearn.datasets import load_digits as sklearn_digits

    digits = sklearn_digits()
    return np.round(digits.images * (255 / 16)).astype(np.uint8), digits.target.astype(np.int64)


def _load_idx(info: DataSetInfo, split: str, data_dir: Folder) -> ImageSet:
    part = _part(info, split)
    images = read_idx(checked_file(info, part.images, data_dir))
    labels = read_idx(checked_file(info, part.labels, data_dir))
    _check_shape(info, part, images)
    return ImageSet(images, labels.astype(np.int64), info.classes, info.name)


def _load_libsvm(info: DataSetInfo, split: str, data_dir: Folder) -> ImageSet:
    part = _part(info, split)
    path = checked_file(info, part.images, data_dir)
    values, labels = read_libsvm(path, part.shape[1:])
    _check_shape(info, part, values)
    low, high = info.value_range
    present, numbers = np.unique(labels, return_inverse=True)
    if values.min() < low or values.max() > high or len(present) != len(info.classes):
        raise DataError(f"{info.name}: {path} is not the file of the catalog: other values")
    values -= low
    values /= high - low
    return ImageSet(values, numbers.astype(np.int64), info.classes, info.name)


def _load_npz(info: DataSetInfo, split: str, data_dir: Folder) -> ImageSet:
    part = _part(info, "all")
    arrays = read_npz(checked_file(info, part.images, data_dir))
    for name in ("images", part.labels):
        if name not in arrays:
            raise DataError(f"{info.name}: {part.images} has no array {name!r}")
    images = arrays["images"]
    _check_shape(info, part, images)
    _, labels = np.unique(arrays[part.labels], return_inverse=True)
    whole = ImageSet(images, labels, info.classes, info.name)
    # No official split: a seeded fraction of each class tests.
    return whole.subset(_drawn(labels, info.test_fraction, split))


def _load_parquet(info: DataSetInfo, split: str, data_dir: Folder) -> ImageSet:
    roots = data_roots(data_dir)
    found = [folder for root in roots if has_parquet(folder := root / info.folder)]
    if not info.folder or not found:
        searched = ", ".join(map(str, roots))
        raise DataError(f"{info.name}: no {info.folder}/*.parquet in {searched}; {by_hand(info)}")
    mode = "color" if len(info.image_shape) == 3 else "gray"
    pictures = pictures_of_files([(None, find_shards(found[0], split))], info.name)
    images = read_pictures(pictures, mode=mode).images
    if images.shape[1:] != info.image_shape or pictures.classes != info.classes:
        raise DataError(f"{info.name}: {found[0]} has images or classes of another data set")
    return ImageSet(images, pictures.labels, info.classes, info.name)


_LOADERS: dict[str, Callable[[DataSetInfo, str, Folder], ImageSet]] = {
    "digits": lambda info, split, data_dir: load_digits(split),
    "idx": _load_idx,
    "libsvm": _load_libsvm,
    "npz": _load_npz,
    "parquet": _load_parquet,
}


def _part(info: DataSetInfo, split: str) -> Split:
    if split not in info.splits:
        raise DataError(f"{info.name}: its catalog entry has no [splits.{split}]")
    return info.splits[split]


def _check_shape(info: DataSetInfo, part: Split, images: np.ndarray) -> None:
    if images.shape != part.shape:
        raise DataError(f"{info.name}: {part.images} has shape {images.shape}, not {part.shape}")


def _drawn(labels: np.ndarray, test_fraction: float, split: str) -> np.ndarray:
    """Return which images belong to a split of a set without official ones."""
    tests = stratified_mask(labels, test_fraction, 0)
    return tests if split == "test" else ~tests
