"""Fonts: where they are, which family each is of, and which draw a set of characters."""

from __future__ import annotations

import fnmatch
import functools
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from visionshare.datasets.characters import normalize_character
from visionshare.errors import DataError, InputError
from visionshare.errors.names import near_names

_DIGITS = "0123456789"
_LATIN = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
CAPITALS = _DIGITS + _LATIN
LETTERS = CAPITALS + _LATIN.lower()
#: Sets of characters by name.
CHARACTER_SETS = {
    "digits": _DIGITS,
    "capitals": _LATIN,
    "serial": CAPITALS + "-/.",
    "date": _DIGITS + "-/.:",
    "amount": _DIGITS + "-+.,%€$",
    "hex": _DIGITS + "ABCDEF",
    "letters": LETTERS,
}
# What a name says of weight, width and size; the design is the same.
_STYLES = {
    "thin", "hairline", "extralight", "light", "regular", "book", "medium", "semibold", "demi",
    "bold", "extrabold", "black", "heavy", "italic", "oblique", "condensed", "cond", "narrow",
    "cn", "display",
}  # fmt: skip
# Least correlation of a font with the median family; see docs/decisions/page-segmentation.md.
_MIN_CORRELATION = 0.38


@dataclass(frozen=True)
class Font:
    """A font file and the family it is of."""

    path: Path
    family: str


def named_characters(text: str) -> str:
    """Return the characters of a named set such as ``digits``, or the text's own, each once."""
    return CHARACTER_SETS.get(text) or "".join(dict.fromkeys(text))


def check_characters(argument: str, text: str) -> str:
    """Return the characters of a named set or a text; an error calls it ``argument``."""
    characters = named_characters(text) if isinstance(text, str) else ""
    if not characters or not characters.isprintable() or " " in characters:
        sets = ", ".join(CHARACTER_SETS)
        accepted = f"characters without blanks, such as '0123456789.', or a set: {sets}"
        raise InputError(argument, text, accepted)
    # A misspelled name would pass for a set of letters.
    near = near_names(text, CHARACTER_SETS)
    if near and text not in CHARACTER_SETS and len(text) > 2:
        raise InputError(argument, text, f"a set such as {near[0]!r}, or each character once")
    return characters


def matplotlib_fonts() -> list[Path]:
    """Return the fonts that come with matplotlib."""
    import matplotlib

    return sorted((Path(matplotlib.get_data_path()) / "fonts" / "ttf").glob("*.ttf"))


def system_font_folders() -> list[Path]:
    """Return the folders with fonts that this machine has, of those that are usual."""
    windows = os.environ.get("WINDIR", "/nonexistent")
    usual = (
        "/usr/share/fonts", "/usr/local/share/fonts", "/usr/share/texmf/fonts", "~/.fonts",
        "~/.local/share/fonts", "~/Library/Fonts", "/System/Library/Fonts", "/Library/Fonts",
        f"{windows}/Fonts",
    )  # fmt: skip
    return [folder for name in usual if (folder := Path(name).expanduser()).is_dir()]


def find_fonts(folder: str | os.PathLike[str]) -> list[Path]:
    """Return the TrueType and OpenType files below a folder, sorted by path."""
    return sorted(
        p for p in Path(folder).rglob("*") if p.suffix.lower() in (".ttf", ".otf") and p.is_file()
    )


def font_family(name: str) -> str:
    """Return the family in a font's name, without weight and width, in lower case."""
    words = name.lower().split()
    return " ".join([w for w in words if w not in _STYLES] or words)


def matches(family: str, patterns: Iterable[str]) -> bool:
    """Return whether a family fits one of these patterns, such as ``noto sans*``."""
    return any(fnmatch.fnmatchcase(family, font_family(pattern)) for pattern in patterns)


def usable_fonts(paths: Sequence[str | os.PathLike[str]], characters: str) -> list[Font]:
    """Return the fonts that have all these characters in usual shapes."""
    # Excluded are files that are not fonts; fonts that lack one of the characters, or draw two of
    # them alike (a placeholder); copies of another font; and fonts whose characters correlate
    # little with those of the median family, such as symbols in place of letters, or ornamented
    # initials.
    drawn: dict[bytes, tuple[Font, np.ndarray]] = {}
    for path in paths:
        found = _pictures(str(path), characters)
        if found is not None:
            family, pictures = found
            drawn.setdefault(pictures.tobytes(), (Font(Path(path), family), pictures))
    if not drawn:
        return []
    fonts = [font for font, _ in drawn.values()]
    pictures = np.stack([pictures for _, pictures in drawn.values()])
    correlations = _correlations(pictures, np.array([font.family for font in fonts]))
    return [fonts[i] for i in np.flatnonzero(correlations >= _MIN_CORRELATION)]


def _correlations(pictures: np.ndarray, families: np.ndarray) -> np.ndarray:
    """Return the mean correlation (n,) of each font's characters with the median family's."""
    # The mean is that of the worse half of the characters: a symbol font may have usual digits.
    flat = pictures.reshape(*pictures.shape[:2], -1).astype(np.float32)
    means = [flat[families == family].mean(axis=0) for family in sorted(set(families))]
    usual = np.median(means, axis=0)
    usual = usual - usual.mean(axis=-1, keepdims=True)
    flat = flat - flat.mean(axis=-1, keepdims=True)
    norms = np.linalg.norm(usual, axis=-1) * np.linalg.norm(flat, axis=-1)
    correlation = np.sort(np.sum(flat * usual, axis=-1) / np.maximum(norms, 1e-6), axis=1)
    n_worse = (correlation.shape[1] + 1) // 2
    return correlation[:, :n_worse].mean(axis=1)


@functools.lru_cache(maxsize=4096)
def drawn_by(path: Path, characters: str) -> str:
    """Return which of these characters a font file has, and draws with ink."""
    from fontTools.ttLib import TTFont
    from PIL import ImageFont

    with TTFont(path, lazy=True) as table:
        known = table.getBestCmap() or {}
    face = ImageFont.truetype(str(path), 20)
    return "".join(c for c in characters if ord(c) in known and face.getmask(c).getbbox())


@functools.lru_cache(maxsize=4096)
def _pictures(path: str, characters: str) -> tuple[str, np.ndarray] | None:
    """Return a font's family and its normalized characters; None if one is missing."""
    from fontTools.ttLib import TTLibError
    from PIL import ImageFont

    try:
        if drawn_by(Path(path), characters) != characters:
            return None
        face = ImageFont.truetype(path, 40)
        name = face.getname()[0] or Path(path).stem
        drawn = [255 - draw_character(face, c) for c in characters]
        pictures = np.stack([normalize_character(one, one > 127) for one in drawn])
    except (OSError, TTLibError, ValueError, KeyError, AssertionError, IndexError):
        return None
    distinct = {picture.tobytes() for picture in pictures}
    if len(distinct) < len(characters) or not pictures.any(axis=(1, 2)).all():
        return None
    return font_family(name), pictures


def draw_character(face: Any, character: str, margin: int = 4) -> np.ndarray:
    """Return a character of a PIL font, black on white, uint8."""
    from PIL import Image, ImageDraw

    left, top, right, bottom = (int(v) for v in face.getbbox(character))
    if right <= left or bottom <= top or max(right - left, bottom - top) > 4096:
        raise DataError(f"{character!r}: the font draws nothing, or too much")
    size = right - left + 2 * margin, bottom - top + 2 * margin
    drawn = Image.new("L", size, 255)
    ImageDraw.Draw(drawn).text((margin - left, margin - top), character, fill=0, font=face)
    return np.asarray(drawn)
