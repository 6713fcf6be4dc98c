"""From a picture to the raster that a classifier takes: the steps, as plain values."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import numpy as np

from visionshare.datasets.canvas import (
    CENTERS,
    Box,
    Placement,
    array_of,
    border_of,
    box_of,
    box_size,
    image_of,
    on_canvas,
    to_gray,
)
from visionshare.datasets.characters import (
    ink_alone,
    normalize_character,
    place_character,
    without_specks,
)
from visionshare.datasets.checks import check_choice
from visionshare.datasets.ink import find_ink
from visionshare.datasets.whole_preparation import WholeSteps, prepared, whole_threshold
from visionshare.errors import InputError

POLARITIES = ("as_is", "light_on_dark", "dark_on_light", "automatic")
FITS = ("resize", "center", "box", "character")
_CHOICES: dict[str, tuple[Any, ...]] = {
    "polarity": POLARITIES,
    "fit": FITS,
    "center": CENTERS,
    "ground": ("ink", "black", "white"),
    "arithmetic": ("float", "whole"),
    "contrast": (True, False),
    "crop": (True, False, "located"),
}
_MAX_SIDE = 4096


@dataclass(frozen=True)
class Preprocessing:
    """The steps from a picture file to the image that a classifier takes.

    The steps are done in the order of the parameters. Without any, a picture is stretched to
    the size that is asked for.

    Parameters
    ----------
    polarity : {"as_is", "light_on_dark", "dark_on_light", "automatic"}, default "as_is"
        What pictures show. Ink becomes light on dark; "automatic" takes the median of a
        picture's border for paper and what differs most from it for ink. "as_is" changes
        nothing and knows nothing of ink.
    contrast : bool, default False
        Paper, the median of the border, becomes 0, and the lightest ink 255.
    crop : bool or "located", default False
        Cut to the smallest box that holds all ink; or, in whole numbers, to that of the largest
        connected ink that touches no border and of what belongs to it. Specks, shadows and edges
        are left out, and a picture that shows nothing else becomes black.
    threshold : float, default 0.3
        Ink is lighter than this fraction of the way from paper to the lightest value.
    fit : {"resize", "center", "box", "character"}, default "resize"
        Stretch to the size; or shrink where needed and center on a black canvas; or enlarge or
        shrink, keeping the aspect ratio, to a box on a black canvas. "character" does to one
        printed character what a reader of pages does: its ink is told from paper by a local
        threshold, stretched in contrast, cut out, and brought to a box on a black canvas; see
        :func:`visionshare.datasets.characters.normalize_character`.
    margin : int or float, default 0
        Pixels between the box and each side of the canvas; a float is a share of the canvas's
        shorter side, the same for every size.
    center : {"box", "mass"}, default "box"
        What lies in the middle of the canvas: the box's middle, or the ink's center of mass.
    ground : {"ink", "black", "white"}, default "ink"
        On what transparent pixels are laid; "ink" is white below dark ink, so that it shows, and
        black below light ink.
    arithmetic : {"float", "whole"}, default "float"
        Whether numbers on the way are floats, or whole numbers alone. The rasters look the same
        and differ in single values; those in whole numbers are what exported C computes on a
        small core, to the bit. Not for the fit "character".
    values : tuple of float, optional
        What becomes 0 and 255 in files of floats or of integers of 32 bits. Training takes it
        from all of its pictures; without it each picture goes by its own range.

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
    crop: bool | str = False
    threshold: float = 0.3
    fit: str = "resize"
    margin: int | float = 0
    center: str = "box"
    ground: str = "ink"
    arithmetic: str = "float"
    values: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        for name, known in _CHOICES.items():
            check_choice(name, getattr(self, name), known)
        if not isinstance(self.threshold, (int, float)) or not 0 < self.threshold < 1:
            raise InputError("threshold", self.threshold, "a number between 0 and 1")
        is_share = type(self.margin) is float and 0 <= self.margin < 0.5
        if not is_share and (type(self.margin) is not int or not 0 <= self.margin <= _MAX_SIDE):
            accepted = f"a number of pixels from 0 to {_MAX_SIDE}, or a share (a float) below 0.5"
            raise InputError("margin", self.margin, accepted)
        if self.values is not None:
            object.__setattr__(self, "values", _given_range(self.values))
        self._check_together()

    def _check_together(self) -> None:
        """See that no step is given that another one leaves without a meaning."""
        for name in ("contrast", "crop"):
            if self.polarity == "as_is" and getattr(self, name):
                raise InputError(name, True, "False where polarity is 'as_is': what is ink?")
            if self.fit == "character" and getattr(self, name):
                raise InputError(name, True, "False where fit is 'character', which does it")
        if self.polarity == "as_is" and self.fit == "character":
            raise InputError("fit", self.fit, "another fit where polarity is 'as_is'")
        if self.crop == "located" and self.arithmetic != "whole":
            raise InputError("crop", self.crop, "True or False unless arithmetic is 'whole'")
        if self.arithmetic == "whole" and self.fit == "character":
            raise InputError("fit", self.fit, "another fit where arithmetic is 'whole'")
        if self.fit not in ("box", "character"):
            for name, default in (("margin", 0), ("center", "box")):
                if getattr(self, name) != default:
                    accepted = f"{default!r} unless fit is 'box' or 'character'"
                    raise InputError(name, getattr(self, name), accepted)

    @staticmethod
    def from_values(values: Any) -> Preprocessing:
        """Return the steps of :meth:`to_values`."""
        names = [field.name for field in fields(Preprocessing)]
        if not isinstance(values, Mapping) or not set(values) <= set(names):
            given = sorted(map(str, values)) if isinstance(values, Mapping) else values
            raise InputError("preprocessing", given, f"a table of {', '.join(names)}")
        return Preprocessing(**values)

    def to_values(self) -> dict[str, Any]:
        """Return plain values that JSON and TOML hold.

        What transparent pixels are laid on, the arithmetic and the range of values are left out
        where they are the default: versions that do not know of them read the rest.
        """
        values = asdict(self)
        for name, default in (("ground", "ink"), ("arithmetic", "float"), ("values", None)):
            if values[name] == default:
                del values[name]
        if self.values is not None:
            values["values"] = list(self.values)
        return values

    def whole_steps(self, size: tuple[int, int] | None) -> WholeSteps:
        """Return the steps to rasters of a size in whole numbers."""
        return WholeSteps(
            self.polarity, self.contrast, self.crop, whole_threshold(self.threshold), self.fit,
            0 if size is None else self.margin_in(size), self.center,
        )  # fmt: skip

    def margin_in(self, size: tuple[int, int]) -> int:
        """Return the margin's pixels in images of this height and width."""
        share = isinstance(self.margin, float)
        return round(self.margin * min(size)) if share else int(self.margin)

    def describe(self, mode: str = "gray") -> list[str]:
        """Return all that is done to a picture in words, from the first step to the last."""
        by_ink = {"dark_on_light": "white", "light_on_dark": "black"}
        paper = by_ink.get(self.polarity, "black (on white if its ink is dark)")
        texts = [
            "turned upright",
            f"laid, where it is transparent, on {paper if self.ground == 'ink' else self.ground}",
            "made gray (0.299 R + 0.587 G + 0.114 B)" if mode == "gray" else "made RGB",
        ]
        texts += _POLARITY_IN_WORDS[self.polarity]
        if self.contrast:
            texts.append("stretched in contrast: paper becomes 0, the lightest ink 255")
        if self.crop:
            what = "its ink" if self.crop is True else "its largest connected ink inside"
            texts.append(
                f"cut to the box of {what}, which is lighter than "
                f"{self.threshold:g} of the way from paper to the lightest value"
            )
        if self.fit == "character":
            texts.append("rid of all but its ink, told from paper by a local threshold (Sauvola)")
            texts.append("stretched in contrast, so that a quarter of the ink or more is white")
        mean = "each pixel the mean of the area that it covers"
        if self.fit == "resize":
            texts.append(f"stretched to the image's size, {mean}")
        elif self.fit == "center":
            texts.append(f"shrunk where it is larger ({mean}) and centered on black")
        else:
            unit = "of its shorter side" if isinstance(self.margin, float) else "pixel(s)"
            room = f" {self.margin} {unit} inside the image's sides" if self.margin else ""
            middle = "the ink's center of mass" if self.center == "mass" else "its middle"
            texts.append(
                f"brought to the largest box{room} that keeps its aspect ratio, {mean} "
                f"(interpolated where it grows), {middle} in the middle of a black canvas"
            )
        if self.arithmetic == "whole":
            texts.append("all that in whole numbers, halves rounded up")
        return texts

    def apply(self, picture: np.ndarray, size: tuple[int, int] | None = None) -> np.ndarray:
        """Return the raster of a picture.

        Parameters
        ----------
        picture : ndarray of shape (H, W) or (H, W, 3), uint8
        size : tuple of int, optional
            Height and width of the raster; what the steps leave when omitted.
        """
        return self.place(picture, size)[0]

    def place(
        self, picture: np.ndarray, size: tuple[int, int] | None = None
    ) -> tuple[np.ndarray, Placement]:
        """Return the raster of a picture, and where it lies in the picture.

        Examples
        --------
        >>> picture = np.zeros((40, 60), np.uint8)
        >>> picture[10:30, 20:24] = 200
        >>> steps = Preprocessing("light_on_dark", crop=True, fit="box", margin=1)
        >>> steps.place(picture, (7, 5))[1]
        Placement(part=(10, 30, 20, 24), place=(1, 6, 2, 3))
        """
        picture = np.asarray(picture)
        is_picture = picture.ndim == 2 or (picture.ndim == 3 and picture.shape[2] == 3)
        if picture.dtype != np.uint8 or not is_picture or 0 in picture.shape:
            given = f"{picture.dtype} of shape {picture.shape}"
            raise InputError("picture", given, "bytes of shape (H, W) or (H, W, 3)")
        if size is not None:
            self.check_size(size)
        if self.fit == "character":
            return self._character(picture, size)
        if self.arithmetic == "whole":
            raster, shown, place = prepared(picture, size, self.whole_steps(size))
            return raster, Placement(shown, place)
        part = (0, picture.shape[0], 0, picture.shape[1])
        if self.polarity != "as_is":
            picture, part = self._ink(picture)
        if size is None:
            return picture, Placement(part, (0, part[1] - part[0], 0, part[3] - part[2]))
        raster, place = self._fitted(picture, size)
        return raster, Placement(part, place)

    def apply_to_ink(
        self, darkness: np.ndarray, mask: np.ndarray, size: tuple[int, int]
    ) -> np.ndarray:
        """Return the raster of a character whose ink was found on a page."""
        if self.polarity == "as_is":
            raise InputError("polarity", self.polarity, "one that says what is ink")
        self.check_size(size)
        if self.fit == "character":
            return normalize_character(darkness, mask, size, self.margin_in(size), self.center)
        # A border of paper around the ink, which the steps look for.
        picture = np.pad(ink_alone(darkness, mask), 1)
        return replace(self, polarity="light_on_dark").apply(picture, size)

    def check_size(self, size: tuple[int, int]) -> None:
        """See that the margin leaves room in images of this height and width."""
        if 2 * self.margin_in(size) >= min(size):
            raise InputError("margin", self.margin, f"less than half of each side of {size}")

    def _is_dark_on_light(self, gray: np.ndarray) -> bool:
        if self.polarity == "automatic":
            paper = _paper(gray)
            return float(gray.max()) - paper < paper - float(gray.min())
        return self.polarity == "dark_on_light"

    def _character(
        self, picture: np.ndarray, size: tuple[int, int] | None
    ) -> tuple[np.ndarray, Placement]:
        """Return the raster of a picture of one character; without a size, cut to its box."""
        gray = to_gray(picture)
        ink = find_ink(gray, light_on_dark=not self._is_dark_on_light(gray))
        mask = without_specks(ink.mask)
        if size is None:
            raster = ink_alone(ink.darkness, mask)
            height, width = raster.shape
            part = box_of(mask) if mask.any() else (0, 1, 0, 1)
            placement = Placement(part, (0, height, 0, width))
        else:
            margin = self.margin_in(size)
            raster, placement = place_character(ink.darkness, mask, size, margin, self.center)
        # Ink is gray: a raster of colors has it in each channel.
        colored = raster if picture.ndim == 2 else np.repeat(raster[..., None], 3, axis=2)
        return colored, placement

    def _ink(self, picture: np.ndarray) -> tuple[np.ndarray, Box]:
        """Return the picture with light ink on dark paper, stretched and cut; and its box."""
        part = (0, picture.shape[0], 0, picture.shape[1])
        gray = to_gray(picture)
        if self._is_dark_on_light(gray):
            picture = 255 - picture
            gray = 255 - gray
        if not (self.contrast or self.crop):
            return picture, part
        paper = _paper(gray)
        lightest = float(gray.max())
        if lightest <= paper:
            # Nothing but paper.
            return (np.zeros_like(picture) if self.contrast else picture), part
        if self.crop:
            level = paper + self.threshold * (lightest - paper)
            # The lightest is ink, whatever rounding makes of a threshold next to 1.
            part = box_of((gray > level) | (gray == lightest))
            picture = picture[part[0] : part[1], part[2] : part[3]]
        if self.contrast:
            # Every value there is, once: pictures have millions of pixels.
            steps = (np.arange(256) - paper) * 255 / (lightest - paper)
            picture = np.rint(np.clip(steps, 0, 255)).astype(np.uint8)[picture]
        return picture, part

    def _fitted(self, picture: np.ndarray, size: tuple[int, int]) -> tuple[np.ndarray, Box]:
        """Return the raster of a picture, and where it lies there."""
        whole = (0, size[0], 0, size[1])
        if picture.shape[:2] == size and self.margin == 0 and self.center == "box":
            return picture, whole
        if self.fit == "resize":
            return _resized(picture, size), whole
        box, scale = box_size(picture.shape, size, self.margin_in(size))
        if self.fit == "center" and scale > 1:
            box = (picture.shape[0], picture.shape[1])
            scale = 1.0
        resized = _resized(picture, box, smooth=scale > 1)
        return on_canvas(resized, size, self.center)


# What `visionshare read` does to characters, and what those rendered from fonts come through.
PRINTED = Preprocessing("automatic", fit="character", margin=3)
PRINTED_SIZE = (28, 28)

_POLARITY_IN_WORDS: dict[str, list[str]] = {
    "as_is": [],
    "light_on_dark": [],
    "dark_on_light": ["inverted: dark ink becomes light"],
    "automatic": [
        "inverted where the median of its border (paper) is nearer to its lightest value "
        "than to its darkest: ink becomes light on dark"
    ],
}


def _given_range(values: Any) -> tuple[float, float]:
    """Return a range of values, once it is one."""
    try:
        low, high = map(float, values)
    except (TypeError, ValueError):
        low = high = 0.0
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise InputError("values", values, "two finite numbers, the lower one first")
    return low, high


def _paper(gray: np.ndarray) -> float:
    """Return the median of the border."""
    return float(np.median(border_of(gray)))


def _resized(picture: np.ndarray, size: tuple[int, int], smooth: bool = False) -> np.ndarray:
    """Return the picture in another size: means of areas, or interpolated where it is smooth."""
    from PIL import Image

    if picture.shape[:2] == size:
        return picture
    method = Image.Resampling.BILINEAR if smooth else Image.Resampling.BOX
    return array_of(image_of(picture).resize((size[1], size[0]), method))
