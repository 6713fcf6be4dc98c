"""From the file of a picture to its pixels: gray or color, upright, of 8 bits, all opaque."""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from visionshare.datasets.jpeg_scans import check_scans
from visionshare.datasets.preprocessing import Preprocessing
from visionshare.errors import DataError, InputError

if TYPE_CHECKING:
    from PIL import Image

__all__ = [
    "MAX_PIXELS",
    "MODES",
    "decode_array",
    "decode_image",
    "decode_picture",
    "picture_header",
]

MODES = ("gray", "color")
MAX_PIXELS = 1 << 26
# Formats that Pillow may try: it knows others that start programs.
_FORMATS = ("PNG", "JPEG", "BMP", "GIF", "TIFF", "WEBP", "PPM")
# Width and height change places in these EXIF orientations.
_TURNED = (5, 6, 7, 8)
_ORIENTATION = 0x0112
# Formats whose integers of mode "I" have 16 bits.
_DEEP = ("PNG", "PPM")
# Pixels that are converted together.
_STRIP = 1 << 20


def decode_image(
    source: str | os.PathLike[str] | BinaryIO,
    mode: str = "gray",
    steps: Preprocessing | None = None,
    background: int | None = None,
    max_pixels: int = MAX_PIXELS,
) -> np.ndarray:
    """Return the pixels of a picture's file, before any step of its preparation.

    The EXIF orientation is respected; of an animated picture this is the first frame; 16 bits
    become 8 by one measure for all pictures, 65535 becomes 255; and palettes and CMYK colors.

    Parameters
    ----------
    source : path-like or binary file
    mode : {"gray", "color"}, default "gray"
    steps : Preprocessing, optional
        Say on what transparent pixels are laid.
    background : int, optional
        Gray value on which transparent pixels are laid, whatever the steps say.
    max_pixels : int, default 67108864
        Pixels that are accepted at most, checked before they are decoded.

    Returns
    -------
    ndarray of shape (H, W) or (H, W, 3), uint8

    Raises
    ------
    DataError
        If the file is not an image, broken, too large, or a JPEG of very many scans.

    Examples
    --------
    >>> import io
    >>> from PIL import Image
    >>> file = io.BytesIO()
    >>> Image.new("LA", (2, 1), (0, 255)).save(file, "png")
    >>> decode_image(file).tolist()
    [[0, 0]]
    """
    if mode not in MODES:
        raise InputError("mode", mode, "'gray' or 'color'")
    steps = Preprocessing() if steps is None else steps
    with _opened(source, max_pixels) as opened:
        check_scans(opened, _name_of(source))
        _turn_upright(opened)
        return _pixels(opened, mode, steps, background)


def decode_picture(
    picture: Image.Image, mode: str = "gray", steps: Preprocessing | None = None
) -> np.ndarray:
    """Return the pixels of a picture of Pillow, as :func:`decode_image` does of its file.

    Raises
    ------
    DataError
        If its file is broken.

    Examples
    --------
    >>> from PIL import Image
    >>> decode_picture(Image.new("1", (2, 1), 1)).tolist()
    [[255, 255]]
    """
    from PIL import ImageOps

    try:
        # A copy where it is turned: the picture is the caller's.
        upright = ImageOps.exif_transpose(picture)
        return _pixels(upright, mode, steps or Preprocessing(), None)
    except OSError as error:
        raise DataError(f"image: cannot be read as an image ({error})") from None


def picture_header(
    source: str | os.PathLike[str] | BinaryIO, max_pixels: int = MAX_PIXELS
) -> tuple[int, int, str, str]:
    """Return a picture's height, width, mode and format; no pixel is decoded.

    Parameters
    ----------
    source : path-like or binary file
    max_pixels : int, default 67108864

    Raises
    ------
    DataError
        If the file is not an image, or too large.

    Examples
    --------
    >>> import io
    >>> from PIL import Image
    >>> file = io.BytesIO()
    >>> Image.new("RGB", (9, 5)).save(file, "png")
    >>> picture_header(file)
    (5, 9, 'RGB', 'PNG')
    """
    with _opened(source, max_pixels) as opened:
        height, width = opened.height, opened.width
        # Of a PNG this would decode the picture, as its EXIF data may stand at its end.
        exif = opened.getexif() if opened.format != "PNG" or "exif" in opened.info else {}
        if exif.get(_ORIENTATION) in _TURNED:
            height, width = width, height
        mode = opened.mode
        if "transparency" in opened.info:
            mode += " with transparency"
        return height, width, mode, str(opened.format)


def decode_array(
    pixels: np.ndarray, mode: str = "gray", steps: Preprocessing | None = None
) -> np.ndarray:
    """Return the pixels of a picture that is an array, as :func:`decode_image` does of a file.

    Parameters
    ----------
    pixels : ndarray of shape (H, W) or (H, W, C), uint8 or uint16
        One, three or four channels: gray, RGB, or RGB with transparency.
    mode, steps
        As in :func:`decode_image`.

    Raises
    ------
    DataError
        If it is no such array.

    Examples
    --------
    >>> decode_array(np.full((1, 2), 65535, np.uint16)).tolist()
    [[255, 255]]
    """
    from PIL import Image

    shape, dtype = pixels.shape, pixels.dtype
    is_picture = len(shape) == 2 or (len(shape) == 3 and shape[2] in (1, 3, 4))
    if not is_picture or 0 in shape or dtype not in (np.uint8, np.uint16):
        accepted = "bytes or uint16 of shape (H, W), (H, W, 1), (H, W, 3) or (H, W, 4)"
        raise DataError(f"{dtype} of shape {shape}, not {accepted}")
    if dtype == np.uint16:
        # 65535 becomes 255; no wider type is needed, which large pictures would pay for.
        pixels = (pixels // 257).astype(np.uint8)
    if len(shape) == 3 and shape[2] == 1:
        pixels = pixels[:, :, 0]
    plain = 2 if mode == "gray" else 3
    if pixels.ndim == plain and pixels.shape[2:] in ((), (3,)):
        return pixels
    return _pixels(Image.fromarray(pixels), mode, steps or Preprocessing(), None)


@contextmanager
def _opened(source: str | os.PathLike[str] | BinaryIO, max_pixels: int) -> Iterator[Image.Image]:
    """Open a picture; what goes wrong inside of the block is a DataError."""
    from PIL import Image, UnidentifiedImageError

    name = _name_of(source)
    try:
        with _quiet, Image.open(source, formats=_FORMATS) as opened:
            if opened.width * opened.height > max_pixels:
                raise DataError(f"{name}: {opened.width}×{opened.height} pixels are too many")
            yield opened
    except (DataError, MemoryError):
        raise
    except UnidentifiedImageError:
        raise DataError(f"{name}: cannot be read as an image (unknown format)") from None
    except Exception as error:  # decoders raise anything for broken files
        line = " ".join(str(error).split())
        raise DataError(f"{name}: cannot be read as an image ({line})") from None


def _name_of(source: str | os.PathLike[str] | BinaryIO) -> str:
    return os.fspath(source) if isinstance(source, (str, os.PathLike)) else "image"


def _turn_upright(opened: Image.Image) -> None:
    from PIL import ImageOps

    opened.load()
    # A copy would take as much as the picture, also where nothing is turned.
    ImageOps.exif_transpose(opened, in_place=True)


def _pixels(
    image: Image.Image, mode: str, steps: Preprocessing, background: int | None
) -> np.ndarray:
    ground = None
    if image.mode.startswith("I") or image.mode == "F":
        image = _to_bytes(image)
    elif image.mode in ("LA", "PA", "RGBA", "La", "RGBa") or "transparency" in image.info:
        image = image if image.mode == "RGBA" else image.convert("RGBA")
        ground = _ground(image, steps, background)
    plain = "L" if mode == "gray" else "RGB"
    if image.width * image.height <= _STRIP:
        return np.asarray(_flat(image, ground).convert(plain))
    out = np.empty((image.height, image.width, 3)[: 2 if plain == "L" else 3], np.uint8)
    # Some rows at a time: copies of a large picture would fill the memory.
    n_rows = max(1, _STRIP // image.width)
    for top in range(0, image.height, n_rows):
        rows = image.crop((0, top, image.width, min(top + n_rows, image.height)))
        out[top : top + n_rows] = np.asarray(_flat(rows, ground).convert(plain))
    return out


def _to_bytes(image: Image.Image) -> Image.Image:
    """Return 8 bits of integers of 16 bits, or of floats from 0 to 1, 255 or 65535."""
    from PIL import Image

    values = np.asarray(image)
    largest = values.max(initial=0, where=np.isfinite(values))
    # Of 16 bits the measure is known, however dark a picture is; Pillow has some as 32.
    is_deep = image.mode.startswith("I;16") or (image.mode == "I" and image.format in _DEEP)
    top = 65535.0 if is_deep or largest > 255 else 255.0
    if values.dtype.kind == "f" and largest <= 1:
        top = 1.0
    scaled = np.empty(values.shape, np.uint8)
    # Some rows at a time: floats of a large picture would fill the memory.
    for i in range(0, len(values), 256):
        rows = np.nan_to_num(values[i : i + 256].astype(np.float64))
        scaled[i : i + 256] = np.clip(rows / top * 255, 0, 255)
    return Image.fromarray(scaled)


def _ground(image: Image.Image, steps: Preprocessing, background: int | None) -> int:
    """Return the gray value of the ground that the ink of a picture with transparency needs."""
    if background is None:
        background = 255 * (steps.ground == "white")
        if steps.ground == "ink":
            background = 255 * (
                steps.polarity == "dark_on_light"
                or (steps.polarity != "light_on_dark" and _has_dark_ink(image))
            )
    return background


def _flat(image: Image.Image, ground: int | None) -> Image.Image:
    """Return the picture without transparency; without a ground, it has none."""
    from PIL import Image

    if ground is None:
        return image
    canvas = Image.new("RGBA", image.size, (ground, ground, ground, 255))
    return Image.alpha_composite(canvas, image)


def _has_dark_ink(image: Image.Image) -> bool:
    """Return whether the opaque pixels are dark: transparent ones are light paper then."""
    from PIL import ImageStat

    ink = ImageStat.Stat(image.convert("L"), image.getchannel("A"))
    return bool(ink.count[0] > 0 and ink.mean[0] < 127.5)


class _Quiet:
    """Silences warnings while any thread decodes.

    ``warnings.catch_warnings`` is not made for threads that enter and leave in any order: the
    first one in saves the filters, the last one out restores them.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._filters: warnings.catch_warnings[Any] | None = None

    def __enter__(self) -> None:
        with self._lock:
            self._inside += 1
            if self._inside == 1:
                self._filters = warnings.catch_warnings()
                self._filters.__enter__()
                warnings.simplefilter("ignore")

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0 and self._filters is not None:
                self._filters.__exit__(None, None, None)


_quiet = _Quiet()
