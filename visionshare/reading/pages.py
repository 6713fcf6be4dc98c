"""The pages of a file as gray images: pictures, TIFF, and PDF through an extra."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np

from visionshare.datasets.decoding import decode_pages
from visionshare.datasets.opening import open_picture
from visionshare.errors import DataError, InputError

_DPI = 200
_MAX_PIXELS = 1 << 26


def n_pages_of(path: str | os.PathLike[str]) -> int:
    """Return how many pages a file has."""
    if not _is_pdf(path):
        return open_picture(path).n_pages
    with _opened(path) as document:
        return len(document)


def gray_pages(path: str | os.PathLike[str]) -> Iterator[np.ndarray]:
    """Yield the pages of a file, (H, W) uint8; PDF pages are drawn at 200 dpi."""
    if not _is_pdf(path):
        yield from decode_pages(path, background=255)
        return
    with _opened(path) as document:
        for page in document:
            width, height = page.get_size()
            if not 0 < width * height * (_DPI / 72) ** 2 <= _MAX_PIXELS:
                raise DataError(f"{path}: a page of {width:.0f} x {height:.0f} points is too large")
            bitmap = page.render(scale=_DPI / 72, grayscale=True)
            yield np.array(bitmap.to_numpy()).reshape(bitmap.height, bitmap.width)


def _is_pdf(path: str | os.PathLike[str]) -> bool:
    try:
        with open(path, "rb") as file:
            return file.read(5) == b"%PDF-"
    except OSError:
        return False


def _opened(path: str | os.PathLike[str]) -> Any:
    try:
        import pypdfium2
    except ImportError:
        accepted = "pictures, or PDF with the extra: pip install visionshare[pdf]"
        raise InputError("pages", os.fspath(path), accepted) from None
    try:
        return pypdfium2.PdfDocument(path)
    except pypdfium2.PdfiumError as error:
        raise DataError(f"{os.fspath(path)}: cannot be read as a PDF ({error})") from None
