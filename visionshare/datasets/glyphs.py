"""The data set of characters rendered from fonts: small, slanted, blurred, noisy, cropped.

The characters of one font are drawn on a sheet, as on a page. The sheet is blurred and gets noise;
its ink is told from paper, and each character's ink is brought to a raster, by the functions that
do so for pages that are read and for pictures that are classified.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from visionshare.datasets.characters import without_specks
from visionshare.datasets.checks import check_number
from visionshare.datasets.fonts import (
    CAPITALS,
    CHARACTER_SETS,
    Font,
    check_characters,
    draw_character,
    drawn_by,
    find_fonts,
    matches,
    matplotlib_fonts,
    named_characters,
    system_font_folders,
    usable_fonts,
)
from visionshare.datasets.imageset import ImageSet
from visionshare.datasets.ink import find_ink
from visionshare.datasets.preprocessing import PRINTED, PRINTED_SIZE
from visionshare.errors import DataError, InputError

#: The class of all characters that are none of the others.
OTHER = "other"
# As many of them are on each sheet at most.
_OTHERS = 6


@dataclass(frozen=True)
class Fonts:
    """Which characters are rendered, from which fonts, and how much they differ.

    Attributes
    ----------
    characters : str
        The classes: characters, or the name of a set such as ``letters``. A font must have all
        its digits and letters; symbols are drawn by the fonts that have them.
    others : str
        Characters of one more class, ``other``: what a reader shall not take for its classes.
    segments : tuple of str
        Families, as patterns, that draw their digits alone, such as ``"dseg7*"``.
    folders : tuple of str
        Folders with fonts, searched to the bottom; matplotlib's fonts are always there.
    system : bool
        Search the folders where this machine has its fonts, too.
    tests : tuple of str
        Families that test, as patterns such as ``"noto sans*"``; every fourth when empty.
    left_out : tuple of str
        Families that neither train nor test.
    per_class, per_class_test : int
        Images per class of the training and of the test set.
    points : tuple of float
        Smallest and largest size.
    dpi : int
    rotation, shear, scale, elastic : float
        Largest angle in degrees, largest shear, largest relative change of width and of height,
        and the size of elastic displacements in hundredths of the font size.
    camera : bool
        Uneven light, more blur and noise, and JPEG, as in the frames of a cheap camera.
    seed : int

    Examples
    --------
    >>> len(Fonts(characters="letters").classes)
    62
    """

    characters: str = CAPITALS
    others: str = ""
    segments: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    system: bool = False
    tests: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    per_class: int = 300
    per_class_test: int = 50
    points: tuple[float, float] = (10.0, 26.0)
    dpi: int = 200
    rotation: float = 3.0
    shear: float = 0.08
    scale: float = 0.08
    elastic: float = 1.0
    camera: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        check_characters("characters", self.characters)
        for name in ("per_class", "per_class_test", "dpi"):
            check_number(name, getattr(self, name), 1, whole=True)
        check_number("seed", self.seed, 0, whole=True)
        check_number("rotation", self.rotation, 0, 45)
        for name in ("shear", "scale", "elastic"):
            check_number(name, getattr(self, name), 0, 5)
        sizes = [points * self.dpi / 72 for points in self.points]
        if len(sizes) != 2 or not 4 <= sizes[0] <= sizes[1] <= 400:
            raise InputError("points", self.points, "two sizes, ascending, of 4 to 400 pixels")

    @property
    def classes(self) -> tuple[str, ...]:
        """The classes, in order."""
        return (*named_characters(self.characters), *([OTHER] if self.others else []))

    @property
    def required(self) -> str:
        """The characters that a font must have: digits and letters."""
        characters = named_characters(self.characters)
        return "".join(c for c in characters if c.isalnum()) or characters


def split_fonts(
    settings: Fonts, data_dir: str | os.PathLike[str] | None = None
) -> tuple[list[Font], list[Font]]:
    """Return the fonts that train and those that test; they share no family."""
    paths = matplotlib_fonts()
    given = settings.folders if data_dir is None else (*settings.folders, str(data_dir))
    for folder in given:
        files = find_fonts(folder)
        if not files:
            raise DataError(f"{folder}: no fonts (.ttf, .otf) there")
        paths += files
    for system_folder in system_font_folders() if settings.system else []:
        paths += find_fonts(system_folder)
    paths = list(dict.fromkeys(paths))
    fonts = usable_fonts(paths, settings.required)
    fonts = [font for font in fonts if not matches(font.family, settings.segments)]
    if settings.segments:
        digits = usable_fonts(paths, CHARACTER_SETS["digits"])
        fonts += [font for font in digits if matches(font.family, settings.segments)]
    fonts = [font for font in fonts if not matches(font.family, settings.left_out)]
    families = sorted({font.family for font in fonts})
    tests = set(families[3::4])
    if settings.tests:
        tests = {family for family in families if matches(family, settings.tests)}
    training = [font for font in fonts if font.family not in tests]
    testing = [font for font in fonts if font.family in tests]
    if not training or not testing:
        part = "test" if training else "train"
        raise DataError(f"fonts: no family left to {part}, of: {', '.join(families[:20])}")
    return training, testing


def load_fonts(
    split: str, settings: Fonts | None = None, data_dir: str | os.PathLike[str] | None = None
) -> ImageSet:
    """Return characters of the fonts that train, or of those that test."""
    # Each family has the same fraction of the images, however many styles it has.
    settings = settings or Fonts()
    is_test = split == "test"
    fonts = split_fonts(settings, data_dir)[is_test]
    families = sorted({font.family for font in fonts})
    n = settings.per_class_test if is_test else settings.per_class
    sheets = []
    labels: list[int] = []
    for i in range(n):
        rng = np.random.default_rng([settings.seed, is_test, i])
        styles = [font for font in fonts if font.family == families[i % len(families)]]
        font = styles[int(rng.integers(len(styles)))]
        drawn, classes = _drawn_classes(font, settings, rng)
        sheets.append(render_sheet(font, drawn, settings, rng))
        labels += classes
    return ImageSet(np.concatenate(sheets), np.array(labels), settings.classes, "fonts")


def _drawn_classes(font: Font, settings: Fonts, rng: np.random.Generator) -> tuple[str, list[int]]:
    """Return the characters of a font's sheet, and the class of each."""
    characters = named_characters(settings.characters)
    if matches(font.family, settings.segments):
        # These families are few: each digit is drawn three times.
        drawn = 3 * "".join(c for c in characters if c in CHARACTER_SETS["digits"])
        return drawn, [characters.index(c) for c in drawn]
    drawn = drawn_by(font.path, characters)
    others = list(drawn_by(font.path, settings.others))
    if others:
        others = rng.permutation(others)[:_OTHERS].tolist()
    classes = [characters.index(c) for c in drawn] + [len(characters)] * len(others)
    return drawn + "".join(others), classes


def render_sheet(
    font: Font, characters: Sequence[str], settings: Fonts, rng: np.random.Generator
) -> np.ndarray:
    """Return a raster of each character of a font, as a reader of pages makes them."""
    from PIL import ImageFont

    # 1) the characters on a grid of cells
    pixels = rng.uniform(*settings.points) * settings.dpi / 72
    face = ImageFont.truetype(str(font.path), max(4, round(pixels)))
    clean = [draw_character(face, character) for character in characters]
    if matches(font.family, settings.segments):
        # Half of all displays draw a seven with three segments only.
        rare = rng.random(len(clean)) < 0.5
        sevens = [c == "7" and bool(r) for c, r in zip(characters, rare, strict=True)]
        clean = [_without_left(c) if s else c for c, s in zip(clean, sevens, strict=True)]
    drawn = [_bent(one, settings, rng) for one in clean]
    height, width = (max(one.shape[axis] for one in drawn) + 4 for axis in (0, 1))
    across = int(np.ceil(np.sqrt(len(drawn))))
    down = -(-len(drawn) // across)
    sheet = np.full((down * height, across * width), 255, np.uint8)
    cells = []
    for i, one in enumerate(drawn):
        y = i // across * height
        x = i % across * width
        sheet[y + 2 : y + 2 + one.shape[0], x + 2 : x + 2 + one.shape[1]] = one
        cells.append((slice(y, y + height), slice(x, x + width)))
    # 2) as they are scanned
    sheet = _elastic(sheet, settings.elastic * pixels / 100, pixels / 8, rng)
    scanned = _scanned(sheet, rng)
    if settings.camera:
        scanned = _photographed(scanned, pixels, rng)
    ink = find_ink(scanned)
    # 3) the ink of each cell
    rasters = []
    for cell in cells:
        mask = _cropped(without_specks(ink.mask[cell]), rng)
        rasters.append(PRINTED.apply_to_ink(ink.darkness[cell], mask, PRINTED_SIZE))
    return np.stack(rasters)


def _without_left(cell: np.ndarray) -> np.ndarray:
    """Return a seven of segments without the upright one at its left."""
    import cv2

    _, labels, stats, _ = cv2.connectedComponentsWithStats((cell < 128).astype(np.uint8))
    middle = cell.shape[1] / 2
    left, width, height = (stats[:, i] for i in (cv2.CC_STAT_LEFT, cv2.CC_STAT_WIDTH, 3))
    is_left = (left + width < middle) & (height > width)
    is_left[0] = False
    grown = cv2.dilate(is_left[labels].astype(np.uint8), np.ones((3, 3), np.uint8))
    return np.where(grown > 0, 255, cell).astype(np.uint8)


def _bent(cell: np.ndarray, settings: Fonts, rng: np.random.Generator) -> np.ndarray:
    """Return a character turned, sheared and stretched a little."""
    import cv2

    angle = np.deg2rad(rng.normal(0, settings.rotation / 2))
    shear = rng.uniform(-settings.shear, settings.shear)
    sx, sy = 1 + rng.uniform(-settings.scale, settings.scale, 2)
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    linear = turn @ np.array([[sx, shear], [0.0, sy]])
    height, width = cell.shape
    sides = np.abs(linear) @ np.array([width, height]) + 2
    middle = np.array([(width - 1) / 2, (height - 1) / 2])
    shift = (sides - 1) / 2 - linear @ middle + rng.uniform(-0.5, 0.5, 2)
    size = np.ceil(sides).astype(int).tolist()
    return cv2.warpAffine(
        cell, np.column_stack([linear, shift]), size,
        flags=cv2.INTER_LINEAR, borderMode=cv2.BORDER_CONSTANT, borderValue=255,
    )  # fmt: skip


def _elastic(sheet: np.ndarray, alpha: float, sigma: float, rng: np.random.Generator) -> np.ndarray:
    """Return a sheet whose pixels are displaced by about ``alpha`` pixels, smoothly."""
    import cv2

    if alpha <= 0:
        return sheet
    height, width = sheet.shape
    field = rng.standard_normal((height // 4 + 1, width // 4 + 1, 2)).astype(np.float32)
    field = cv2.GaussianBlur(field, (0, 0), max(sigma / 4, 0.5))
    field *= alpha / max(float(field.std()), 1e-6)
    field = cv2.resize(field, (width, height), interpolation=cv2.INTER_LINEAR)
    xs, ys = np.meshgrid(np.arange(width, dtype=np.float32), np.arange(height, dtype=np.float32))
    return cv2.remap(
        sheet, xs + field[..., 0], ys + field[..., 1], cv2.INTER_LINEAR,
        borderMode=cv2.BORDER_CONSTANT, borderValue=255,
    )  # fmt: skip


def _scanned(sheet: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return a sheet as a scanner gives it: strokes thicker or thinner, blur, contrast, noise."""
    import cv2

    values = sheet.astype(np.float32)
    if rng.random() < 0.6:
        values = cv2.GaussianBlur(values, (0, 0), rng.uniform(0.3, 1.1))
    if rng.random() < 0.5:
        # A steeper edge elsewhere: what printing and thresholds do to the width of strokes.
        gain = rng.uniform(1.5, 3.0)
        values = np.clip((values - 127.5 - rng.uniform(-45, 45)) * gain + 127.5, 0, 255)
    low = rng.uniform(0, 90)
    high = rng.uniform(190, 255)
    values = low + values * ((high - low) / 255)
    values += rng.normal(0, rng.uniform(0, 10) * (rng.random() < 0.6), sheet.shape)
    if rng.random() < 0.3:
        values = 255 - values
    return np.clip(np.round(values), 0, 255).astype(np.uint8)


def _photographed(sheet: np.ndarray, pixels: float, rng: np.random.Generator) -> np.ndarray:
    """Return a sheet as a cheap camera gives it: blurred, unevenly lit, noisy, in JPEG."""
    import cv2

    values = sheet.astype(np.float32)
    if rng.random() < 0.4:
        values = cv2.GaussianBlur(values, (0, 0), rng.uniform(0.01, 0.07) * pixels)
    if rng.random() < 0.4:
        rows, cols = (np.linspace(-1, 1, side, dtype=np.float32) for side in sheet.shape)
        slope = np.array([rng.uniform(-1, 1), rng.uniform(-1, 1)], np.float32)
        light = slope[0] * rows[:, None] + slope[1] * cols
        light = (light - light.min()) / max(float(np.ptp(light)), 1e-6)
        values *= 1 - rng.uniform(0.2, 0.7) * light
    if rng.random() < 0.3:
        values += rng.normal(0, rng.uniform(5, 22), sheet.shape)
    photo = np.clip(np.round(values), 0, 255).astype(np.uint8)
    if rng.random() < 0.5:
        quality = [cv2.IMWRITE_JPEG_QUALITY, int(rng.integers(20, 90))]
        coded = cv2.imencode(".jpg", photo, quality)[1]
        photo = np.asarray(cv2.imdecode(coded, cv2.IMREAD_GRAYSCALE))
    return photo


def _cropped(mask: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return a mask that lost, now and then, a little of a side, as where letters touch."""
    cols: Any = np.flatnonzero(mask.any(axis=0))
    if len(cols) < 8 or rng.random() >= 0.15:
        return mask
    cut = max(1, round(len(cols) * rng.uniform(0.02, 0.08)))
    kept = mask.copy()
    if rng.random() < 0.5:
        kept[:, : cols[0] + cut] = False
    else:
        kept[:, cols[-1] + 1 - cut :] = False
    return kept
