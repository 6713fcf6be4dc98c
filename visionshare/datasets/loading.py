"""One entry for images from anywhere: a name, a file or a folder."""

from __future__ import annotations

import os
from dataclasses import replace

from visionshare.datasets.catalog import LISTED_DATASETS, Catalog, list_datasets
from visionshare.datasets.catalog_sets import load_dataset
from visionshare.datasets.folders import Fit, as_preprocessing
from visionshare.datasets.glyphs import Fonts
from visionshare.datasets.imageset import ImageSet
from visionshare.datasets.pictures.reading import read_pictures
from visionshare.datasets.readers.labels import TEST, TRAIN, VALIDATION
from visionshare.datasets.readers.registry import find_pictures
from visionshare.datasets.readers.targets import Target
from visionshare.datasets.textures import Cut, read_plates, texture_patches
from visionshare.errors import DataError, InputError
from visionshare.errors.inputs import checked_path
from visionshare.errors.names import nothing_named


def load_images(
    source: str | os.PathLike[str],
    split: str = "train",
    data_dir: str | os.PathLike[str] | None = None,
    size: tuple[int, int] | None = None,
    mode: str | None = None,
    fit: Fit = "resize",
    cut: Cut | None = None,
    fonts: Fonts | None = None,
    catalog: Catalog = None,
    target: Target | None = None,
) -> ImageSet:
    """Return images and labels from a catalog name, a folder, or a file.

    Parameters
    ----------
    source : str or path-like
        A name of the catalog; with ``cut``, a folder with an image for each texture; else
        anything of :func:`visionshare.datasets.readers.registry.find_pictures`.
    split : {"train", "test"}
        Of a catalog entry, and of pictures that come in these parts; of others it is all. Where
        no picture is named for testing, those for validation test.
    data_dir : path-like, optional
        Where catalog entries are searched first.
    size, mode, fit
        How pictures are read, see :func:`visionshare.datasets.folders.read_image`. When the mode
        is omitted, files become gray, and arrays stay as they are.
    cut : Cut, optional
        Cut patches of this kind from textures: the left half of each trains, the right half tests.
    fonts : Fonts, optional
        How the characters of the catalog's "fonts" are rendered.
    catalog : path-like, optional
        As in :func:`visionshare.datasets.list_datasets`.
    target : Target, optional
        Columns of a table that hold values or several labels instead of classes.

    Raises
    ------
    InputError
        If the split is another.
    DataError
        If the source is missing, broken or of an unknown kind.

    Examples
    --------
    >>> load_images("digits", "train").classes[:3]
    ('0', '1', '2')
    """
    if split not in ("train", "test"):
        raise InputError("split", split, "'train' or 'test'")
    if isinstance(source, str) and source in list_datasets(catalog):
        return replace(load_dataset(source, split, data_dir, cut, fonts, catalog), split=split)
    if fonts is not None:
        raise DataError(f"{source}: only the images of 'fonts' are rendered")
    path = checked_path("source", source)
    if cut is not None:
        if not os.path.isdir(path):
            raise DataError(f"{source}: patches are cut from a folder of textures")
        plates = read_plates(path, mode or "gray")
        return replace(texture_patches(plates, split, cut, path.name), split=split)
    if not os.path.exists(path):
        known = list_datasets(catalog)
        kind = "folder, file or data set"
        raise DataError(nothing_named(source, kind, known, LISTED_DATASETS))
    pictures = find_pictures(path, target)
    chosen = None
    if pictures.roles is not None:
        testing = TEST if pictures.has_test else VALIDATION
        chosen = pictures.roles == (testing if split == "test" else TRAIN)
    read = read_pictures(pictures, size, mode, as_preprocessing(fit), chosen=chosen)
    labels = pictures.labels[read.numbers]
    part = None if chosen is None else split
    about = (pictures.classes, pictures.name, read.short_names, part, pictures.values)
    answers = None if pictures.answers is None else pictures.answers.subset(read.numbers)
    return ImageSet(read.images, labels, *about, answers=answers)
