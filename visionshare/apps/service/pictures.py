"""Pictures from clients: what decoding takes is known from the header, and bounded."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from visionshare.apps.service.memory import trim_memory
from visionshare.datasets.jpeg_scans import check_scans
from visionshare.errors import DataError

if TYPE_CHECKING:
    from PIL import Image

__all__ = ["is_large", "reduced_picture", "webp_size"]

_FORMATS = ("PNG", "JPEG", "BMP", "GIF", "TIFF", "WEBP", "PPM")
# Bytes a pixel in Pillow; 16-bit and float pictures are not reduced.
_BYTES = {"1": 1, "L": 1, "P": 1, "LA": 4, "PA": 4}
_DEEP = ("I", "F", "I;16", "I;16B", "I;16L", "I;16N")
# Pixels that are converted at a time.
_STRIP = 1 << 20


def is_large(body: bytes, max_pixels: int, max_decoded_pixels: int) -> bool:
    """Return whether a picture must be reduced; only its header is read.

    Parameters
    ----------
    body : bytes
        The file; one that no decoder knows is not large.
    max_pixels : int
        Most pixels of a picture.
    max_decoded_pixels : int
        Pixels beyond which it is reduced.

    Raises
    ------
    DataError
        If it has too many pixels.

    Examples
    --------
    >>> is_large(b"no picture", 10_000, 1_000)
    False
    """
    width, height = webp_size(body) or (0, 0)
    _check_pixels(width, height, max_pixels)
    try:
        opened = _open(body)
    except Exception:  # the reader says what is wrong with it
        return False
    with opened:
        _check_pixels(opened.width, opened.height, max_pixels)
        return opened.width * opened.height > max_decoded_pixels


def reduced_picture(body: bytes, max_decoded_pixels: int, max_memory: int) -> bytes:
    """Return a file of at most ``max_decoded_pixels`` in the place of a large picture.

    It is reduced by a whole factor: JPEG while it is decoded, others a strip at a time.

    Parameters
    ----------
    body : bytes
        The file of a picture for which :func:`is_large` is true.
    max_decoded_pixels : int
    max_memory : int
        Most bytes for decoding, computed from the header.

    Raises
    ------
    DataError
        If it cannot be decoded, decoding it takes too much memory, or it has very many scans.

    Examples
    --------
    >>> from PIL import Image
    >>> file = io.BytesIO()
    >>> Image.new("L", (90, 50)).save(file, "png")
    >>> small = reduced_picture(file.getvalue(), 1_000, 1 << 20)
    >>> Image.open(io.BytesIO(small)).size
    (30, 17)
    """
    try:
        with _open(body) as opened:
            check_scans(opened, "image")
            return _reduced(opened, max_decoded_pixels, max_memory)
    except (DataError, MemoryError):
        raise
    except Exception as error:  # decoders raise anything for broken files
        line = " ".join(str(error).split())
        raise DataError(f"image: cannot be read as an image ({line})") from None
    finally:
        trim_memory()


def _open(body: bytes) -> Image.Image:
    from PIL import Image

    return Image.open(io.BytesIO(body), formats=_FORMATS)


def _check_pixels(width: int, height: int, max_pixels: int) -> None:
    if width * height > max_pixels:
        raise DataError(f"image: {width}×{height} pixels are too many")


def _reduced(opened: Image.Image, max_decoded: int, max_memory: int) -> bytes:
    from PIL import Image, ImageOps

    if opened.mode in _DEEP:
        raise DataError(
            f"image: {opened.width}×{opened.height} pixels of more than 8 bits are too many"
        )
    n_pixels = opened.width * opened.height
    coefficients = 6 * n_pixels if opened.info.get("progressive") else 0
    if opened.format == "JPEG":
        side = (max_decoded / n_pixels) ** 0.5
        # The next size that the format offers, at or above this one.
        opened.draft(None, (int(opened.width * side) + 1, int(opened.height * side) + 1))
    n_pixels = opened.width * opened.height
    copies = 3 if opened.format in ("WEBP", "GIF") else 1
    n_bytes = coefficients + copies * n_pixels * _BYTES.get(opened.mode, 4)
    if n_bytes > max_memory:
        raise DataError(f"image: decoding it takes {n_bytes} bytes, more than {max_memory}")
    opened.load()
    factor = 1
    while -(-opened.width // factor) * -(-opened.height // factor) > max_decoded:
        factor += 1
    has_alpha = "A" in opened.mode or "transparency" in opened.info
    mode = "RGBA" if has_alpha else ("L" if opened.mode in ("1", "L") else "RGB")
    width, height = -(-opened.width // factor), -(-opened.height // factor)
    small = Image.new(mode, (width, height))
    n_rows = factor * max(1, _STRIP // (factor * opened.width))
    for top in range(0, opened.height, n_rows):
        bottom = min(top + n_rows, opened.height)
        strip = opened.crop((0, top, opened.width, bottom)).convert(mode)
        small.paste(strip.reduce(factor) if factor > 1 else strip, (0, top // factor))
    small.info, orientation = {}, opened.getexif().get(0x0112)
    if orientation is not None:
        small.getexif()[0x0112] = orientation
        small = ImageOps.exif_transpose(small)
    file = io.BytesIO()
    small.save(file, "png", compress_level=1)
    return file.getvalue()


def webp_size(body: bytes) -> tuple[int, int] | None:
    """Return width and height of a WebP file: its decoder takes memory before it says them.

    Examples
    --------
    >>> webp_size(b"RIFF....WEBPVP8X" + bytes(8) + b"\\x01\\x00\\x00" + b"\\x02\\x00\\x00")
    (2, 3)
    """
    if body[:4] != b"RIFF" or body[8:12] != b"WEBP" or len(body) < 30:
        return None
    kind = body[12:16]
    if kind == b"VP8X":
        return int.from_bytes(body[24:27], "little") + 1, int.from_bytes(body[27:30], "little") + 1
    if kind == b"VP8L":
        packed = int.from_bytes(body[21:25], "little")
        return (packed & 0x3FFF) + 1, (packed >> 14 & 0x3FFF) + 1
    width, height = (int.from_bytes(body[i : i + 2], "little") & 0x3FFF for i in (26, 28))
    return width, height
