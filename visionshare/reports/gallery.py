"""A page of pictures with a line or two under each, that opens without a network."""

from __future__ import annotations

import os
from collections.abc import Iterable
from html import escape
from typing import NamedTuple

import numpy as np

from visionshare.errors.names import without_controls
from visionshare.files.durable import write_text
from visionshare.reports.encoding import thumbnail_source

#: What a gallery begins with.
GALLERY_BEGINS = '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">'
_STYLE = (
    "body{font:14px sans-serif;margin:2em}div{display:flex;flex-wrap:wrap;gap:12px}"
    "figure{margin:0;width:132px}img{width:128px;image-rendering:pixelated}"
    "figcaption{overflow-wrap:anywhere}small{color:#666}"
)


class GalleryTile(NamedTuple):
    """A picture of a gallery, what is said of it, and its file's name."""

    image: np.ndarray
    text: str
    name: str


def write_gallery(
    path: str | os.PathLike[str], title: str, about: str, tiles: Iterable[GalleryTile]
) -> None:
    """Write a page of pictures.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = Path(folder) / "page.html"
    ...     tile = GalleryTile(np.zeros((8, 8), np.uint8), "stop?", "1.png")
    ...     write_gallery(page, "Signs", "", [tile])
    ...     "stop?" in page.read_text()
    True
    """
    parts = [f"{GALLERY_BEGINS}<title>{_shown(title)}</title><style>{_STYLE}</style></head><body>"]
    parts.append(f"<h1>{_shown(title)}</h1><p>{_shown(about)}</p><div>")
    for tile in tiles:
        source = thumbnail_source(tile.image)
        text = f"{_shown(tile.text)}<br><small>{_shown(tile.name)}</small>"
        parts.append(f'<figure><img src="{source}" alt=""><figcaption>{text}</figcaption></figure>')
    parts.append("</div></body></html>\n")
    write_text(path, "\n".join(parts))


def _shown(text: str) -> str:
    return escape(without_controls(text).encode("utf-8", "replace").decode())
