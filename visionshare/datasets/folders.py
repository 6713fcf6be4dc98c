"""Folders of images: a class per folder, any size and mode."""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeAlias

import numpy as np

from visionshare.datasets.imageset import ImageSet
from visionshare.datasets.preprocessing import Preprocessing
from visionshare.errors import DataError, InputError
from visionshare.resources import resolve_jobs

if TYPE_CHECKING:
    from PIL import Image

__all__ = [
    "EXTENSIONS", "NAMED_FITS", "Fit", "as_preprocessing", "find_images", "iter_images",
    "read_folder", "read_image", "read_images",
]  # fmt: skip

EXTENSIONS = {".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp", ".pgm", ".ppm"}
# Formats that Pillow may try: it knows others that start programs.
_FORMATS = ("PNG", "JPEG", "BMP", "GIF", "TIFF", "WEBP", "PPM")
_MAX_PIXELS = 1 << 26
Fit: TypeAlias = "str | Preprocessing"
NAMED_FITS = ("resize", "center")


def read_image(
    source: str | os.PathLike[str] | BinaryIO,
    size: tuple[int, int] | None = None,
    mode: str = "gray",
    fit: Fit = "resize",
    max_pixels: int = _MAX_PIXELS,
    background: int | None = None,
) -> np.ndarray:
    """Read one image; its EXIF orientation is respected.

    Parameters
    ----------
    source : path-like or binary file
    size : tuple of int, optional
        Height and width of the result; the image's own when omitted.
    mode : {"gray", "color"}, default "gray"
    fit : {"resize", "center"} or Preprocessing, default "resize"
        With a size: stretch to it, or shrink where needed and center on a black canvas; or the
        steps of :class:`visionshare.datasets.Preprocessing`.
    max_pixels : int, default 67108864
        Pixels that are accepted at most, checked before they are decoded.
    background : int, optional
        Gray value on which transparent pixels are laid; black when omitted, or white where the
        steps look for dark ink and find it.

    Returns
    -------
    ndarray of shape (H, W) or (H, W, 3), uint8

    Raises
    ------
    DataError
        If the file is not an image, broken or too large.

    Examples
    --------
    >>> import io
    >>> from PIL import Image
    >>> file = io.BytesIO()
    >>> Image.new("RGB", (9, 5), (255, 0, 0)).save(file, "png")
    >>> read_image(file, size=(1, 2)).tolist()
    [[76, 76]]
    """
    from PIL import Image, ImageOps, UnidentifiedImageError

    if mode not in ("gray", "color"):
        raise InputError("mode", mode, "'gray' or 'color'")
    steps = as_preprocessing(fit)
    name = source if isinstance(source, (str, os.PathLike)) else "image"
    try:
        with _quiet, Image.open(source, formats=_FORMATS) as opened:
            if opened.width * opened.height > max_pixels:
                raise DataError(f"{name}: {opened.width}×{opened.height} pixels are too many")
            upright: Image.Image = ImageOps.exif_transpose(opened)
            if upright.mode in ("I;16", "I", "F"):
                upright = _to_bytes(upright)
            elif "A" in upright.mode or "transparency" in upright.info:
                upright = _on_background(upright.convert("RGBA"), steps.polarity, background)
            image = upright.convert("L" if mode == "gray" else "RGB")
    except (DataError, MemoryError):
        raise
    except UnidentifiedImageError:
        raise DataError(f"{name}: cannot be read as an image (unknown format)") from None
    except Exception as error:  # decoders raise anything for broken files
        line = " ".join(str(error).split())
        raise DataError(f"{name}: cannot be read as an image ({line})") from None
    return steps.apply(np.asarray(image), size)


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


def as_preprocessing(fit: Fit) -> Preprocessing:
    """Return the steps that a name stands for, or those given.

    Raises
    ------
    InputError
        If it is neither.

    Examples
    --------
    >>> as_preprocessing("center").fit
    'center'
    """
    if isinstance(fit, Preprocessing):
        return fit
    if fit not in NAMED_FITS:
        raise InputError("fit", fit, "'resize', 'center' or a Preprocessing")
    return Preprocessing(fit=fit)


def _to_bytes(image: Image.Image) -> Image.Image:
    from PIL import Image

    values = np.asarray(image)
    largest = values.max(initial=0, where=np.isfinite(values))
    top = 65535.0 if largest > 255 else 255.0
    scaled = np.empty(values.shape, np.uint8)
    # Some rows at a time: floats of a large picture would fill the memory.
    for i in range(0, len(values), 256):
        rows = np.nan_to_num(values[i : i + 256].astype(np.float64))
        scaled[i : i + 256] = np.clip(rows / top * 255, 0, 255)
    return Image.fromarray(scaled)


def _on_background(image: Image.Image, polarity: str, background: int | None) -> Image.Image:
    """Return the picture without transparency: on black, or on white where its ink is dark."""
    from PIL import Image, ImageStat

    if background is None:
        white = polarity == "dark_on_light"
        if polarity == "automatic":
            # Where opaque pixels are dark, transparent ones are paper.
            ink = ImageStat.Stat(image.convert("L"), image.getchannel("A"))
            white = ink.count[0] > 0 and ink.mean[0] < 127.5
        background = 255 * white
    canvas = Image.new("RGBA", image.size, (background, background, background, 255))
    return Image.alpha_composite(canvas, image)


def find_images(folder: str | os.PathLike[str]) -> list[Path]:
    """Return the image files below a folder, sorted by path.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Path(folder, "a.png").touch()
    ...     [path.name for path in find_images(folder)]
    ['a.png']
    """
    return [Path(path) for path in iter_images(folder)]


def iter_images(folder: str | os.PathLike[str]) -> Iterator[str]:
    """Yield the image files below a folder, sorted by path, a folder's entries at a time.

    Folders that are links are skipped: they may form cycles.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Path(folder, "a.txt").touch()
    ...     list(iter_images(folder))
    []
    """
    with os.scandir(folder) as unsorted:
        entries = sorted(unsorted, key=lambda entry: entry.name)
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            yield from iter_images(entry.path)
        elif os.path.splitext(entry.name)[1].lower() in EXTENSIONS and entry.is_file():
            yield entry.path


def read_images(
    paths: Sequence[str | os.PathLike[str]],
    size: tuple[int, int],
    mode: str = "gray",
    fit: Fit = "resize",
    n_jobs: int = 1,
    broken: list[str] | None = None,
) -> np.ndarray:
    """Read images of one size, (n, height, width) or (n, height, width, 3), uint8.

    Parameters
    ----------
    paths : sequence of path-like
    size, mode, fit
        As in :func:`read_image`.
    n_jobs : int, default 1
        Threads that decode; -1 for all cores.
    broken : list of str, optional
        Where to note images that cannot be read; they are then skipped.

    Raises
    ------
    DataError
        If an image cannot be read and ``broken`` is not given.

    Examples
    --------
    >>> read_images([], (8, 8)).shape
    (0, 8, 8)
    """
    from concurrent.futures import ThreadPoolExecutor

    def one(path: str | os.PathLike[str]) -> np.ndarray | DataError:
        try:
            return read_image(path, size, mode, fit)
        except DataError as error:
            return error

    with ThreadPoolExecutor(resolve_jobs(n_jobs)) as threads:
        results = list(threads.map(one, paths))
    images = []
    for path, result in zip(paths, results, strict=True):
        if not isinstance(result, DataError):
            images.append(result)
        elif broken is None:
            raise result
        else:
            broken.append(str(path))
    shape = (*size, 3) if mode == "color" else size
    return np.stack(images) if images else np.zeros((0, *shape), np.uint8)


def read_folder(
    folder: str | os.PathLike[str],
    size: tuple[int, int] | None = None,
    mode: str = "gray",
    fit: Fit = "resize",
) -> ImageSet:
    """Read a folder that holds a folder of images for each class.

    Parameters
    ----------
    folder : path-like
    size : tuple of int, optional
        Height and width; needed where the images differ in size.
    mode, fit
        As in :func:`read_image`.

    Raises
    ------
    DataError
        If there is no such folder, it has no images, an image is broken, or sizes differ and
        none is given.

    Examples
    --------
    >>> import tempfile
    >>> from PIL import Image
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name in ("cat", "dog"):
    ...         Path(folder, name).mkdir()
    ...         Image.new("L", (9, 5)).save(f"{folder}/{name}/1.png")
    ...     pets = read_folder(folder, size=(8, 8))
    >>> pets.images.shape, pets.classes
    ((2, 8, 8), ('cat', 'dog'))
    """
    root = Path(folder)
    if not root.is_dir():
        raise DataError(f"{root}: no such folder")
    folders = sorted(path.name for path in root.iterdir() if path.is_dir())
    files = {name: found for name in folders if (found := find_images(root / name))}
    if not files:
        raise DataError(f"{root}: no folders with images; it needs one for each class")
    images: list[np.ndarray] = []
    labels: list[int] = []
    for label, paths in enumerate(files.values()):
        for path in paths:
            image = read_image(path, size, mode, fit)
            if images and image.shape != images[0].shape:
                raise DataError(f"{path}: shape {image.shape}, not {images[0].shape}; give a size")
            images.append(image)
            labels.append(label)
    classes = tuple(map(_text_of, files))
    return ImageSet(np.stack(images), np.array(labels, np.int64), classes, _text_of(root.name))


def _text_of(name: str) -> str:
    """Return a file's name as text, the same in every locale; bytes that are no UTF-8 escaped.

    Examples
    --------
    >>> print(_text_of("caf\\udce9"))
    caf\\xe9
    """
    return os.fsencode(name).decode("utf-8", "backslashreplace")
