"""Ink and paper: which pixels of a scan are ink, and a character's picture as classifiers see it.

Training and reading both come through here: a character rendered for training is found and
normalized by the functions that find and normalize those of a page.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from visionshare.errors import InputError

__all__ = ["INNER", "SIZE", "Ink", "find_ink", "normalize_character", "sauvola_threshold"]

SIZE = 28
# The longer side of a character inside of its picture.
INNER = 22
# Paper and ink nearer than this, in gray values, are a page without ink: once the paper is evened
# out to 255, and as they are.
_LEAST_CONTRAST = 40.0
_LEAST_DIFFERENCE = 30.0
# What stands out is taken for lighter, or darker, from this skewness on.
_LEAST_SKEWNESS = 0.5


@dataclass(frozen=True)
class Ink:
    """Where the ink of an image is.

    Attributes
    ----------
    mask : ndarray of bool, shape (H, W)
    darkness : ndarray of uint8, shape (H, W)
        0 on paper, 255 on ink, between them on edges.
    light_on_dark : bool
        Whether the ink is lighter than the paper.
    """

    mask: np.ndarray
    darkness: np.ndarray
    light_on_dark: bool


def sauvola_threshold(
    gray: np.ndarray, window: int = 41, k: float = 0.2, r: float = 128.0
) -> np.ndarray:
    """Return m (1 + k (s / r − 1)), with mean m and standard deviation s of the square around.

    Sauvola, Pietikäinen, Adaptive document image binarization, Pattern Recognition 33, 2000,
    equation 5. Beyond its edges the image is reflected. As scikit-image's, many times faster.

    Parameters
    ----------
    gray : ndarray of shape (H, W)
    window : int, default 41
        Side of the square; odd.
    k, r : float
        Weight, and largest standard deviation.

    Returns
    -------
    ndarray of float32, shape (H, W)

    Examples
    --------
    >>> sauvola_threshold(np.full((3, 3), 100.0), 3, k=0.5).max()
    np.float32(50.0)
    """
    import cv2

    if gray.ndim != 2:
        raise InputError("gray", gray.shape, "an image of shape (H, W)")
    if window < 1 or window % 2 == 0:
        raise InputError("window", window, "an odd number of pixels of at least 1")
    values = np.asarray(gray, np.float64)
    # numpy reflects an image as often as a window needs it; OpenCV does so once.
    half = window // 2
    padded = np.pad(values, half, mode="reflect" if min(gray.shape) > 1 else "edge")
    sides = window, window
    inner = slice(half, half + gray.shape[0]), slice(half, half + gray.shape[1])
    mean = cv2.boxFilter(padded, cv2.CV_64F, sides)[inner]
    square = cv2.boxFilter(padded * padded, cv2.CV_64F, sides)[inner]
    deviation = np.sqrt(np.maximum(square - mean * mean, 0.0))
    found: np.ndarray = (mean * (1 + k * (deviation / r - 1))).astype(np.float32)
    return found


def find_ink(gray: np.ndarray) -> Ink:
    """Return the ink of a gray image: dark on light, or light on dark where that is the rule.

    Brightness is divided by that of the paper near by, so that shadows do not count. Sauvola's
    threshold is then kept between two bounds: he alone hollows out large letters.

    Parameters
    ----------
    gray : ndarray of uint8, shape (H, W)

    Raises
    ------
    InputError
        If it is no such image, or has no pixel.

    Examples
    --------
    >>> page = np.full((40, 40), 200, np.uint8)
    >>> page[10:30, 18:22] = 30
    >>> ink = find_ink(page)
    >>> int(ink.mask.sum()), ink.light_on_dark, find_ink(255 - page).light_on_dark
    (80, False, True)
    """
    import cv2

    if not isinstance(gray, np.ndarray) or gray.ndim != 2 or gray.dtype != np.uint8:
        given = getattr(gray, "dtype", type(gray).__name__), getattr(gray, "shape", ())
        raise InputError("gray", given, "a uint8 image of shape (H, W)")
    if gray.size == 0:
        raise InputError("gray", gray.shape, "an image with pixels")
    light_on_dark = _is_light_on_dark(gray)
    dark = 255 - gray if light_on_dark else gray
    flat = _flattened(dark)
    level, _ = cv2.threshold(flat, 0, 255, cv2.THRESH_BINARY + cv2.THRESH_OTSU)
    below = flat <= level
    nothing = Ink(np.zeros(gray.shape, bool), np.zeros(gray.shape, np.uint8), light_on_dark)
    if below.all() or not below.any():
        return nothing
    ink, paper = float(flat[below].mean()), float(np.median(flat[~below]))
    contrast, difference = paper - ink, float(dark[~below].mean()) - float(dark[below].mean())
    if contrast < _LEAST_CONTRAST or difference < _LEAST_DIFFERENCE:
        return nothing
    threshold = sauvola_threshold(flat, r=contrast / 2)
    np.clip(threshold, paper - 0.65 * contrast, paper - 0.35 * contrast, out=threshold)
    darkness = np.clip((paper - flat.astype(np.float32)) * (255 / contrast), 0, 255)
    return Ink(flat < threshold, np.round(darkness).astype(np.uint8), light_on_dark)


def _is_light_on_dark(gray: np.ndarray) -> bool:
    """Return whether what stands out from its surroundings is mostly lighter than they are."""
    import cv2

    small = _quarter(gray)
    around = cv2.medianBlur(small, 31)
    difference = small.astype(np.float64) - around
    # Of a picture that is all one letter, the surroundings are its edges.
    if not difference.any():
        difference = small.astype(np.float64) - np.median(small)
    deviation = float(np.sqrt(np.mean(difference**2)))
    skewness = float(np.mean(difference**3)) / max(deviation**3, 1e-12)
    if abs(skewness) < _LEAST_SKEWNESS:
        return bool(gray.mean() < 127.5)
    return skewness > 0


def _quarter(gray: np.ndarray) -> np.ndarray:
    import cv2

    height, width = (max(1, side // 4) for side in gray.shape)
    if min(gray.shape) < 256:
        return gray
    found: np.ndarray = cv2.resize(gray, (width, height), interpolation=cv2.INTER_AREA)
    return found


def _flattened(dark: np.ndarray) -> np.ndarray:
    """Return the image divided by the brightness of the paper near by, uint8."""
    import cv2

    small = cv2.medianBlur(_quarter(dark), 3)
    side = max(3, round(100 * small.shape[0] / dark.shape[0]))
    square = np.ones((side, side), np.uint8)
    # A closing puts paper in the place of every stroke that is thinner than the square.
    paper = cv2.morphologyEx(small, cv2.MORPH_CLOSE, square, borderType=cv2.BORDER_REPLICATE)
    paper = cv2.blur(paper, (side, side), borderType=cv2.BORDER_REPLICATE)
    paper = cv2.resize(paper, dark.shape[::-1], interpolation=cv2.INTER_LINEAR)
    ratio = dark.astype(np.float32) * 255 / np.maximum(paper, 1)
    return np.minimum(np.round(ratio), 255).astype(np.uint8)


def normalize_character(darkness: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """Return a character as classifiers see it: its ink alone, light on black, centered.

    Its longer side fills 22 of 28 pixels, its proportions are kept, and its ink is full white.

    Parameters
    ----------
    darkness : ndarray of uint8, shape (H, W)
        See :class:`Ink`.
    mask : ndarray of bool, shape (H, W)
        Pixels of this character; neighbors inside of its box are left out.

    Returns
    -------
    ndarray of uint8, shape (28, 28)

    Examples
    --------
    >>> mask = np.zeros((60, 40), bool)
    >>> mask[10:54, 20:24] = True
    >>> image = normalize_character(np.where(mask, 200, 0).astype(np.uint8), mask)
    >>> rows, cols = np.nonzero(image > 127)
    >>> np.ptp(rows) + 1, np.ptp(cols) + 1, image.max()
    (np.int64(22), np.int64(2), np.uint8(255))
    """
    import cv2

    rows, cols = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    picture = np.zeros((SIZE, SIZE), np.uint8)
    if len(rows) == 0:
        return picture
    box = slice(rows[0], rows[-1] + 1), slice(cols[0], cols[-1] + 1)
    own = np.ascontiguousarray(mask[box], np.uint8)
    # One pixel around the mask is still edge, not neighbor.
    values = darkness[box] * cv2.dilate(own, np.ones((3, 3), np.uint8))
    top = max(64.0, float(np.percentile(values[own > 0], 75)))
    ratio = INNER / max(values.shape)
    height, width = (max(1, round(side * ratio)) for side in values.shape)
    how = cv2.INTER_AREA if ratio < 1 else cv2.INTER_LINEAR
    shrunk = cv2.resize(values, (width, height), interpolation=how).astype(np.float32)
    y, x = (SIZE - height) // 2, (SIZE - width) // 2
    picture[y : y + height, x : x + width] = np.minimum(np.round(shrunk * (255 / top)), 255)
    return picture
