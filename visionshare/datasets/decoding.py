"""From the file of a picture to its pixels: gray or color, upright, of 8 bits, all opaque."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np

from visionshare.datasets.canvas import array_of
from visionshare.datasets.containers.container import TURNED
from visionshare.datasets.containers.formats import format_of
from visionshare.datasets.notices import note_pages
from visionshare.datasets.opening import (
    DEEP,
    FREE,
    MAX_PIXELS,
    OpenedPicture,
    Source,
    open_picture,
)
from visionshare.datasets.preprocessing import Preprocessing
from visionshare.errors import DataError, InputError

if TYPE_CHECKING:
    from PIL import Image


MODES = ("gray", "color")
# Pixels that are converted together.
_STRIP = 1 << 20
_ORIENTATION = 0x0112
# Ranges that mean the same in every file.
_KNOWN = (1.0, 255.0, 65535.0)
_PLAIN = Preprocessing()


def decode_image(
    source: Source,
    mode: str = "gray",
    steps: Preprocessing | None = None,
    background: int | None = None,
    max_pixels: int = MAX_PIXELS,
) -> np.ndarray:
    """Return the pixels (H, W) or (H, W, 3) of a picture's file, before any preparation.

    The array is the same for a path, an open file and bytes. The picture stands upright, as its
    EXIF orientation says. Of several pages or frames this is the first; :func:`decode_pages`
    returns all. Palettes and CMYK become colors. 16 bits become 8 by one measure for all
    pictures: 65535 becomes 255. Integers of 32 bits and floats go by the range that the steps
    name; otherwise from 0 to 1, 255 or 65535, whichever holds the picture's values.

    Parameters
    ----------
    source : path-like, bytes or binary file
        Of PNG, JPEG, BMP, GIF, TIFF, WebP, PBM, PGM, PPM, JPEG 2000, AVIF or HEIC; the last
        three where the installation has their decoders (HEIC: the extra ``heic``).
    mode : {"gray", "color"}, default "gray"
    steps : Preprocessing, optional
        Say on what transparent pixels are laid, and which values become 0 and 255.
    background : int, optional
        Gray value on which transparent pixels are laid, whatever the steps say.
    max_pixels : int, default 67108864
        Pixels that are accepted at most, checked before they are decoded.

    Raises
    ------
    DataError
        If the file is not an image, broken, too large, or would take much longer to decode than
        its size tells.

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
    picture = open_picture(source, max_pixels)
    note_pages(picture.name, picture.n_pages - 1)
    return _decoded(picture, mode, steps, background)


def decode_pages(
    source: Source,
    mode: str = "gray",
    steps: Preprocessing | None = None,
    background: int | None = None,
    max_pixels: int = MAX_PIXELS,
) -> Iterator[np.ndarray]:
    """Yield the pixels of each page or frame of a picture's file.

    Examples
    --------
    >>> import io
    >>> from PIL import Image
    >>> file = io.BytesIO()
    >>> pages = [Image.new("L", (2, 1), value) for value in (7, 9)]
    >>> pages[0].save(file, "tiff", save_all=True, append_images=pages[1:])
    >>> [page.tolist() for page in decode_pages(file)]
    [[[7, 7]], [[9, 9]]]
    """
    first = open_picture(source, max_pixels)
    for page in range(first.n_pages):
        picture = first
        if page > 0:
            with first.errors():
                if first.container.page is None:
                    first.image.seek(page)
                else:
                    other = first.container.page(page)
                    picture = OpenedPicture(first.name, other, max_pixels)
        yield _decoded(picture, mode, steps, background)


def _decoded(
    picture: OpenedPicture, mode: str, steps: Preprocessing | None, background: int | None
) -> np.ndarray:
    with picture.errors():
        image = picture.image
        image.load()
        pixels = _pixels(image, mode, steps or _PLAIN, background)
    return np.ascontiguousarray(_upright(pixels, picture.orientation))


def _upright(pixels: np.ndarray, orientation: int) -> np.ndarray:
    """Return pixels as they are seen, from those that lie as EXIF's number says."""
    if orientation in TURNED:
        # Rows become columns; the rest is a reflection of these.
        pixels = pixels.swapaxes(0, 1)
    if orientation in (3, 4, 7, 8):
        pixels = pixels[::-1]
    if orientation in (2, 3, 6, 7):
        pixels = pixels[:, ::-1]
    return pixels


def free_range(source: Source) -> tuple[float, float] | None:
    """Return the lowest and highest value of a picture of floats or of integers of 32 bits."""
    # None for pictures of other kinds, whose range is known.
    if isinstance(source, (str, os.PathLike)) and not _may_have_free_range(source):
        return None
    picture = open_picture(source)
    if not picture.has_free_range:
        return None
    with picture.errors():
        return _limits(np.asarray(picture.image))


def _may_have_free_range(path: str | os.PathLike[str]) -> bool:
    """Return whether the first bytes of a file belong to a format that has such pictures."""
    with suppress(OSError), open(path, "rb") as file:
        found = format_of(file.read(16))
        return found is not None and found.name in FREE
    # Opening it says why.
    return True


def known_range(low: float, high: float) -> tuple[float, float]:
    """Return what becomes 0 and 255 of values from ``low`` to ``high``."""
    tops = [top for top in _KNOWN if high <= top]
    if low >= 0 and tops:
        return 0.0, tops[0]
    return min(0.0, low), max(high, low + 1)


def _limits(values: np.ndarray) -> tuple[float, float]:
    """Return the lowest and the highest finite value; zeros where there is none."""
    if values.dtype.kind != "f":
        return float(values.min()), float(values.max())
    finite = np.isfinite(values)
    if not finite.any():
        return 0.0, 0.0
    low = values.min(initial=np.inf, where=finite)
    return float(low), float(values.max(initial=-np.inf, where=finite))


def decode_picture(
    picture: Image.Image, mode: str = "gray", steps: Preprocessing | None = None
) -> np.ndarray:
    """Return the pixels of a picture of Pillow, as :func:`decode_image` does of its file."""
    return _pixels(upright_picture(picture), mode, steps or _PLAIN, None)


def upright_picture(picture: Image.Image) -> Image.Image:
    """Return a picture of Pillow that stands upright; a copy where it has to be turned."""
    from PIL import Image, ImageOps

    try:
        name = getattr(picture, "filename", "")
        if name and picture.format == "TIFF" and picture.getexif().get(_ORIENTATION) in TURNED:
            # Not yet loaded. Pillow would map the file, and scramble rows of pixels.
            with open(name, "rb") as file, Image.open(file) as again:
                again.seek(picture.tell())
                return ImageOps.exif_transpose(again)
        picture.load()
        return ImageOps.exif_transpose(picture)
    except OSError as error:
        raise DataError(f"image: cannot be read as an image ({error})") from None


def picture_header(source: Source, max_pixels: int = MAX_PIXELS) -> tuple[int, int, str, str]:
    """Return a picture's height, width, mode and format; no pixel is decoded.

    Height and width are as in :func:`decode_image`'s array.

    Parameters
    ----------
    source : path-like, bytes or binary file
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
    picture = open_picture(source, max_pixels)
    return *picture.shape, picture.mode, picture.format


def decode_array(
    pixels: np.ndarray, mode: str = "gray", steps: Preprocessing | None = None
) -> np.ndarray:
    """Return the pixels of a picture that is an array, as :func:`decode_image` does of a file."""
    from PIL import Image

    shape = pixels.shape
    dtype = pixels.dtype
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
    return _pixels(Image.fromarray(pixels), mode, steps or _PLAIN, None)


def _pixels(
    image: Image.Image, mode: str, steps: Preprocessing, background: int | None
) -> np.ndarray:
    ground = None
    if image.mode.startswith("I") or image.mode == "F":
        image = _to_bytes(image, steps.values)
    elif image.mode in ("LA", "PA", "RGBA", "La", "RGBa") or "transparency" in image.info:
        image = image if image.mode == "RGBA" else image.convert("RGBA")
        ground = _ground(image, steps, background)
    plain = "L" if mode == "gray" else "RGB"
    if image.width * image.height <= _STRIP:
        flat = _flat(image, ground)
        return array_of(flat if flat.mode == plain else flat.convert(plain))
    out = np.empty((image.height, image.width, 3)[: 2 if plain == "L" else 3], np.uint8)
    # Some rows at a time: copies of a large picture would fill the memory.
    n_rows = max(1, _STRIP // image.width)
    for top in range(0, image.height, n_rows):
        rows = image.crop((0, top, image.width, min(top + n_rows, image.height)))
        out[top : top + n_rows] = np.asarray(_flat(rows, ground).convert(plain))
    return out


def _to_bytes(image: Image.Image, values: tuple[float, float] | None) -> Image.Image:
    """Return 8 bits of integers of 16 or 32 bits, or of floats."""
    from PIL import Image

    numbers = np.asarray(image)
    # Of 16 bits the measure is known, however dark a picture is; Pillow has some as 32.
    is_deep = image.mode.startswith("I;16") or (image.mode == "I" and image.format in DEEP)
    if is_deep:
        values = (0.0, _KNOWN[-1])
    low, high = values or known_range(*_limits(numbers))
    scaled = np.empty(numbers.shape, np.uint8)
    # Some rows at a time: floats of a large picture would fill the memory.
    for i in range(0, len(numbers), 256):
        rows = np.nan_to_num(numbers[i : i + 256].astype(np.float64))
        scaled[i : i + 256] = np.clip((rows - low) / (high - low) * 255, 0, 255)
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
