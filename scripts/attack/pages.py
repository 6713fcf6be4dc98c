"""Pages with faults: damaged files, and pictures with rubbish drawn over them."""

from __future__ import annotations

import io
from functools import cache
from typing import Any

import numpy as np

from scripts.attack.damage import Inputs
from scripts.attack.images import mutated_image

_CLASSES = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"


@cache
def page_seeds() -> list[bytes]:
    """Return pages of text in several formats."""
    from PIL import Image

    from scripts.reproduce.rendering import render_page
    from visionshare.datasets.fonts import matplotlib_fonts

    gray = render_page(["READ 1984", "THE 42 WORDS", "A"], matplotlib_fonts()[0], 10, 150)
    pages = []
    for image, kind in (
        (Image.fromarray(gray), "png"),
        (Image.fromarray(255 - gray).convert("RGB"), "jpeg"),
        (Image.fromarray(gray).rotate(3, fillcolor=255), "tiff"),
    ):
        file = io.BytesIO()
        image.save(file, kind)
        pages.append(file.getvalue())
    return pages


def mutated_page(seeds: list[bytes], rng: np.random.Generator) -> bytes:
    """Return a damaged file, or a valid one of a damaged picture."""
    if rng.random() < 0.3:
        return mutated_image(seeds, rng)
    from PIL import Image

    with Image.open(io.BytesIO(seeds[rng.integers(0, len(seeds))])) as image:
        gray = np.array(image.convert("L"))
    for _ in range(rng.integers(1, 6)):
        _spoil(gray, rng)
    if rng.random() < 0.3:
        sides = rng.integers(1, 60, 2)
        gray = np.resize(gray, sides)
    file = io.BytesIO()
    Image.fromarray(gray).save(file, "png")
    return file.getvalue()


def _spoil(gray: np.ndarray, rng: np.random.Generator) -> None:
    """Draw rules, blots, noise, gradients or copies into a picture."""
    height, width = gray.shape
    y = int(rng.integers(0, height))
    x = int(rng.integers(0, width))
    bottom = y + int(rng.integers(1, height + 1))
    right = x + int(rng.integers(1, width + 1))
    part = gray[y:bottom, x:right]
    fault = rng.integers(0, 6)
    if fault == 0:
        part[:] = rng.integers(0, 256)
    elif fault == 1:
        part[:] = rng.integers(0, 256, part.shape)
    elif fault == 2:
        part[:] = 255 - part
    elif fault == 3:
        part[:: int(rng.integers(1, 4)), :: int(rng.integers(1, 4))] = 0
    elif fault == 4:
        gray[y : y + int(rng.integers(1, 5))] = 0
    else:
        gray[:] = np.roll(gray, (y, x), (0, 1)) // 2 + np.linspace(0, 127, width).astype(np.uint8)


@cache
def _reader() -> Any:
    from visionshare import CompactClassifier, PatchTemplates

    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (30, 28, 28), np.uint8)
    family = PatchTemplates(7, 8, 2, (6.5,), n_patches=500).fit(images).take(np.arange(16))
    weights = rng.normal(size=(len(_CLASSES), 16))
    return CompactClassifier(family, weights, np.zeros(len(_CLASSES)), np.array(list(_CLASSES)))


def use_page(content: bytes, rng: np.random.Generator) -> None:
    """Read a page, and write what was read."""
    from visionshare.datasets.folders import read_image
    from visionshare.reading import read_page
    from visionshare.reading.writers import as_hocr, as_json

    gray = read_image(io.BytesIO(content), background=255, max_pixels=1 << 22)
    page = read_page(_reader(), gray, bool(rng.integers(0, 2)), bool(rng.integers(0, 2)), 1)
    as_json(page, "page")
    as_hocr(page, "page")


PAGES = Inputs(page_seeds, mutated_page, use_page)
