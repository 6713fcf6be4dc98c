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
from visionshare.datasets.checks import check_choice, check_number
from visionshare.datasets.fonts import (
    CAPITALS,
    LETTERS,
    Font,
    draw_character,
    find_fonts,
    matches,
    matplotlib_fonts,
    system_font_folders,
    usable_fonts,
)
from visionshare.datasets.imageset import ImageSet
from visionshare.datasets.ink import find_ink
from visionshare.datasets.preprocessing import PRINTED, PRINTED_SIZE
from visionshare.errors import DataError, InputError

_CHARACTERS = {36: CAPITALS, 62: LETTERS}


@dataclass(frozen=True)
class Fonts:
    """Which characters are rendered, from which fonts, and how much they differ.

    Attributes
    ----------
    classes : {36, 62}
        Digits and capitals, or small letters too.
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
    seed : int

    Raises
    ------
    InputError
        If a value is not accepted.

    Examples
    --------
    >>> len(Fonts(classes=62).characters)
    62
    """

    classes: int = 36
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
    seed: int = 0

    def __post_init__(self) -> None:
        check_choice("classes", self.classes, _CHARACTERS)
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
    def characters(self) -> str:
        """The classes, in order."""
        return _CHARACTERS[self.classes]


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
    fonts = usable_fonts(tuple(dict.fromkeys(paths)), settings.characters)
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
    characters = settings.characters
    n = settings.per_class_test if is_test else settings.per_class
    images = np.empty((n, len(characters), *PRINTED_SIZE), np.uint8)
    for i in range(n):
        rng = np.random.default_rng([settings.seed, is_test, i])
        styles = [font for font in fonts if font.family == families[i % len(families)]]
        font = styles[int(rng.integers(len(styles)))]
        images[i] = render_sheet(font, characters, settings, rng)
    labels = np.tile(np.arange(len(characters)), n)
    return ImageSet(images.reshape(-1, *PRINTED_SIZE), labels, tuple(characters), "fonts")


def render_sheet(
    font: Font, characters: Sequence[str], settings: Fonts, rng: np.random.Generator
) -> np.ndarray:
    """Return a raster of each character of a font, as a reader of pages makes them."""
    from PIL import ImageFont

    # 1) the characters on a grid of cells
    pixels = rng.uniform(*settings.points) * settings.dpi / 72
    face = ImageFont.truetype(str(font.path), max(4, round(pixels)))
    drawn = [_bent(draw_character(face, character), settings, rng) for character in characters]
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
    ink = find_ink(_scanned(sheet, rng))
    # 3) the ink of each cell
    rasters = []
    for cell in cells:
        mask = _cropped(without_specks(ink.mask[cell]), rng)
        rasters.append(PRINTED.apply_to_ink(ink.darkness[cell], mask, PRINTED_SIZE))
    return np.stack(rasters)


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
    bent: np.ndarray = cv2.warpAffine(
        cell, np.column_stack([linear, shift]), size,
        flags=cv2.INTER_LINEAR, borderMode=cv2.BORDER_CONSTANT, borderValue=255,
    )  # fmt: skip
    return bent


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
