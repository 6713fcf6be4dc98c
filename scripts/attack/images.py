"""Image files with faults, and pictures that are larger than they look."""

from __future__ import annotations

import io
import zlib
from functools import cache
from typing import Any

import numpy as np

from scripts.attack.damage import Inputs, mutated
from visionshare.datasets.opening import MAX_PIXELS

# A side of more pixels than are read, and of fewer than Pillow warns of.
_HUGE = 8200


@cache
def image_seeds() -> list[bytes]:
    """Return a small picture of every format and mode."""
    from PIL import Image

    rng = np.random.default_rng(0)
    gray = Image.fromarray(rng.integers(0, 256, (13, 17), np.uint8))
    color = Image.fromarray(rng.integers(0, 256, (13, 17, 3), np.uint8))
    deep = Image.fromarray(rng.integers(0, 65536, (13, 17)).astype(np.uint16))
    clear = Image.fromarray(rng.integers(0, 256, (13, 17, 4), np.uint8), "RGBA")
    exif = Image.Exif()
    exif[0x0112] = 6
    pictures = []

    def add(image: Image.Image, kind: str, **options: Any) -> None:
        file = io.BytesIO()
        image.save(file, kind, **options)
        pictures.append(file.getvalue())

    for image in (gray, color, clear, deep, gray.convert("1"), color.convert("P")):
        add(image, "png")
    add(color.convert("P"), "png", transparency=3)
    add(gray, "png", exif=exif)
    add(color, "jpeg", exif=exif)
    add(color, "jpeg", progressive=True)
    for image in (gray, color.convert("CMYK")):
        add(image, "jpeg")
    add(gray, "gif", save_all=True, append_images=[gray.rotate(90)])
    for image in (gray, color, color.convert("P"), gray.convert("1")):
        add(image, "bmp")
    for way in ("raw", "tiff_lzw", "tiff_adobe_deflate", "packbits", "jpeg"):
        add(color, "tiff", compression=way)
    for image in (deep, gray.convert("F"), gray.convert("I"), clear):
        add(image, "tiff")
    # Of 32 bits in memory: Pillow of before writes no others as 16 bits.
    for image in (gray, deep.convert("I"), color, gray.convert("1")):
        add(image, "ppm")
    add(color, "webp")
    add(clear, "webp", lossless=True)
    pictures += [b"P2\n2 2\n255\n1 2 3 4\n", b"P3\n1 1\n255\n1 2 3\n", b"P1\n2 2\n1 0 0 1\n"]
    return pictures


def mutated_image(seeds: list[bytes], rng: np.random.Generator) -> bytes:
    """Return a damaged picture; the checksums of a PNG may be valid again."""
    content = seeds[rng.integers(0, len(seeds))]
    kind = rng.random()
    if kind < 0.05:
        return _bomb(rng)
    if kind < 0.07:
        return huge_picture(("png", "tiff")[rng.integers(0, 2)])
    damaged = mutated(content, rng)
    return _summed(damaged) if damaged[:4] == b"\x89PNG" and rng.random() < 0.7 else damaged


@cache
def huge_picture(kind: str) -> bytes:
    """Return a valid file of few bytes with more pixels than the library reads."""
    from PIL import Image

    file = io.BytesIO()
    options = {"compression": "tiff_adobe_deflate"} if kind == "tiff" else {}
    Image.new("1", (_HUGE, _HUGE)).save(file, kind, **options)
    return file.getvalue()


def _bomb(rng: np.random.Generator) -> bytes:
    """Return a PNG that says it is huge, or that unpacks to much."""
    side = int(rng.choice([1000, 8000, 20_000, 65_536, 2**31 - 1]))
    depth, color = ((1, 0), (8, 2), (16, 6), (8, 3))[rng.integers(0, 4)]
    head = side.to_bytes(4, "big") * 2 + bytes([depth, color, 0, 0, int(rng.integers(0, 2))])
    parts = [(b"IHDR", head)]
    if rng.random() < 0.3:
        parts.append((b"zTXt", b"a\0\0" + zlib.compress(bytes(1 << 23))))
    if rng.random() < 0.3:
        parts.append((b"iCCP", b"a\0\0" + zlib.compress(bytes(1 << 23))))
    parts.append((b"IDAT", zlib.compress(bytes(1 << int(rng.integers(4, 24))))))
    parts.append((b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        len(chunk).to_bytes(4, "big") + name + chunk + zlib.crc32(name + chunk).to_bytes(4, "big")
        for name, chunk in parts
    )


def _summed(content: bytes) -> bytes:
    """Return a PNG whose parts have valid checksums."""
    png = bytearray(content)
    start = 8
    while start + 12 <= len(png):
        end = start + 8 + int.from_bytes(png[start : start + 4], "big")
        if end + 4 > len(png):
            break
        png[end : end + 4] = zlib.crc32(png[start + 4 : end]).to_bytes(4, "big")
        start = end + 4
    return bytes(png)


def use_image(content: bytes, rng: np.random.Generator) -> None:
    """Read a picture, prepared in some way."""
    from visionshare.datasets import Preprocessing
    from visionshare.datasets.folders import read_image

    ways = (
        Preprocessing(),
        Preprocessing(fit="center"),
        Preprocessing("automatic", True, True, fit="box", margin=4, center="mass"),
        Preprocessing("dark_on_light", True),
    )
    mode = ("gray", "color")[rng.integers(0, 2)]
    made = read_image(io.BytesIO(content), (28, 28), mode, ways[rng.integers(0, len(ways))])
    if made.shape[:2] != (28, 28) or made.dtype != np.uint8:
        raise AssertionError(f"{made.dtype} of shape {made.shape}")
    if (n_pixels := _n_pixels(content)) > MAX_PIXELS:
        raise AssertionError(f"{n_pixels} pixels were read")


def _n_pixels(content: bytes) -> int:
    """Return how many pixels a picture has that was read; 0 where Pillow does not know it."""
    from PIL import Image

    try:
        with Image.open(io.BytesIO(content)) as opened:
            return opened.width * opened.height
    except Exception:
        return 0


IMAGES = Inputs(image_seeds, mutated_image, use_image)
