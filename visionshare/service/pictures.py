"""Large pictures are decoded at a reduced size, in memory that is computed from the header."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from visionshare.datasets.opening import OpenedPicture, open_picture
from visionshare.errors import DataError
from visionshare.machine.memory import trim_memory
from visionshare.service import Limits

if TYPE_CHECKING:
    from PIL import Image


# Bytes a pixel in Pillow; 16-bit and float pictures are not reduced.
_BYTES = {"1": 1, "L": 1, "P": 1, "LA": 4, "PA": 4}
_DEEP = ("I", "F", "I;16", "I;16B", "I;16L", "I;16N")
# How many times decoders hold a picture, where it is more than once.
_COPIES = {"WEBP": 3, "GIF": 3, "TIFF": 2, "AVIF": 4, "HEIF": 4, "JPEG2000": 10}
# Pixels that are converted at a time.
_STRIP = 1 << 20


def reduced_picture(body: bytes, limits: Limits) -> bytes:
    """Return a file of at most ``max_decoded_pixels``; nothing keeps the decoded picture then."""
    # It is reduced by a whole factor: JPEG while it is decoded, others a strip at a time.
    picture = open_picture(body, limits.max_pixels)
    try:
        if picture.format == "WEBP":
            # Its decoder takes the memory as soon as it is made.
            _check_memory(picture, picture.stored_size, 4, limits)
        image = picture.image
        if image.mode in _DEEP:
            width, height = picture.stored_size
            raise DataError(
                f"{picture.name}: {width}×{height} pixels of more than 8 bits are too many"
            )
        with picture.errors():
            if image.format == "JPEG":
                # Decoded at the next size that the format offers, at or above the one wanted.
                side = (limits.max_decoded_pixels / (image.width * image.height)) ** 0.5
                image.draft(None, (int(image.width * side) + 1, int(image.height * side) + 1))
            _check_memory(picture, image.size, _BYTES.get(image.mode, 4), limits)
            image.load()
            return _reduced(image, picture.orientation, limits.max_decoded_pixels)
    finally:
        trim_memory()


def _check_memory(
    picture: OpenedPicture, size: tuple[int, int], pixel_bytes: int, limits: Limits
) -> None:
    """Check that decoding a picture at a size takes no more memory than it may."""
    n_bytes = _COPIES.get(picture.format, 1) * size[0] * size[1] * pixel_bytes
    if picture.format == "JPEG" and picture.image.info.get("progressive"):
        # All coefficients of the whole picture are in memory.
        width, height = picture.stored_size
        n_bytes += 6 * width * height
    if n_bytes > limits.max_decode_memory:
        raise DataError(
            f"{picture.name}: decoding it takes {n_bytes} bytes, "
            f"more than {limits.max_decode_memory}"
        )


def _reduced(image: Image.Image, orientation: int, max_pixels: int) -> bytes:
    """Return the file of a picture that is smaller by a whole factor."""
    from PIL import Image

    factor = 1
    while -(-image.width // factor) * -(-image.height // factor) > max_pixels:
        factor += 1
    has_alpha = "A" in image.mode or "transparency" in image.info
    mode = "RGBA" if has_alpha else ("L" if image.mode in ("1", "L") else "RGB")
    small = Image.new(mode, (-(-image.width // factor), -(-image.height // factor)))
    n_rows = factor * max(1, _STRIP // (factor * image.width))
    for top in range(0, image.height, n_rows):
        bottom = min(top + n_rows, image.height)
        strip = image.crop((0, top, image.width, bottom)).convert(mode)
        small.paste(strip.reduce(factor) if factor > 1 else strip, (0, top // factor))
    exif = Image.Exif()
    exif[0x0112] = orientation
    file = io.BytesIO()
    small.save(file, "png", compress_level=1, exif=exif)
    return file.getvalue()
