"""The data sets that peers are measured on: the catalog's, and CIFAR-10 as Parquet."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from visionshare.datasets import ImageSet, load_images
from visionshare.errors import DataError

__all__ = ["SETS", "load_split", "read_parquet"]

SETS = ("mnist", "fashion-mnist", "cifar10", "digits")


def load_split(name: str, split: str, data_dir: Path | None) -> ImageSet:
    """Return the images of a split, "train" or "test", of one of SETS.

    Raises
    ------
    DataError
        If they are not there, or pyarrow is not, which reads Parquet.
    """
    if name != "cifar10":
        return load_images(name, split, data_dir)
    if data_dir is None:
        raise DataError(f"{name}: no folder of data; say --data")
    files = sorted((data_dir / name).glob(f"{split}-*.parquet"))
    if not files:
        raise DataError(f"{data_dir / name}: no files {split}-*.parquet")
    return read_parquet(files, name)


def read_parquet(files: Sequence[Path], name: str) -> ImageSet:
    """Return images and labels of Parquet files as dataset hubs publish them.

    ``img`` is a record with the ``bytes`` of a picture, ``label`` the index of its class; the
    schema's metadata has the names of the classes.
    """
    try:
        import pyarrow.parquet as parquet
    except ImportError:
        raise DataError(f"{name}: reading Parquet needs pyarrow: pip install pyarrow") from None
    tables = [parquet.read_table(file, columns=["img", "label"]) for file in files]
    pictures = [row["bytes"] for table in tables for row in table["img"].to_pylist()]
    labels = np.concatenate([table["label"].to_numpy() for table in tables]).astype(np.int64)
    images = np.stack([np.asarray(Image.open(io.BytesIO(content))) for content in pictures])
    return ImageSet(images, labels, _classes(tables[0].schema.metadata, files[0]), name)


def _classes(metadata: dict[bytes, bytes] | None, file: Path) -> tuple[str, ...]:
    try:
        noted: Any = json.loads((metadata or {})[b"huggingface"])
        return tuple(noted["info"]["features"]["label"]["names"])
    except (KeyError, TypeError, ValueError):
        raise DataError(f"{file}: its metadata does not name the classes") from None
