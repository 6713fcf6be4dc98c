"""How pictures should be prepared: looked at, proposed, and said in sentences."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np

from visionshare.datasets.canvas import border_of, box_of, to_gray
from visionshare.datasets.decoding import decode_array, decode_image
from visionshare.datasets.opening import open_picture
from visionshare.datasets.pictures.reading import read_pictures
from visionshare.datasets.pictures.survey import median_size
from visionshare.datasets.pictures.value_ranges import SetRange
from visionshare.datasets.preprocessing import Preprocessing
from visionshare.datasets.readers.picture_set import Content, PictureSet
from visionshare.errors import DataError, InputError

Pictures: TypeAlias = "PictureSet | Sequence[np.ndarray | str | os.PathLike[str]] | np.ndarray"
# Pictures that are looked at, drawn evenly.
_LOOKED_AT = 200
# Sides of images that are proposed; what is cut out gets at most the middle one.
_LARGEST = 64
_LARGEST_CUT = 32
_SMALLEST = 16
# Channels that differ by this much in a hundredth of the pixels are a color; pictures are in color
# where a twentieth of them is.
_CHROMA = 24
_COLORED_PIXELS = 0.01
_COLORED_PICTURES = 0.05
# Paper: so much of a border is near its median in most pictures, and so is this much of all pixels.
_NEAR = 32
_PAPER_BORDER = 0.75
_PAPER_ALL = 0.3
_MOST = 0.8
# Ink whose box fills less of the picture than this, or in different measure, is cut out.
_SMALL_BOX = 0.6
_SPREAD_BOX = 0.35
_MARGIN = 0.125
# Of each side of a picture so many pixels are looked at, at most.
_SEEN = 512


@dataclass(frozen=True)
class Preparation:
    """The proposed size, color and preprocessing of pictures, with reasons.

    Attributes
    ----------
    size : tuple of int
        Height and width.
    mode : {"gray", "color"}
    preprocessing : Preprocessing
        Its default where pictures are only resized.
    kind : {"glyphs", "photos"}
        Ink on paper, or anything else.
    reasons : tuple of str
        Sentences for the user.

    Examples
    --------
    >>> from visionshare.datasets import propose_preparation
    >>> photos = [np.full((30, 40, 3), color, np.uint8) for color in (0, 99)]
    >>> propose_preparation(photos).apply(photos).shape
    (2, 30, 40)
    """

    size: tuple[int, int]
    mode: str
    preprocessing: Preprocessing
    kind: str
    reasons: tuple[str, ...]

    def apply(self, pictures: Pictures, n_jobs: int = 1) -> np.ndarray:
        """Return pictures as a classifier sees them."""
        if not isinstance(pictures, PictureSet):
            given = pictures
            labels = np.zeros(len(given), np.int64)
            pictures = PictureSet("pictures", ("",), labels, None, lambda: _some(given, len(given)))
        steps = self.preprocessing
        return read_pictures(pictures, self.size, self.mode, steps, n_jobs=n_jobs).images


@dataclass
class _Looks:
    """What pictures that were looked at are like, an entry each."""

    sizes: list[tuple[int, int]] = field(default_factory=list)
    colored: list[bool] = field(default_factory=list)
    transparent: list[bool] = field(default_factory=list)
    # Of those that are transparent: whether their ink is dark.
    dark_ink: list[bool] = field(default_factory=list)
    on_paper: list[bool] = field(default_factory=list)
    # Of those on paper: whether the paper is light, and the share of the sides that ink fills.
    inverted: list[bool] = field(default_factory=list)
    boxes: list[float] = field(default_factory=list)


def propose_preparation(
    pictures: Pictures,
    *,
    size: tuple[int, int] | None = None,
    color: bool | None = None,
    sizes: np.ndarray | None = None,
    max_side: int = _LARGEST,
    n_pictures: int = _LOOKED_AT,
) -> Preparation:
    """Return how pictures should be prepared, from a look at some of them.

    The size is the median of all sizes, within bounds, so that most pictures shrink little. They
    are gray where hardly any has color. Where most have an even border, they show ink on paper:
    where paper is light in some and dark in others, ink becomes light on dark; where ink fills
    little of them, or much in some and little in others, it is cut out and brought to a box. Other
    pictures are only resized.

    Parameters
    ----------
    pictures : PictureSet, sequence of ndarray or path-like, or ndarray of shape (n, H, W[, C])
        Arrays are those of :func:`visionshare.datasets.decoding.decode_array`; pictures that
        cannot be read are passed over.
    size : tuple of int, optional
        Height and width, where the user says them.
    color : bool, optional
        Whether images have color, where the user says it.
    sizes : ndarray of shape (m, 2), optional
        Heights and widths of all pictures, where they are known.
    max_side : int, default 64
        Longer side of the images at most.
    n_pictures : int, default 200
        Pictures that are looked at, at most.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> photos = [rng.integers(0, 256, (30, 40, 3), np.uint8) for _ in range(4)]
    >>> made = propose_preparation(photos)
    >>> made.size, made.mode, made.kind
    ((30, 40), 'color', 'photos')
    >>> print(made.reasons[0])
    size 30×40 (height × width): that of the pictures
    """
    if max_side < 1 or n_pictures < 1:
        raise InputError("max_side, n_pictures", (max_side, n_pictures), "numbers of at least 1")
    if size is not None and (len(size) != 2 or min(size) < 1):
        raise InputError("size", size, "a height and a width of at least 1")
    looks = _Looks()
    if isinstance(pictures, PictureSet):
        values = SetRange.of(pictures)
    else:
        values = SetRange(lambda: _some(pictures, len(pictures)))
    problem = "there are none"
    for content in _some(pictures, n_pictures):
        try:
            _look(content, looks, values)
        except DataError as error:
            problem = str(error)
    if not looks.sizes:
        raise DataError(f"no picture can be read: {problem}")
    if sizes is None or len(sizes) == 0:
        sizes = np.array(looks.sizes)
    mode, why_mode = _mode(float(np.mean(looks.colored)), color)
    steps, kind, why_steps = _steps(looks)
    if values.values is not None:
        low, high = values.values
        steps = replace(steps, values=values.values)
        why_steps.append(f"made bytes: in files of floats or 32 bits {low:g} is 0, {high:g} is 255")
    if size is not None:
        why_size = f"size {size[0]}×{size[1]} (height × width): as asked for"
    else:
        size, why_size = _proposed_size(np.asarray(sizes), max_side, steps.fit == "box")
    return Preparation(size, mode, steps, kind, (why_size, why_mode, *why_steps))


def _some(pictures: Pictures, n: int) -> Iterator[Content]:
    """Yield at most ``n`` pictures, evenly drawn."""
    total = len(pictures)
    drawn = np.linspace(0, total - 1, min(n, total)).astype(int)
    if isinstance(pictures, PictureSet):
        chosen = np.zeros(total, bool)
        chosen[drawn] = True
        for _, contents in pictures.batches(chosen):
            yield from contents
        return
    for i in drawn:
        data = pictures[int(i)]
        is_content = isinstance(data, (np.ndarray, bytes))
        yield Content(f"picture {i}", data if is_content else os.fspath(data))  # type: ignore[arg-type]


def _look(content: Content, looks: _Looks, values: SetRange) -> None:
    """Note what a picture is like."""
    name, data = content
    if isinstance(data, np.ndarray):
        array = data
        is_transparent = array.ndim == 3 and array.shape[2] == 4

        def decoded(ground: str) -> np.ndarray:
            try:
                return decode_array(array, "color", Preprocessing(ground=ground))
            except DataError as error:
                raise DataError(f"{name}: {error}") from None
    else:
        picture = open_picture(data, name=name)
        mode = picture.mode
        is_transparent = mode in ("LA", "PA", "RGBA") or "transparency" in mode
        steps = values.steps_for(picture, Preprocessing())

        def decoded(ground: str) -> np.ndarray:
            return decode_image(picture, "color", replace(steps, ground=ground))

    pixels = decoded("ink")
    looks.sizes.append((pixels.shape[0], pixels.shape[1]))
    # Where white and black below differ, something is transparent indeed.
    on_white = decoded("white") if is_transparent else pixels
    is_seen_through = is_transparent and not np.array_equal(on_white, decoded("black"))
    looks.transparent.append(is_seen_through)
    if is_seen_through:
        looks.dark_ink.append(np.array_equal(pixels, on_white))
    # What large pictures are like shows in a part of their pixels.
    step = -(-max(pixels.shape[:2]) // _SEEN)
    small = np.ascontiguousarray(pixels[::step, ::step])
    chroma = small.max(axis=2) - small.min(axis=2)
    looks.colored.append(bool(np.mean(chroma > _CHROMA) > _COLORED_PIXELS))
    _look_for_paper(to_gray(small), looks)


def _look_for_paper(gray: np.ndarray, looks: _Looks) -> None:
    values = gray.astype(np.int16)
    border = border_of(values)
    paper = int(np.median(border))
    differs = np.abs(values - paper)
    on_paper = (
        float(np.mean(np.abs(border - paper) <= _NEAR)) >= _PAPER_BORDER
        and float(np.mean(differs <= _NEAR)) >= _PAPER_ALL
        and int(differs.max()) > 2 * _NEAR
    )
    looks.on_paper.append(on_paper)
    if not on_paper:
        return
    looks.inverted.append(int(values.max()) - paper < paper - int(values.min()))
    top, bottom, left, right = box_of(differs > 0.3 * int(differs.max()))
    height, width = gray.shape
    looks.boxes.append(max((bottom - top) / height, (right - left) / width))


def _mode(share: float, color: bool | None) -> tuple[str, str]:
    """Return "gray" or "color", and a sentence that says why."""
    if color is not None:
        mode = "color" if color else "gray"
        return mode, f"{mode}: as asked for"
    if share > _COLORED_PICTURES:
        return "color", f"color: {share:.0%} of the pictures have colors"
    if share > 0:
        return "gray", f"gray: only {share:.0%} of the pictures have colors"
    return "gray", "gray: the pictures have no colors"


def _proposed_size(sizes: np.ndarray, max_side: int, is_cut: bool) -> tuple[tuple[int, int], str]:
    """Return the size of the images, and a sentence that says where it comes from."""
    height, width = median_size(sizes)
    why = "that of the pictures"
    if not (sizes == sizes[0]).all():
        (low, wide) = sizes.min(axis=0)
        (high, broad) = sizes.max(axis=0)
        why = f"the median of pictures of {low}×{wide} to {high}×{broad}"
    longer = max(height, width)
    if is_cut:
        # What is cut out has its own proportions: a square is as good for all.
        why = f"for what is cut out; {why}, {height}×{width}"
        least = min(height, width)
        height = width = min(max(_SMALLEST, round(0.75 * least)), _LARGEST_CUT, max_side)
    elif not _SMALLEST <= longer <= max_side:
        is_large = longer > max_side
        to = max_side if is_large else _SMALLEST
        how = f"smaller: their longer side is at most {to}"
        if not is_large:
            how = f"larger: their longer side is at least {to}"
        why += f", {height}×{width}, made {how}"
        height, width = (
            max(1, min(max_side, round(to / longer * side))) for side in (height, width)
        )
    return (height, width), f"size {height}×{width} (height × width): {why}"


def _steps(looks: _Looks) -> tuple[Preprocessing, str, list[str]]:
    """Return the steps, the kind of the pictures, and sentences that say why."""
    reasons = []
    ground = "ink"
    if any(looks.transparent):
        # One ground for all: what differs between pictures should be the pictures.
        is_dark = float(np.mean(looks.dark_ink)) >= 0.5
        ground = "white" if is_dark else "black"
        reasons.append(
            f"laid on {ground}: {np.mean(looks.transparent):.0%} of the pictures are transparent, "
            f"and their content is {'dark' if is_dark else 'light'} in most"
        )
    if float(np.mean(looks.on_paper)) < _MOST:
        reasons.append("only resized: the pictures have no even border that would be paper")
        return Preprocessing(ground=ground), "photos", reasons
    # Of ink it is known which way it is, even where nothing is changed: then it can be drawn too.
    inverted = float(np.mean(looks.inverted))
    polarity = "dark_on_light" if inverted > 0.5 else "light_on_dark"
    if 0.02 < inverted < 0.98:
        polarity = "automatic"
    low, middle, high = np.quantile(looks.boxes, (0.1, 0.5, 0.9))
    is_cut = bool(middle < _SMALL_BOX or high - low > _SPREAD_BOX)
    if is_cut:
        reasons.append(
            "cut to what stands out from the even border, and brought to a box: it fills "
            f"{low:.0%} to {high:.0%} of the pictures' sides"
        )
    if polarity == "automatic":
        reasons.append(f"made light on dark: {inverted:.0%} of the pictures are dark on light")
    elif polarity == "dark_on_light":
        reasons.append("made light on dark: the pictures are dark on light")
    elif not is_cut:
        reasons.append("only resized: what stands out from the even border fills the pictures")
    if not is_cut:
        return Preprocessing(polarity, ground=ground), "glyphs", reasons
    steps = Preprocessing(
        polarity, contrast=True, crop=True, fit="box", margin=_MARGIN, ground=ground
    )
    return steps, "glyphs", reasons
