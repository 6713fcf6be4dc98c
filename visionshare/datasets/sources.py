"""One entry for images from anywhere: a name, a file or a folder."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from visionshare.datasets.arrays import read_hdf5, read_npz
from visionshare.datasets.catalog import Catalog, list_datasets, load_dataset
from visionshare.datasets.folders import Fit, read_folder
from visionshare.datasets.glyphs import Fonts
from visionshare.datasets.idx import is_idx, read_idx
from visionshare.datasets.imageset import ImageSet
from visionshare.datasets.parquet import has_parquet, read_parquet
from visionshare.datasets.textures import Cut, read_plates, texture_patches
from visionshare.errors import DataError

__all__ = ["load_images"]


def load_images(
    source: str | os.PathLike[str],
    split: str = "train",
    data_dir: str | os.PathLike[str] | None = None,
    size: tuple[int, int] | None = None,
    mode: str = "gray",
    fit: Fit = "resize",
    cut: Cut | None = None,
    fonts: Fonts | None = None,
    catalog: Catalog = None,
) -> ImageSet:
    """Return images and labels from a catalog name, a folder, or a file.

    Parameters
    ----------
    source : str or path-like
        A name of the catalog; a folder with a folder for each class, or, with ``cut``, with an
        image for each texture, or of Parquet files; a ``.npz`` or HDF5 file with ``images`` and
        ``labels``; a ``.parquet`` file; an IDX file of images beside its labels (``…-images…``
        and ``…-labels…``).
    split : {"train", "test"}
        Of a catalog entry. A folder that has folders ``train`` and ``test`` uses them too, and so
        do names of Parquet files, see :func:`visionshare.datasets.parquet.find_shards`.
    data_dir : path-like, optional
        Where catalog entries are searched first.
    size, mode, fit
        How images of a folder or of Parquet files are read, see
        :func:`visionshare.datasets.folders.read_image`.
    cut : Cut, optional
        Cut patches of this kind from textures: the left half of each trains, the right half tests.
    fonts : Fonts, optional
        How the characters of the catalog's "fonts" are rendered.
    catalog : path-like, optional
        As in :func:`visionshare.datasets.list_datasets`.

    Raises
    ------
    DataError
        If the source is missing, broken or of an unknown kind.

    Examples
    --------
    >>> load_images("digits", "train").classes[:3]
    ('0', '1', '2')
    """
    if isinstance(source, str) and source in list_datasets(catalog):
        return load_dataset(source, split, data_dir, cut, fonts, catalog)
    if fonts is not None:
        raise DataError(f"{source}: its images are not rendered; only those of 'fonts' are")
    path = Path(source)
    if os.path.isdir(path) and cut is not None:
        return texture_patches(read_plates(path, mode), split, cut, path.name)
    if os.path.isdir(path):
        folder = inner if (inner := path / split).is_dir() else path
        if has_parquet(folder):
            return read_parquet(folder, split, size, mode, fit)
        return read_folder(folder, size, mode, fit)
    if not os.path.isfile(path):
        raise DataError(f"{source}: no such file or folder, and no data set of the catalog")
    if cut is not None:
        raise DataError(f"{source}: a file; patches are cut from a folder of textures")
    if path.suffix == ".npz":
        return _labeled(path, read_npz(path))
    if path.suffix in (".h5", ".hdf5"):
        return _labeled(path, read_hdf5(path, ("images", "labels")))
    if path.suffix == ".parquet":
        return read_parquet(path, None, size, mode, fit)
    if is_idx(path):
        name = path.name.replace("images", "labels").replace("idx3", "idx1")
        return _labeled(path, {"images": read_idx(path), "labels": read_idx(path.with_name(name))})
    raise DataError(
        f"{path}: unknown kind of data file (known: .npz, .h5, .parquet, IDX, a folder)"
    )


def _labeled(path: Path, arrays: dict[str, np.ndarray]) -> ImageSet:
    for name in ("images", "labels"):
        if name not in arrays:
            raise DataError(f"{path}: no array {name!r}; it has {sorted(arrays)[:10]}")
    images, labels = arrays["images"], arrays["labels"]
    if labels.ndim != 1 or images.ndim < 1 or labels.dtype.kind not in "iuUSO":
        raise DataError(f"{path}: labels of shape {labels.shape} for images {images.shape}")
    if len(labels) != len(images):
        raise DataError(f"{path}: {len(labels)} labels for {len(images)} images")
    if images.dtype.kind not in "fiu":
        raise DataError(f"{path}: images of {images.dtype} are not numbers")
    try:
        if labels.dtype.kind in "SO":
            labels = np.array([v.decode() if isinstance(v, bytes) else str(v) for v in labels])
        classes, index = np.unique(labels, return_inverse=True)
        names = tuple(str(c) for c in classes)
    except (ValueError, TypeError, SystemError) as error:
        # Bytes that are no text, or numbers that are no characters.
        raise DataError(f"{path}: labels that are no text ({error})") from None
    return ImageSet(images, index.astype(np.int64), names, path.stem)
