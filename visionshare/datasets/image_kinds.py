"""Images of any kind: arrays, lists of arrays, paths, pictures of Pillow; and what is no image."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from visionshare.datasets.containers.formats import readable_formats
from visionshare.datasets.folders import is_picture_name
from visionshare.datasets.notices import kinds_sentence
from visionshare.datasets.opening import open_picture
from visionshare.errors import DataError, InputError

_BYTE = (0.0, 255.0)
_ACCEPTED = "(n, H, W) or (n, H, W, C), a list of images, or a list of paths"


def check_channels_last(shape: tuple[int, ...], n_channels: int | None = None) -> None:
    """Refuse images that have their channels before their rows, as far as shapes tell."""
    if len(shape) < 3:
        return
    first, rows, last = shape[-3:]
    if last in (1, 3, n_channels):
        return
    if n_channels is not None:
        is_first = first in (1, 3, n_channels)
    else:
        # Of 1 or 3 channels, or of few where both sides are long.
        is_long = min(rows, last) >= max(8, 2 * first)
        is_first = last > 4 and (first in (1, 3) or (first <= 8 and is_long))
    if is_first:
        axes = "(0, 2, 3, 1)" if len(shape) == 4 else "(1, 2, 0)"
        accepted = f"channels last, (n, H, W, C): transpose{axes} brings them there"
        raise InputError("images", f"shape {tuple(shape)}", accepted)


def as_array(images: Any) -> Any:
    """Return what offers itself as an array, such as a tensor of another library, as one."""
    if isinstance(images, np.ndarray):
        return images
    is_table = hasattr(images, "iloc") or hasattr(images, "toarray")
    return np.asarray(images) if hasattr(images, "__array__") and not is_table else images


def is_vectors(images: Any) -> bool:
    """Return whether examples are vectors: a table of numbers, a row each."""
    if hasattr(images, "toarray") or (hasattr(images, "iloc") and images.ndim == 2):
        return True
    if isinstance(images, np.ndarray):
        return images.ndim == 2 or (images.ndim < 2 and images.dtype.kind in "fiub")
    if not _is_list(images) or len(images) == 0:
        return False
    first = images[0]
    return not isinstance(first, (str, os.PathLike)) and np.ndim(first) < 2


def is_picture(entry: Any) -> bool:
    """Return whether an entry is a picture of Pillow."""
    # Whose values may be numbers of a palette.
    from PIL import Image

    return isinstance(entry, Image.Image)


def numeric_arrays(images: Sequence[Any]) -> list[np.ndarray]:
    """Return the numbers of entries that are neither paths nor pictures of Pillow."""
    if isinstance(images, np.ndarray) and images.dtype.kind in "fiub":
        return [images]
    entries = (e for e in images if not isinstance(e, (str, os.PathLike)) and not is_picture(e))
    return [array for entry in entries if (array := np.asarray(entry)).dtype.kind in "fiub"]


def listed_images(images: Any) -> Sequence[Any]:
    """Return images as something of a length whose entries are images or paths."""
    images = as_array(images)
    if isinstance(images, (str, bytes, os.PathLike)):
        raise InputError("images", str(images), f"{_ACCEPTED}; for a folder: a list of its files")
    if hasattr(images, "tolist") and hasattr(images, "iloc"):
        # A column of a table.
        images = images.tolist()
    if isinstance(images, np.ndarray) and images.dtype != object and images.dtype.kind != "U":
        if images.ndim not in (3, 4) or images.dtype.kind not in "fiub":
            given = f"{images.dtype} of shape {images.shape}"
            raise InputError("images", given, _ACCEPTED)
    elif not _is_list(images) and not isinstance(images, np.ndarray):
        raise InputError("images", type(images).__name__, _ACCEPTED)
    if len(images) == 0:
        raise InputError("images", "none", "at least one image")
    _check_files(images)
    return images


def to_bytes(image: np.ndarray, values: tuple[float, float]) -> np.ndarray:
    """Return the bytes of one image, (H, W) or (H, W, C), by the values that become 0 and 255."""
    if image.dtype.kind not in "fiub" or image.ndim not in (2, 3) or 0 in image.shape:
        given = f"{image.dtype} of shape {image.shape}"
        raise InputError("images", given, "numbers of shape (H, W) or (H, W, C), or a path")
    if image.ndim == 3 and image.shape[2] == 1:
        image = image[..., 0]
    if image.dtype == np.uint8 and values == _BYTE:
        return image
    if image.dtype == bool:
        return np.where(image, np.uint8(255), np.uint8(0))
    low, high = values
    scaled = (image.astype(np.float64) - low) * (255 / (high - low))
    if not np.isfinite(scaled).all():
        raise InputError("images", "NaN or infinity", "finite values")
    return np.rint(np.clip(scaled, 0, 255)).astype(np.uint8)


def _is_list(images: Any) -> bool:
    return isinstance(images, Sequence) and not isinstance(images, (str, bytes))


def _check_files(images: Sequence[Any]) -> None:
    """Refuse files of kinds that are not read, and say how many there are of each."""
    if isinstance(images, np.ndarray) and images.dtype.kind in "fiub":
        return
    paths = [os.fspath(entry) for entry in images if isinstance(entry, (str, os.PathLike))]
    others = [path for path in paths if not is_picture_name(path) and os.path.isfile(path)]
    # A picture may have any name.
    unread = []
    for path in others:
        try:
            open_picture(path)
        except DataError:
            unread.append(path)
    if unread:
        kinds = kinds_sentence(os.path.splitext(path)[1].lower() or path for path in unread)
        accepted = ", ".join(format_.name for format_ in readable_formats())
        raise DataError(
            f"images: {kinds}; accepted: files of {accepted}. Leave the others out of the list, "
            "and their labels"
        )
