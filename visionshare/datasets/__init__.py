"""Datasets: images and labels from files, folders, arrays, bundled sets and the catalogue."""

from visionshare.datasets.catalogue import (
    dataset_info,
    fetch_dataset,
    list_datasets,
    load_dataset,
    load_plates,
    verify_dataset,
)
from visionshare.datasets.deformations import elastic_deformations
from visionshare.datasets.glyphs import Fonts
from visionshare.datasets.imageset import ImageSet
from visionshare.datasets.preprocessing import Preprocessing
from visionshare.datasets.sources import load_images
from visionshare.datasets.textures import Cut

__all__ = [
    "Cut",
    "Fonts",
    "ImageSet",
    "Preprocessing",
    "dataset_info",
    "elastic_deformations",
    "fetch_dataset",
    "list_datasets",
    "load_dataset",
    "load_images",
    "load_plates",
    "verify_dataset",
]
