"""From a picture to the raster that a classifier takes: the steps, as plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np

from visionshare.errors import InputError

__all__ = ["CENTERS", "FITS", "POLARITIES", "Preprocessing"]

POLARITIES = ("as_is", "light_on_dark", "dark_on_light", "automatic")
FITS = ("resize", "center", "box")
CENTERS = ("box", "mass")
_LARGEST_SIDE = 4096


@dataclass(frozen=True)
class Preprocessing:
    """How a picture becomes the raster that a classifier takes.

    The steps are done in the order of the parameters. Without any, a picture is stretched to
    the size that is wanted.

    Parameters
    ----------
    polarity : {"as_is", "light_on_dark", "dark_on_light", "automatic"}, default "as_is"
        What pictures show. Ink becomes light on dark; "automatic" takes the median of a
        picture's border for paper and what differs most from it for ink. "as_is" changes
        nothing and knows nothing of ink.
    contrast : bool, default False
        Paper, the median of the border, becomes 0, and the lightest ink 255.
    crop : bool, default False
        Cut to the smallest box that holds all ink.
    threshold : float, default 0.3
        Ink is lighter than this share of the way from paper to the lightest value.
    fit : {"resize", "center", "box"}, default "resize"
        Stretch to the size; or shrink where needed and center on a black canvas; or enlarge or
        shrink, keeping the aspect ratio, to a box on a black canvas.
    margin : int, default 0
        Pixels between the box and each side of the canvas.
    center : {"box", "mass"}, default "box"
        What lies in the middle of the canvas: the box's middle, or the ink's center of mass.

    Raises
    ------
    InputError
        If a value is not accepted, or two do not go together.

    Notes
    -----
    Pixels are means of the areas that they cover where a picture shrinks, and interpolated
    where it grows. MNIST was made with a box of margin 4, centered by mass: Y. LeCun, L. Bottou,
    Y. Bengio, P. Haffner, Gradient-based learning applied to document recognition, 1998, III.A.

    Examples
    --------
    >>> picture = np.full((40, 60), 200, np.uint8)
    >>> picture[10:30, 20:24] = 30
    >>> steps = Preprocessing("automatic", contrast=True, crop=True, fit="box", margin=1)
    >>> steps.apply(picture, (7, 5))
    array([[  0,   0,   0,   0,   0],
           [  0,   0, 255,   0,   0],
           [  0,   0, 255,   0,   0],
           [  0,   0, 255,   0,   0],
           [  0,   0, 255,   0,   0],
           [  0,   0, 255,   0,   0],
           [  0,   0,   0,   0,   0]], dtype=uint8)
    """

    polarity: str = "as_is"
    contrast: bool = False
    crop: bool = False
    threshold: float = 0.3
    fit: str = "resize"
    margin: int = 0
    center: str = "box"

    def __post_init__(self) -> None:
        for name, known in (("polarity", POLARITIES), ("fit", FITS), ("center", CENTERS)):
            given = getattr(self, name)
            if not isinstance(given, str) or given not in known:
                raise InputError(name, given, ", ".join(map(repr, known)))
        for name in ("contrast", "crop"):
            if not isinstance(getattr(self, name), bool):
                raise InputError(name, getattr(self, name), "True or False")
        if not isinstance(self.threshold, (int, float)) or not 0 < self.threshold < 1:
            raise InputError("threshold", self.threshold, "a number between 0 and 1")
        if type(self.margin) is not int or not 0 <= self.margin <= _LARGEST_SIDE:
            raise InputError("margin", self.margin, f"a number of pixels from 0 to {_LARGEST_SIDE}")
        if self.polarity == "as_is":
            for name in ("contrast", "crop"):
                if getattr(self, name):
                    raise InputError(name, True, "False where polarity is 'as_is': what is ink?")
        if self.fit != "box":
            for name, default in (("margin", 0), ("center", "box")):
                if getattr(self, name) != default:
                    raise InputError(name, getattr(self, name), f"{default!r} unless fit is 'box'")

    @staticmethod
    def from_values(values: Any) -> Preprocessing:
        """Return the steps of :meth:`to_values`.

        Raises
        ------
        InputError
            If they are no steps, or hold one that this library does not know.
        """
        names = [field.name for field in fields(Preprocessing)]
        if not isinstance(values, Mapping) or not set(values) <= set(names):
            given = sorted(map(str, values)) if isinstance(values, Mapping) else values
            raise InputError("preprocessing", given, f"a table of {', '.join(names)}")
        return Preprocessing(**values)

    def to_values(self) -> dict[str, Any]:
        """Return plain values that JSON and TOML hold."""
        return asdict(self)

    def describe(self, mode: str = "gray") -> list[str]:
        """Return all that is done to a picture in words, from the first step to the last."""
        paper = {"dark_on_light": "white", "automatic": "black (on white if its ink is dark)"}
        said = [
            "turned upright",
            f"laid, where it is transparent, on {paper.get(self.polarity, 'black')}",
            "made gray (0.299 R + 0.587 G + 0.114 B)" if mode == "gray" else "made RGB",
        ]
        said += {
            "as_is": [],
            "light_on_dark": [],
            "dark_on_light": ["inverted: dark ink becomes light"],
            "automatic": [
                "inverted where the median of its border (paper) is nearer to its lightest value "
                "than to its darkest: ink becomes light on dark"
            ],
        }[self.polarity]
        if self.contrast:
            said.append("stretched in contrast: paper becomes 0, the lightest ink 255")
        if self.crop:
            said.append(
                "cut to the box of its ink, which is lighter than "
                f"{self.threshold:g} of the way from paper to the lightest value"
            )
        mean = "each pixel the mean of the area that it covers"
        if self.fit == "resize":
            said.append(f"stretched to the image's size, {mean}")
        elif self.fit == "center":
            said.append(f"shrunk where it is larger ({mean}) and centered on black")
        else:
            room = f" {self.margin} pixel(s) inside the image's sides" if self.margin else ""
            middle = "the ink's center of mass" if self.center == "mass" else "its middle"
            said.append(
                f"brought to the largest box{room} that keeps its aspect ratio, {mean} "
                f"(interpolated where it grows), {middle} in the middle of a black canvas"
            )
        return said

    def apply(self, picture: np.ndarray, size: tuple[int, int] | None = None) -> np.ndarray:
        """Return the raster of a picture.

        Parameters
        ----------
        picture : ndarray of shape (H, W) or (H, W, 3), uint8
        size : tuple of int, optional
            Height and width of the raster; what the steps leave when omitted.

        Returns
        -------
        ndarray of shape (height, width) or (height, width, 3), uint8

        Raises
        ------
        InputError
            If the picture is no such array, or the margin leaves no room.
        """
        picture = np.asarray(picture)
        sound = picture.ndim == 2 or (picture.ndim == 3 and picture.shape[2] == 3)
        if picture.dtype != np.uint8 or not sound or 0 in picture.shape:
            given = f"{picture.dtype} of shape {picture.shape}"
            raise InputError("picture", given, "bytes of shape (H, W) or (H, W, 3)")
        if size is not None:
            self.check_size(size)
        if self.polarity != "as_is":
            picture = self._ink(picture)
        return picture if size is None else self._fitted(picture, size)

    def check_size(self, size: tuple[int, int]) -> None:
        """See that the margin leaves room in images of this height and width.

        Raises
        ------
        InputError
            If it does not.
        """
        if 2 * self.margin >= min(size):
            raise InputError("margin", self.margin, f"less than half of each side of {size}")

    def _ink(self, picture: np.ndarray) -> np.ndarray:
        """Return the picture with light ink on dark paper, stretched and cut."""
        gray = _gray(picture)
        invert = self.polarity == "dark_on_light"
        if self.polarity == "automatic":
            paper = _paper(gray)
            invert = float(gray.max()) - paper < paper - float(gray.min())
        if invert:
            picture, gray = 255 - picture, 255 - gray
        if not (self.contrast or self.crop):
            return picture
        paper, lightest = _paper(gray), float(gray.max())
        if lightest <= paper:
            # Nothing but paper.
            return np.zeros_like(picture) if self.contrast else picture
        if self.crop:
            level = paper + self.threshold * (lightest - paper)
            # The lightest is ink, whatever rounding makes of a threshold next to 1.
            ink = (gray > level) | (gray == lightest)
            rows, columns = (_extent(ink, axis) for axis in (0, 1))
            picture = picture[rows, columns]
        if self.contrast:
            # Every value there is, once: pictures have millions of pixels.
            steps = (np.arange(256) - paper) * 255 / (lightest - paper)
            picture = np.rint(np.clip(steps, 0, 255)).astype(np.uint8)[picture]
        return picture

    def _fitted(self, picture: np.ndarray, size: tuple[int, int]) -> np.ndarray:
        if picture.shape[:2] == size and self.margin == 0 and self.center == "box":
            return picture
        if self.fit == "resize":
            return _resized(picture, size)
        inner = [side - 2 * self.margin for side in size]
        ratio = min(a / b for a, b in zip(inner, picture.shape[:2], strict=True))
        if self.fit == "center":
            ratio = min(1.0, ratio)
        height, width = (max(1, round(side * ratio)) for side in picture.shape[:2])
        shrunk = _resized(picture, (height, width), smooth=ratio > 1)
        canvas = np.zeros((*size, *picture.shape[2:]), np.uint8)
        y, x = (size[0] - height) // 2, (size[1] - width) // 2
        if self.center == "mass":
            y, x = _mass_places(shrunk, size)
        canvas[y : y + height, x : x + width] = shrunk
        return canvas


def _gray(picture: np.ndarray) -> np.ndarray:
    from PIL import Image

    return picture if picture.ndim == 2 else np.asarray(Image.fromarray(picture).convert("L"))


def _paper(gray: np.ndarray) -> float:
    """Return the median of the border."""
    sides = (gray[0], gray[-1], gray[1:-1, 0], gray[1:-1, -1])
    return float(np.median(np.concatenate(sides)))


def _extent(marked: np.ndarray, axis: int) -> slice:
    """Return the places along an axis from the first to the last that is marked."""
    found = np.flatnonzero(marked.any(axis=1 - axis))
    return slice(int(found[0]), int(found[-1]) + 1)


def _resized(picture: np.ndarray, size: tuple[int, int], smooth: bool = False) -> np.ndarray:
    """Return the picture in another size: means of areas, or interpolated where it is smooth."""
    from PIL import Image

    if picture.shape[:2] == size:
        return picture
    way = Image.Resampling.BILINEAR if smooth else Image.Resampling.BOX
    return np.asarray(Image.fromarray(picture).resize((size[1], size[0]), way))


def _mass_places(shrunk: np.ndarray, size: tuple[int, int]) -> tuple[int, int]:
    """Return where a box must begin for its center of mass to be in the middle, within a canvas."""
    weights = _gray(shrunk).astype(np.float64)
    total = weights.sum()
    if total == 0:
        weights, total = np.ones_like(weights), float(weights.size)
    places = []
    for axis, side in enumerate(size):
        length = weights.shape[axis]
        mean = float(weights.sum(axis=1 - axis) @ np.arange(length) / total)
        places.append(min(max(round((side - 1) / 2 - mean), 0), side - length))
    return places[0], places[1]
