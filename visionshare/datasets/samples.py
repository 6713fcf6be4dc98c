"""Sample pictures: digits, signs in color, textures and a page, written where they are wanted.

Nothing is downloaded and no picture is stored in the package: digits are scikit-learn's, textures
scikit-image's (both come with these packages), signs and the page are drawn.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import numpy as np

from visionshare.datasets.catalog_sets import TEXTURES, load_digits
from visionshare.datasets.fonts import matplotlib_fonts
from visionshare.datasets.textures import cut_patches
from visionshare.errors import InputError
from visionshare.files.durable import new_folder

__all__ = ["SAMPLES", "sign_picture", "write_samples"]

_DIGITS, _SIGNS, _PATCHES = 100, 60, 60
_SIDE = 32
# The sides of a picture of a sign before it is reduced: edges get gray levels.
_FINE = 4 * _SIDE
_WORDS = "THE QUICK BROWN FOX JUMPS OVER 13 LAZY DOGS WHILE 25 ZEBRAS GAZE AT MY VEXED PIKE 4 HOURS"

Pictures = Iterator[tuple[str, np.ndarray]]


def _circle(radius: float, n: int = 64, turn: float = 0.0) -> np.ndarray:
    """Return the corners (n, 2) of a regular polygon, around 0."""
    angles = turn + 2 * np.pi * np.arange(n) / n
    return radius * np.stack([np.cos(angles), np.sin(angles)], axis=1)


def _bar(width: float, height: float) -> np.ndarray:
    return np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]]) * (width / 2, height / 2)


_RED, _BLUE, _WHITE = (190, 30, 40), (30, 80, 180), (240, 240, 240)
_YELLOW, _BLACK = (240, 190, 30), (30, 30, 30)
_EIGHTH, _QUARTER = np.pi / 8, np.pi / 2
# Each sign: its parts from the lowest to the highest, corners and color.
_DRAWN: dict[str, tuple[tuple[np.ndarray, tuple[int, int, int]], ...]] = {
    "stop": ((_circle(0.95, 8, _EIGHTH), _RED), (_bar(1.2, 0.4), _WHITE)),
    "no-entry": ((_circle(0.9), _RED), (_bar(1.2, 0.35), _WHITE)),
    "yield": ((_circle(1.0, 3, _QUARTER), _RED), (_circle(0.55, 3, _QUARTER), _WHITE)),
    "one-way": ((_circle(0.9), _BLUE), (_bar(0.3, 1.2), _WHITE)),
    "parking": ((_bar(1.6, 1.6), _BLUE), (_bar(0.3, 1.2), _WHITE)),
    "priority": (
        (_circle(1.0, 4), _WHITE), (_circle(0.8, 4), _YELLOW), (_circle(0.15, 4), _BLACK),
    ),
}  # fmt: skip


def sign_picture(name: str, rng: np.random.Generator) -> np.ndarray:
    """Return a noisy picture of a sign, on a random ground, in a random light."""
    # Slightly turned.
    import cv2

    if name not in _DRAWN:
        raise InputError("name", name, " or ".join(map(repr, _DRAWN)))
    ground = cv2.resize(rng.uniform(30, 225, (9, 9, 3)), (_FINE, _FINE))
    angle, scale = rng.uniform(-0.25, 0.25), rng.uniform(0.3, 0.42) * _FINE
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    center = _FINE / 2 + rng.uniform(-0.08, 0.08, 2) * _FINE
    for corners, color in _DRAWN[name]:
        placed = np.rint(corners @ turn.T * scale + center).astype(np.int32)
        cv2.fillPoly(ground, [placed], color)
    light = rng.uniform(0.5, 1.1) * rng.uniform(0.9, 1.1, 3)
    picture = cv2.resize(ground, (_SIDE, _SIDE), interpolation=cv2.INTER_AREA) * light
    picture += rng.normal(0, 8, picture.shape)
    return np.clip(np.rint(picture), 0, 255).astype(np.uint8)


def _digits(rng: np.random.Generator) -> Pictures:
    digits = load_digits("train")
    for label, name in enumerate(digits.classes):
        images = digits.images[digits.labels == label]
        for i, image in enumerate(images[:_DIGITS]):
            yield f"digits/{name}/{i:03}.png", image


def _scans(rng: np.random.Generator) -> Pictures:
    """Dark digits on light paper, as a camera sees them; none of them trains anything."""
    import cv2

    digits = load_digits("test")
    for label, name in enumerate(digits.classes):
        image = digits.images[digits.labels == label][0]
        large = cv2.resize(image, (80, 80), interpolation=cv2.INTER_CUBIC).astype(np.float64)
        paper = 225 - 0.75 * np.pad(large, rng.integers(8, 24, (2, 2)))
        paper += rng.normal(0, 3, paper.shape)
        yield f"scans/{name}.png", np.clip(np.rint(paper), 0, 255).astype(np.uint8)


def _signs(rng: np.random.Generator) -> Pictures:
    for name in _DRAWN:
        for i in range(_SIGNS):
            yield f"signs/{name}/{i:03}.png", sign_picture(name, rng)


def _textures(rng: np.random.Generator) -> Pictures:
    """Pieces of the left halves of textures, and a picture of their right halves side by side."""
    from skimage import data

    bands = []
    for name in TEXTURES:
        plate = getattr(data, name)()
        middle = plate.shape[1] // 2
        for i, piece in enumerate(cut_patches(plate[:, :middle], _PATCHES, _SIDE, rng)):
            yield f"textures/{name}/{i:03}.png", piece
        bands.append(plate[:192, middle : middle + 96])
    yield "mosaic.png", np.concatenate(bands, axis=1)


def _page(rng: np.random.Generator) -> Pictures:
    """Lines of capitals and digits, as a scan of 200 dpi."""
    from PIL import Image, ImageDraw, ImageFont

    path = next(path for path in matplotlib_fonts() if path.name == "DejaVuSans.ttf")
    font = ImageFont.truetype(str(path), 40)
    page = Image.new("L", (1000, 340), 235)
    draw, words, y = ImageDraw.Draw(page), _WORDS.split(), 60
    while words:
        n = 1
        while n < len(words) and draw.textlength(" ".join(words[: n + 1]), font) < 860:
            n += 1
        draw.text((70, y), " ".join(words[:n]), fill=40, font=font)
        words, y = words[n:], y + 84
    noisy = np.asarray(page) + rng.normal(0, 6, (page.height, page.width))
    yield "page.png", np.clip(np.rint(noisy), 0, 255).astype(np.uint8)


# What is written, and what each is of.
SAMPLES: dict[str, tuple[Callable[[np.random.Generator], Pictures], str]] = {
    "digits": (_digits, "10 folders of 100 handwritten digits, 8x8 pixels, gray"),
    "scans": (_scans, "10 other digits, dark on light paper, larger"),
    "signs": (_signs, "6 folders of 60 traffic signs, 32x32 pixels, color"),
    "textures": (_textures, "3 folders of 60 pieces of textures, and mosaic.png of all three"),
    "page.png": (_page, "a page of capitals and digits"),
}


def write_samples(folder: str | os.PathLike[str], random_state: int = 0) -> dict[str, str]:
    """Write sample pictures into a new folder; it appears whole or not at all."""
    from PIL import Image

    if random_state < 0:
        raise InputError("random_state", random_state, "0 or more")
    with new_folder(folder) as partial:
        for number, (pictures, _) in enumerate(SAMPLES.values()):
            for name, pixels in pictures(np.random.default_rng([random_state, number])):
                path = partial / name
                path.parent.mkdir(parents=True, exist_ok=True)
                Image.fromarray(pixels).save(path)
    return {name: text for name, (_, text) in SAMPLES.items()}
