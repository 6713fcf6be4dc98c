"""Sample pictures: digits, signs in color, textures, a page and a meter.

Nothing is downloaded and no picture is stored in the package: digits are scikit-learn's, textures
scikit-image's (both come with these packages); the rest is drawn.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import cv2
import numpy as np
from PIL import Image, ImageDraw, ImageFont

from visionshare.datasets.catalog_sets import bundled_textures, load_digits
from visionshare.datasets.checks import check_choice, check_number
from visionshare.datasets.fonts import matplotlib_fonts
from visionshare.datasets.textures import cut_patches
from visionshare.files.durable import new_folder

_DIGITS = 100
_SIGNS = 60
_PATCHES = 60
_SIDE = 32
# The sides of a picture of a sign before it is reduced: edges get gray levels.
_FINE = 4 * _SIDE
_LINES = (
    "THE QUICK BROWN FOX JUMPS OVER 13", "LAZY DOGS WHILE 25 ZEBRAS GAZE AT",
    "MY VEXED PIKE 4 HOURS",
)  # fmt: skip

# Three wheels and two pointers; what `visionshare meter` needs to know of `meter_frame`.
METER = """\
size = [320, 260]
digits = [[60, 40, 40, 60], [110, 40, 40, 60], [160, 40, 40, 60]]
decimals = 2
reference = "reference.png"
marks = [[240, 40, 40, 40], [250, 190, 40, 40]]
pointers = [{center = [90, 180], radius = 40}, {center = [200, 180], radius = 40}]
"""

Pictures = Iterator[tuple[str, np.ndarray]]


def _circle(radius: float, n: int = 64, turn: float = 0.0) -> np.ndarray:
    """Return the corners (n, 2) of a regular polygon, around 0."""
    angles = turn + 2 * np.pi * np.arange(n) / n
    return radius * np.stack([np.cos(angles), np.sin(angles)], axis=1)


def _bar(width: float, height: float) -> np.ndarray:
    return np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]]) * (width / 2, height / 2)


_RED = (190, 30, 40)
_BLUE = (30, 80, 180)
_WHITE = (240, 240, 240)
_YELLOW = (240, 190, 30)
_BLACK = (30, 30, 30)
_UP = np.pi / 2
# Each sign: its parts from the lowest to the highest, corners and color.
_DRAWN: dict[str, tuple[tuple[np.ndarray, tuple[int, int, int]], ...]] = {
    "stop": ((_circle(0.95, 8, np.pi / 8), _RED), (_bar(1.2, 0.4), _WHITE)),
    "no-entry": ((_circle(0.9), _RED), (_bar(1.2, 0.35), _WHITE)),
    "yield": ((_circle(1.0, 3, _UP), _RED), (_circle(0.55, 3, _UP), _WHITE)),
    "one-way": ((_circle(0.9), _BLUE), (_bar(0.3, 1.2), _WHITE)),
    "parking": ((_bar(1.6, 1.6), _BLUE), (_bar(0.3, 1.2), _WHITE)),
    "priority": (
        (_circle(1.0, 4), _WHITE), (_circle(0.8, 4), _YELLOW), (_circle(0.15, 4), _BLACK),
    ),
}  # fmt: skip


def sign_picture(name: str, rng: np.random.Generator) -> np.ndarray:
    """Return a noisy picture of a sign, a little turned, on any ground, in any light."""
    check_choice("name", name, _DRAWN)
    ground = cv2.resize(rng.uniform(30, 225, (9, 9, 3)), (_FINE, _FINE))
    angle = rng.uniform(-0.25, 0.25)
    scale = rng.uniform(0.3, 0.42) * _FINE
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    center = _FINE / 2 + rng.uniform(-0.08, 0.08, 2) * _FINE
    for corners, color in _DRAWN[name]:
        placed = np.rint(corners @ turn.T * scale + center).astype(np.int32)
        cv2.fillPoly(ground, [placed], color)
    light = rng.uniform(0.5, 1.1) * rng.uniform(0.9, 1.1, 3)
    picture = cv2.resize(ground, (_SIDE, _SIDE), interpolation=cv2.INTER_AREA) * light
    return _noisy(picture, 8, rng)


def _noisy(picture: np.ndarray, deviation: float, rng: np.random.Generator) -> np.ndarray:
    noise = rng.normal(0, deviation, picture.shape)
    return np.clip(np.rint(picture + noise), 0, 255).astype(np.uint8)


def _digits(rng: np.random.Generator) -> Pictures:
    digits = load_digits("train")
    for label, name in enumerate(digits.classes):
        for i, image in enumerate(digits.images[digits.labels == label][:_DIGITS]):
            yield f"digits/{name}/{i:03}.png", image


def _scans(rng: np.random.Generator) -> Pictures:
    """Dark digits on light paper, as a camera sees them; none of them trains anything."""
    digits = load_digits("test")
    for label, name in enumerate(digits.classes):
        image = digits.images[digits.labels == label][0]
        large = cv2.resize(image, (80, 80), interpolation=cv2.INTER_CUBIC).astype(np.float64)
        paper = 225 - 0.75 * np.pad(large, rng.integers(8, 24, (2, 2)))
        yield f"scans/{name}.png", _noisy(paper, 3, rng)


def _signs(rng: np.random.Generator) -> Pictures:
    for name in _DRAWN:
        for i in range(_SIGNS):
            yield f"signs/{name}/{i:03}.png", sign_picture(name, rng)


def _textures(rng: np.random.Generator) -> Pictures:
    """Pieces of the left halves of textures, and a picture of their right halves side by side."""
    bands = []
    for name, plate in bundled_textures().items():
        middle = plate.shape[1] // 2
        for i, piece in enumerate(cut_patches(plate[:, :middle], _PATCHES, _SIDE, rng)):
            yield f"textures/{name}/{i:03}.png", piece
        bands.append(plate[:192, middle : middle + 96])
    yield "mosaic.png", np.concatenate(bands, axis=1)


def _font(size: int) -> Any:
    path = next(path for path in matplotlib_fonts() if path.name == "DejaVuSans.ttf")
    return ImageFont.truetype(str(path), size)


def _page(rng: np.random.Generator) -> Pictures:
    """Lines of capitals and digits, as a scan of 200 dpi, and two fields."""
    font = _font(40)
    for name, lines in {"page": _LINES, "serial": ("AB-1204",), "amount": ("1,305.80 €",)}.items():
        width = 1000 if name == "page" else 360
        page = Image.new("L", (width, 88 + 84 * len(lines)), 235)
        for i, line in enumerate(lines):
            ImageDraw.Draw(page).text((70, 60 + 84 * i), line, fill=40, font=font)
        yield f"{name}.png", _noisy(np.asarray(page), 6, rng)


def meter_frame(value: float) -> np.ndarray:
    """Return the frame of a meter of three wheels and two pointers, (260, 320, 3) bytes."""
    frame = np.full((260, 320, 3), 205, np.uint8)
    face, pitch, red = _font(46), 46, (200, 60, 60)
    # The last wheel rolls; those before stand until it carries.
    for left, turn in ((60, value // 100), (110, value // 10), (160, value)):
        strip = Image.new("L", (40, 60), 30)
        for step in (-1, 0, 1, 2):
            at = int(turn) + step
            place = 20, 30 + (at - turn) * pitch
            ImageDraw.Draw(strip).text(place, str(at % 10), fill=230, font=face, anchor="mm")
        frame[40:100, left : left + 40] = np.asarray(strip)[..., None]
    for decimal, x in ((10, 90), (100, 200)):
        angle = np.deg2rad(36 * (value * decimal % 10))
        tip = round(x + 38 * np.sin(angle)), round(180 - 38 * np.cos(angle))
        cv2.line(frame, (x, 180), tip, red, 6)
        cv2.circle(frame, (x, 180), 14, red, -1)
    for mark in ((260, 60), (270, 210)):
        cv2.circle(frame, mark, 16, (255, 255, 255), -1)
        cv2.circle(frame, mark, 7, (20, 20, 20), -1)
    return frame


def _meter(rng: np.random.Generator) -> Pictures:
    yield "meter/reference.png", meter_frame(0.0)
    yield "meter/frame.png", _noisy(meter_frame(123.043), 3, rng)


# What is written, and what each is of.
SAMPLES: dict[str, tuple[Callable[[np.random.Generator], Pictures], str]] = {
    "digits": (_digits, "10 folders of 100 handwritten digits, 8x8 pixels, gray"),
    "scans": (_scans, "10 other digits, dark on light paper, larger"),
    "signs": (_signs, "6 folders of 60 traffic signs, 32x32 pixels, color"),
    "textures": (_textures, "3 folders of 60 pieces of textures, and mosaic.png of all three"),
    "page.png": (_page, "a page of capitals and digits; serial.png and amount.png are fields"),
    "meter": (_meter, "frame.png of a meter that reads 123.04, and its meter.toml"),
}


def write_samples(folder: str | os.PathLike[str], random_state: int = 0) -> dict[str, str]:
    """Write sample pictures into a new folder; it appears whole or not at all."""
    check_number("random_state", random_state, 0, whole=True)
    with new_folder(folder) as partial:
        for number, (pictures, _) in enumerate(SAMPLES.values()):
            for name, pixels in pictures(np.random.default_rng([random_state, number])):
                path = partial / name
                path.parent.mkdir(parents=True, exist_ok=True)
                Image.fromarray(pixels).save(path)
        (partial / "meter" / "meter.toml").write_text(METER, encoding="utf-8")
    return {name: text for name, (_, text) in SAMPLES.items()}
