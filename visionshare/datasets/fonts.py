"""Characters rendered from TrueType fonts; matplotlib's own by default."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from visionshare.datasets.imageset import ImageSet
from visionshare.errors import DataError

__all__ = ["load_fonts", "matplotlib_fonts", "render_characters"]

CHARACTERS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def matplotlib_fonts() -> list[Path]:
    """Return matplotlib's text fonts (its symbol fonts have no letters)."""
    import matplotlib

    folder = Path(matplotlib.get_data_path()) / "fonts" / "ttf"
    return sorted(p for p in folder.glob("*.ttf") if p.name.startswith(("DejaVu", "STIXGeneral")))


def render_characters(
    font: str | os.PathLike[str], characters: str = CHARACTERS, size: int = 28
) -> np.ndarray:
    """Return each character in a font, white on black, centred.

    Parameters
    ----------
    font : path-like
        A TrueType or OpenType file.
    characters : str
    size : int, default 28
        Side of an image; a character fills about 20/28 of it, as in MNIST.

    Returns
    -------
    ndarray of shape (n, size, size), uint8

    Raises
    ------
    DataError
        If the file is no font.
    """
    from PIL import Image, ImageDraw, ImageFont

    try:
        face = ImageFont.truetype(str(font), 4 * size)
    except OSError as error:
        raise DataError(f"{font}: cannot be read as a font ({error})") from None
    images = []
    for character in characters:
        left, top, right, bottom = face.getbbox(character)
        width, height = max(1, right - left), max(1, bottom - top)
        drawn = Image.new("L", (int(width), int(height)))
        ImageDraw.Draw(drawn).text((-left, -top), character, fill=255, font=face)
        ratio = (20 / 28) * size / max(width, height)
        inner = max(1, round(width * ratio)), max(1, round(height * ratio))
        canvas = Image.new("L", (size, size))
        shrunk = drawn.resize(inner, Image.Resampling.BOX)
        canvas.paste(shrunk, ((size - inner[0]) // 2, (size - inner[1]) // 2))
        images.append(np.asarray(canvas))
    return np.stack(images)


def load_fonts(
    split: str, fonts: Sequence[str | os.PathLike[str]] | None = None, copies: int = 20
) -> ImageSet:
    """Return deformed characters; every third font tests, the others train.

    Parameters
    ----------
    split : {"train", "test"}
    fonts : sequence of path-like, optional
        matplotlib's when omitted.
    copies : int, default 20
        Deformed copies of each character and font.
    """
    from visionshare.datasets.deformations import elastic_deformations

    chosen = sorted(map(Path, fonts)) if fonts is not None else matplotlib_fonts()
    chosen = [f for i, f in enumerate(chosen) if (i % 3 == 2) == (split == "test")]
    if not chosen:
        raise DataError("fonts: three fonts or more are wanted, every third one tests")
    clean = np.concatenate([render_characters(f) for f in chosen])
    labels = np.tile(np.arange(len(CHARACTERS)), len(chosen))
    seed = 1 if split == "test" else 0
    parts = [part for _, _, part in elastic_deformations(clean, copies, random_state=seed)]
    images = np.concatenate([clean, *parts])
    return ImageSet(images, np.tile(labels, copies + 1), tuple(CHARACTERS), "fonts")
