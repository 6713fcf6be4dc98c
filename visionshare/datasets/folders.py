"""Folders of images: a class a folder, any size and mode."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from visionshare.datasets.imageset import ImageSet
from visionshare.errors import DataError, InputError

if TYPE_CHECKING:
    from PIL import Image

__all__ = ["EXTENSIONS", "find_images", "read_folder", "read_image", "read_images"]

EXTENSIONS = {".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp", ".pgm", ".ppm"}
_LARGEST = 1 << 26


def read_image(
    path: str | os.PathLike[str],
    size: tuple[int, int] | None = None,
    mode: str = "grey",
    fit: str = "resize",
    largest: int = _LARGEST,
    under: int = 0,
) -> np.ndarray:
    """Read one image; its EXIF orientation is respected.

    Parameters
    ----------
    path : path-like
    size : tuple of int, optional
        Height and width of the result; the image's own when omitted.
    mode : {"grey", "color"}, default "grey"
    fit : {"resize", "centre"}, default "resize"
        With a size: stretch to it, or shrink where needed and centre on a black canvas.
    largest : int
        Pixels that are accepted at most, checked before they are decoded.
    under : int, default 0
        Grey value that lies under transparent pixels.

    Returns
    -------
    ndarray of shape (H, W) or (H, W, 3), uint8

    Raises
    ------
    DataError
        If the file is no image, broken or too large.
    """
    import warnings

    from PIL import Image, ImageOps

    if mode not in ("grey", "color"):
        raise InputError("mode", mode, "'grey' or 'color'")
    if fit not in ("resize", "centre"):
        raise InputError("fit", fit, "'resize' or 'centre'")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with Image.open(path) as held:
                if held.width * held.height > largest:
                    raise DataError(f"{path}: {held.width}×{held.height} pixels are too many")
                upright: Image.Image = ImageOps.exif_transpose(held)
                if upright.mode in ("I;16", "I", "F"):
                    upright = _to_bytes(upright)
                elif "A" in upright.mode or "transparency" in upright.info:
                    upright = upright.convert("RGBA")
                    canvas = Image.new("RGBA", upright.size, (under, under, under, 255))
                    upright = Image.alpha_composite(canvas, upright)
                image = upright.convert("L" if mode == "grey" else "RGB")
    except DataError:
        raise
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError, EOFError) as error:
        raise DataError(f"{path}: cannot be read as an image ({error})") from None
    if size is not None and image.size != (size[1], size[0]):
        image = _fitted(image, size, fit)
    return np.asarray(image)


def _to_bytes(image: Image.Image) -> Image.Image:
    from PIL import Image

    values = np.asarray(image, np.float64)
    top = 65535.0 if values.max(initial=0) > 255 else 255.0
    return Image.fromarray(np.clip(values / top * 255, 0, 255).astype(np.uint8))


def _fitted(image: Image.Image, size: tuple[int, int], fit: str) -> Image.Image:
    from PIL import Image

    height, width = size
    if fit == "resize":
        return image.resize((width, height), Image.Resampling.BOX)
    ratio = min(1.0, height / image.height, width / image.width)
    inner = max(1, round(image.width * ratio)), max(1, round(image.height * ratio))
    canvas = Image.new(image.mode, (width, height))
    shrunk = image.resize(inner, Image.Resampling.BOX)
    canvas.paste(shrunk, ((width - inner[0]) // 2, (height - inner[1]) // 2))
    return canvas


def find_images(folder: str | os.PathLike[str]) -> list[Path]:
    """Return the image files below a folder, sorted by path."""
    root = Path(folder)
    return sorted(p for p in root.rglob("*") if p.suffix.lower() in EXTENSIONS and p.is_file())


def read_images(
    paths: Sequence[str | os.PathLike[str]],
    size: tuple[int, int],
    mode: str = "grey",
    fit: str = "resize",
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
        Threads that decode.
    broken : list of str, optional
        Where to note images that cannot be read; they are then left out.

    Raises
    ------
    DataError
        If an image cannot be read and ``broken`` is not given.
    """
    from concurrent.futures import ThreadPoolExecutor

    def one(path: str | os.PathLike[str]) -> np.ndarray | DataError:
        try:
            return read_image(path, size, mode, fit)
        except DataError as error:
            return error

    with ThreadPoolExecutor(n_jobs) as threads:
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
    mode: str = "grey",
    fit: str = "resize",
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
        If there are no images, an image is broken, or sizes differ and none is given.
    """
    root = Path(folder)
    classes = sorted(p.name for p in root.iterdir() if p.is_dir() and find_images(p))
    if not classes:
        raise DataError(f"{root}: no folders with images (a folder for each class is wanted)")
    images: list[np.ndarray] = []
    labels: list[int] = []
    for label, name in enumerate(classes):
        for path in find_images(root / name):
            image = read_image(path, size, mode, fit)
            if images and image.shape != images[0].shape:
                raise DataError(f"{path}: shape {image.shape}, not {images[0].shape}; give a size")
            images.append(image)
            labels.append(label)
    return ImageSet(np.stack(images), np.array(labels, np.int64), tuple(classes), root.name)
