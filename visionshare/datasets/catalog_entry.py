"""What an entry of the data catalog may say."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class CatalogFile(_Strict):
    """One file of a data set."""

    path: str
    sha256: str
    content_sha256: str | None = None
    bytes: int | None = None
    url: str | None = None


class Split(_Strict):
    """Where a split's images and labels are."""

    images: str
    labels: str
    shape: tuple[int, ...]


class TexturePlate(_Strict):
    """An image of one texture."""

    name: str
    image: str
    rows: int | None = None


class DataSetInfo(_Strict):
    """A catalog entry."""

    name: str
    title: str
    kind: Literal["idx", "npz", "libsvm", "bundled", "plates", "parquet"]
    license: str
    citation: str
    homepage: str = ""
    classes: tuple[str, ...] = ()
    notes: str = ""
    files: tuple[CatalogFile, ...] = ()
    splits: dict[str, Split] = {}
    plates: tuple[TexturePlate, ...] = ()
    test_fraction: float = 0.0
    value_range: tuple[float, float] = (0.0, 1.0)
    folder: str = ""
    image_shape: tuple[int, ...] = Field(default=(), max_length=3)
