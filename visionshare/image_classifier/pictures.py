"""Images of any kind as one array: their size, their colors and their range of values."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from visionshare.datasets import Preprocessing
from visionshare.datasets.canvas import to_gray
from visionshare.datasets.containers.formats import readable_formats
from visionshare.datasets.decoding import decode_picture, picture_header, upright_picture
from visionshare.datasets.folders import is_picture_name, read_image
from visionshare.datasets.notices import kinds_sentence
from visionshare.datasets.opening import open_picture
from visionshare.datasets.pictures.preparation import propose_preparation
from visionshare.datasets.pictures.value_ranges import range_around
from visionshare.errors import DataError, InputError

__all__ = ["LEAST_SIDE", "MOST_SIDE", "Intake", "as_array", "is_vectors"]

#: Larger pictures are shrunk to it where no size is given.
MOST_SIDE = 48
#: Images whose sides are all smaller are enlarged to it: layers of templates need room.
LEAST_SIDE = 16
_LARGEST = 4096
# Images that tell of what kind all are, at most.
_LOOKED_AT = 200
_BYTE, _FRACTION = (0.0, 255.0), (0.0, 1.0)
# Floats up to it may be fractions that something has overshot.
_OVERSHOT = 2.0
# What changes nothing, but says what is ink: it can be drawn, and alpha is laid on dark.
_LIGHT_INK = Preprocessing("light_on_dark")


def as_array(images: Any) -> Any:
    """Return what offers itself as an array, such as a tensor of another library, as one.

    Examples
    --------
    >>> as_array(["a.png"])
    ['a.png']
    """
    is_table = hasattr(images, "iloc") or hasattr(images, "toarray")
    return np.asarray(images) if hasattr(images, "__array__") and not is_table else images


def is_vectors(images: Any) -> bool:
    """Return whether examples are vectors: a table of numbers, a row each.

    Examples
    --------
    >>> is_vectors(np.zeros((5, 3))), is_vectors(np.zeros((5, 8, 8))), is_vectors(["a.png"])
    (True, False, False)
    """
    if hasattr(images, "toarray") or (hasattr(images, "iloc") and images.ndim == 2):
        return True
    if isinstance(images, np.ndarray):
        return images.ndim == 2 or (images.ndim < 2 and images.dtype.kind in "fiub")
    if not _is_list(images) or len(images) == 0:
        return False
    first = images[0]
    return not isinstance(first, (str, os.PathLike)) and np.ndim(first) < 2


@dataclass(frozen=True)
class Intake:
    """How images become one array of bytes.

    Attributes
    ----------
    size : tuple of int
        Height and width.
    n_channels : int
        Values of a pixel: 1 for gray images.
    values : tuple of float
        The lowest and the highest value of training; they become 0 and 255.
    preprocessing : Preprocessing
        What is done to pictures of different sizes and to files.
    kind : {"bytes", "whole", "other"}
        What numbers training had: bytes and pictures, whole numbers of other types, or others.

    Examples
    --------
    >>> intake = Intake.of([np.zeros((4, 6)), np.ones((4, 6))], size=(4, 6))
    >>> intake.values, intake.n_channels
    ((0.0, 1.0), 1)
    >>> intake.apply([np.full((8, 12), 0.5)]).shape
    (1, 4, 6)
    """

    size: tuple[int, int]
    n_channels: int
    values: tuple[float, float]
    preprocessing: Preprocessing
    # Those that were pickled before it was kept have this one.
    kind: str = "other"

    @property
    def mode(self) -> str:
        """Whether pictures are read as "gray" or in "color"."""
        return "color" if self.n_channels == 3 else "gray"

    @staticmethod
    def of(
        images: Any,
        size: int | tuple[int, int] | None = None,
        color: str | bool = "auto",
        least_side: int = LEAST_SIDE,
    ) -> Intake:
        """Return the intake that training images ask for.

        Arrays (n, H, W) or (n, H, W, C) are prepared already and only resized; of sequences of
        arrays and of paths,
        :func:`visionshare.datasets.pictures.preparation.propose_preparation` says what is done.

        Parameters
        ----------
        images : array or sequence
            (n, H, W) or (n, H, W, C), a sequence of such arrays of any sizes, or of paths.
        size : int or tuple of int, optional
            Height and width; their medians when omitted, shrunk to :data:`MOST_SIDE`.
        least_side : int, default :data:`LEAST_SIDE`
            Of arrays of one size: the longer side at least, where no size is given.
        color : {"auto", True, False}, default "auto"
            "auto" for color where images have some.

        Raises
        ------
        InputError
            If the images are of another kind, or the size or color is not accepted.
        DataError
            If a file cannot be read.
        """
        if color not in ("auto", True, False):
            raise InputError("color", color, "'auto', True or False")
        given = None if size is None else _given_size(size)
        listed = _listed(images)
        _check_kinds(listed)
        shapes = [_shape_of(entry) for entry in listed]
        counts = {shape[2] for shape in shapes}
        if len(counts - {1, 3}) > 0 and len(counts) > 1:
            raise InputError("images", f"{sorted(counts)} values a pixel", "gray and RGB, or one")
        if color is True and counts == {1}:
            raise InputError("color", True, "False or 'auto' for images without colors")
        sides = np.array([shape[:2] for shape in shapes])
        values, kind = _values(listed), _kind(listed)
        is_array = isinstance(listed, np.ndarray) and listed.dtype.kind in "fiub"
        if not is_array and counts <= {1, 3}:
            drawn = np.linspace(0, len(listed) - 1, min(_LOOKED_AT, len(listed))).astype(int)
            looked_at = [_looked_at(listed[int(i)], values) for i in drawn]
            asked = None if color == "auto" else bool(color)
            made = propose_preparation(
                looked_at, size=given, color=asked, sizes=sides, max_side=MOST_SIDE
            )
            n = 3 if made.mode == "color" else 1
            return Intake(made.size, n, values, made.preprocessing, kind)
        n = max(counts)
        if n == 3 and (color is False or (color == "auto" and not _have_color(np.asarray(listed)))):
            n = 1
        steps = _LIGHT_INK if n == 1 and _show_light_ink(listed, values) else Preprocessing()
        return Intake(given or _size(sides, least_side), n, values, steps, kind)

    def apply(self, images: Any) -> np.ndarray:
        """Return images (n, H, W) or (n, H, W, C), uint8.

        Raises
        ------
        InputError
            If an image is of another kind than those of training, or its values certainly are of
            another unit.
        DataError
            If a file cannot be read.
        """
        shape = self.size if self.n_channels == 1 else (*self.size, self.n_channels)
        listed = _listed(images)
        _check_kinds(listed)
        if isinstance(images, np.ndarray) and images.dtype == np.uint8 and images.ndim > 2:
            one = images[..., 0] if images.shape[3:] == (1,) else images
            as_is = self.values == _BYTE and self.preprocessing in (Preprocessing(), _LIGHT_INK)
            if one.shape[1:] == shape and as_is:
                return one
        arrays = _arrays(listed)
        self._check_unit(arrays)
        wide = [array.max() for array in arrays if array.dtype == np.uint16 and array.size]
        divisor = 257 if self.kind == "bytes" and max(wide, default=0) > 255 else 1
        out = np.empty((len(listed), *shape), np.uint8)
        for i, entry in enumerate(listed):
            out[i] = self._one(entry, divisor)
        return out

    def _check_unit(self, arrays: list[np.ndarray]) -> None:
        """Check that values are fractions where training had those, and bytes where it had bytes.

        An image that is black may be of any unit.
        """
        floats = [array for array in arrays if array.dtype.kind == "f" and array.size]
        highest = max((float(array.max()) for array in floats), default=0.0)
        if self.values == _FRACTION:
            whole = [array for array in arrays if array.dtype.kind in "iu" and array.size]
            most = max((float(array.max()) for array in whole), default=0.0)
            if highest > _OVERSHOT or most > 1:
                given = f"values up to {max(highest, most):g}"
                raise InputError("images", given, "values from 0 to 1, as in training")
        elif self.values == _BYTE and self.kind != "other" and highest <= 1:
            if all((array == np.rint(array)).all() for array in floats):
                return
            given = f"fractions up to {highest:g}"
            raise InputError("images", given, "values from 0 to 255, as in training")

    def _one(self, entry: Any, divisor: int = 1) -> np.ndarray:
        if isinstance(entry, (str, os.PathLike)):
            return read_image(entry, self.size, self.mode, self.preprocessing)
        if _is_picture(entry) and self.n_channels in (1, 3):
            pixels = decode_picture(entry, self.mode, self.preprocessing)
            return self.preprocessing.apply(pixels, self.size)
        image = np.asarray(entry)
        image = image // divisor if image.dtype == np.uint16 else image
        picture = _as_bytes(image, self.values)
        if picture.ndim == 3 and picture.shape[2] == 3 and self.n_channels == 1:
            picture = to_gray(picture)
        elif picture.ndim == 2 and self.n_channels == 3:
            picture = np.repeat(picture[..., None], 3, axis=2)
        if (1 if picture.ndim == 2 else picture.shape[2]) != self.n_channels:
            accepted = f"images of {self.n_channels} values a pixel, as in training"
            raise InputError("images", picture.shape, accepted)
        if picture.ndim == 2 or picture.shape[2] == 3:
            return self.preprocessing.apply(np.ascontiguousarray(picture), self.size)
        channels = [np.ascontiguousarray(picture[..., c]) for c in range(picture.shape[2])]
        return np.stack([self.preprocessing.apply(one, self.size) for one in channels], axis=2)


def _show_light_ink(images: Sequence[Any], values: tuple[float, float]) -> bool:
    """Return whether arrays of one value a pixel show light ink on plain dark paper."""
    drawn = np.linspace(0, len(images) - 1, min(_LOOKED_AT, len(images))).astype(int)
    looked_at = [_looked_at(images[int(i)], values) for i in drawn]
    return propose_preparation(looked_at).preprocessing.polarity == _LIGHT_INK.polarity


def _looked_at(entry: Any, values: tuple[float, float]) -> Any:
    if isinstance(entry, (str, os.PathLike)):
        return entry
    if _is_picture(entry):
        if entry.has_transparency_data:
            return np.asarray(entry.convert("RGBA"))
        return decode_picture(entry, "gray" if _shape_of_picture(entry)[2] == 1 else "color")
    return _as_bytes(np.asarray(entry), values)


def _is_picture(entry: Any) -> bool:
    """Return whether an entry is a picture of Pillow, whose values may be numbers of a palette."""
    from PIL import Image

    return isinstance(entry, Image.Image)


def _arrays(images: Sequence[Any]) -> list[np.ndarray]:
    """Return the numbers of entries that are neither paths nor pictures of Pillow."""
    if isinstance(images, np.ndarray) and images.dtype.kind in "fiub":
        return [images]
    entries = (e for e in images if not isinstance(e, (str, os.PathLike)) and not _is_picture(e))
    return [array for entry in entries if (array := np.asarray(entry)).dtype.kind in "fiub"]


def _is_list(images: Any) -> bool:
    return isinstance(images, Sequence) and not isinstance(images, (str, bytes))


def _listed(images: Any) -> Sequence[Any]:
    """Return images as something of a length whose entries are images or paths."""
    accepted = "(n, H, W) or (n, H, W, C), a list of images, or a list of paths"
    if isinstance(images, (str, bytes, os.PathLike)):
        raise InputError("images", str(images), f"{accepted}; for a folder: a list of its files")
    if hasattr(images, "tolist") and hasattr(images, "iloc"):
        # A column of a table.
        images = images.tolist()
    if isinstance(images, np.ndarray) and images.dtype != object and images.dtype.kind != "U":
        if images.ndim not in (3, 4) or images.dtype.kind not in "fiub":
            given = f"{images.dtype} of shape {images.shape}"
            raise InputError("images", given, accepted)
    elif not _is_list(images) and not isinstance(images, np.ndarray):
        raise InputError("images", type(images).__name__, accepted)
    if len(images) == 0:
        raise InputError("images", "none", "at least one image")
    return images


def _check_kinds(images: Sequence[Any]) -> None:
    """Refuse files of kinds that are not read, and say how many there are of each."""
    if isinstance(images, np.ndarray) and images.dtype.kind in "fiub":
        return
    paths = [os.fspath(entry) for entry in images if isinstance(entry, (str, os.PathLike))]
    others = [path for path in paths if not is_picture_name(path) and os.path.isfile(path)]
    # A picture may have any name.
    unread = [path for path in others if not _has_header(path)]
    if unread:
        kinds = kinds_sentence(os.path.splitext(path)[1].lower() or path for path in unread)
        accepted = ", ".join(format_.name for format_ in readable_formats())
        raise DataError(
            f"images: {kinds}; accepted: files of {accepted}. Leave the others out of the list, "
            "and their labels"
        )


def _has_header(path: str) -> bool:
    try:
        open_picture(path)
    except DataError:
        return False
    return True


def _shape_of(entry: Any) -> tuple[int, int, int]:
    """Return height, width and values a pixel of an image or of a picture file."""
    if isinstance(entry, (str, os.PathLike)):
        return _shape_of_file(entry)
    if _is_picture(entry):
        return _shape_of_picture(entry)
    image = np.asarray(entry)
    if image.ndim not in (2, 3) or image.dtype.kind not in "fiub" or 0 in image.shape:
        given = f"{image.dtype} of shape {image.shape}"
        raise InputError("images", given, "numbers of shape (H, W) or (H, W, C), or a path")
    return image.shape[0], image.shape[1], 1 if image.ndim == 2 else image.shape[2]


def _shape_of_file(path: str | os.PathLike[str]) -> tuple[int, int, int]:
    height, width, mode, _ = picture_header(path)
    return height, width, _values_of_mode(mode)


def _shape_of_picture(picture: Any) -> tuple[int, int, int]:
    width, height = upright_picture(picture).size
    return height, width, 3 if "transparency" in picture.info else _values_of_mode(picture.mode)


def _values_of_mode(mode: str) -> int:
    return 1 if mode in ("1", "L") or mode.startswith(("I", "F")) else 3


def _have_color(images: np.ndarray) -> bool:
    """Return whether one of some images has a pixel that is not gray."""
    some = images[:: max(1, len(images) // 500)].astype(np.float64)
    chroma = some.max(axis=3) - some.min(axis=3)
    return bool((chroma > 0.02 * max(1e-9, float(some.max()))).any())


def _size(sides: np.ndarray, least_side: int) -> tuple[int, int]:
    height, width = (float(v) for v in np.median(sides, axis=0))
    longer = max(height, width)
    factor = min(max(longer, least_side), MOST_SIDE) / longer
    return max(1, round(height * factor)), max(1, round(width * factor))


def _given_size(size: Any) -> tuple[int, int]:
    given = (size, size) if np.ndim(size) == 0 else tuple(size)
    whole = all(hasattr(v, "__index__") and not isinstance(v, bool) for v in given)
    if len(given) != 2 or not whole or not all(1 <= v <= _LARGEST for v in given):
        raise InputError("size", size, f"a side, or height and width, from 1 to {_LARGEST}")
    return int(given[0]), int(given[1])


def _values(images: Sequence[Any]) -> tuple[float, float]:
    """Return the range of values: that of bytes, of fractions, or what there is."""
    arrays = _arrays(images)
    if not arrays or all(array.dtype == np.uint8 for array in arrays):
        return _BYTE
    if all(array.dtype == bool for array in arrays):
        return _FRACTION
    low, high = min(float(a.min()) for a in arrays), max(float(a.max()) for a in arrays)
    if not (np.isfinite(low) and np.isfinite(high)):
        raise InputError("images", "NaN or infinity", "finite values")
    return range_around(low, high)


def _kind(images: Sequence[Any]) -> str:
    arrays = _arrays(images)
    if all(array.dtype == np.uint8 for array in arrays):
        return "bytes"
    return "whole" if all(array.dtype.kind in "iu" for array in arrays) else "other"


def _as_bytes(image: np.ndarray, values: tuple[float, float]) -> np.ndarray:
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
