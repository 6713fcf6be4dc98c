"""Ink and paper: which pixels of a scan are ink."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from visionshare.errors import InputError

# Paper and ink nearer than this, in gray values, are a page without ink: once the paper is evened
# out to 255, and in the image that was given.
_MIN_CONTRAST = 40.0
_MIN_DIFFERENCE = 30.0
# What stands out is taken for lighter, or darker, from this skewness on.
_MIN_SKEWNESS = 0.5
# The side of the square around a pixel that its threshold depends on, and rows done at once.
_WINDOW = 41
_ROWS = 256
# The median step of darkness across an edge from which on it is sharp; scans have 110 to 220.
_SOFT = 85
# How a blurred image is sharpened: the blur of what is subtracted, in pixels, and how often.
_REACH = 4.0
_AMOUNT = 4.0


@dataclass(frozen=True)
class Ink:
    """Where the ink of an image is."""

    mask: np.ndarray
    darkness: np.ndarray
    light_on_dark: bool


def sauvola_threshold(
    gray: np.ndarray, window: int = _WINDOW, k: float = 0.2, r: float = 128.0
) -> np.ndarray:
    """Return m (1 + k (s / r − 1)), with mean m and standard deviation s of the square around."""
    # Sauvola, Pietikäinen, Adaptive document image binarization, Pattern Recognition 33, 2000,
    # equation 5. Beyond its edges the image is reflected. As scikit-image's
    # ``threshold_sauvola``, many times faster.
    import cv2

    if gray.ndim != 2:
        raise InputError("gray", gray.shape, "an image of shape (H, W)")
    if window < 1 or window % 2 == 0:
        raise InputError("window", window, "an odd number of pixels of at least 1")
    # numpy reflects an image as often as a window needs it; OpenCV does so once.
    half = window // 2
    padded = np.pad(gray, half, mode="reflect" if min(gray.shape) > 1 else "edge")
    sides = window, window
    inner = slice(half, half + gray.shape[0]), slice(half, half + gray.shape[1])
    mean = cv2.boxFilter(padded, cv2.CV_64F, sides)[inner]
    square = cv2.sqrBoxFilter(padded, cv2.CV_64F, sides)[inner]
    deviation = np.sqrt(np.maximum(square - mean * mean, 0.0))
    return (mean * (1 + k * (deviation / r - 1))).astype(np.float32)


def find_ink(gray: np.ndarray, light_on_dark: bool | None = None) -> Ink:
    """Return the ink of a gray image, dark on light or light on dark."""
    # Brightness is divided by that of the paper near by, so that shadows do not count. Sauvola's
    # threshold is then kept between two bounds: alone it hollows out large letters.
    import cv2

    if not isinstance(gray, np.ndarray) or gray.ndim != 2 or gray.dtype != np.uint8:
        given = getattr(gray, "dtype", type(gray).__name__), getattr(gray, "shape", ())
        raise InputError("gray", given, "a uint8 image of shape (H, W)")
    if gray.size == 0:
        raise InputError("gray", gray.shape, "an image with pixels")
    if light_on_dark is None:
        light_on_dark = _is_light_on_dark(gray)
    dark = 255 - gray if light_on_dark else gray
    flat = _flattened(dark)
    level, _ = cv2.threshold(flat, 0, 255, cv2.THRESH_BINARY + cv2.THRESH_OTSU)
    below = flat <= level
    nothing = Ink(np.zeros(gray.shape, bool), np.zeros(gray.shape, np.uint8), light_on_dark)
    if below.all() or not below.any():
        return nothing
    # 1) the means of ink and paper
    values = np.arange(256)
    counts = cv2.calcHist([flat], [0], None, [256], [0, 256]).ravel().astype(np.int64)
    of_paper = np.cumsum(np.where(values > level, counts, 0))
    n_paper = int(of_paper[-1])
    middle = np.searchsorted(of_paper, [(n_paper - 1) // 2, n_paper // 2], side="right")
    paper = float(middle.mean())
    of_ink = np.where(values > level, 0, counts)
    contrast = paper - float(of_ink @ values / of_ink.sum())
    is_ink = below.view(np.uint8)
    difference = cv2.mean(dark, 1 - is_ink)[0] - cv2.mean(dark, is_ink)[0]
    if contrast < _MIN_CONTRAST or difference < _MIN_DIFFERENCE:
        return nothing
    # 2) the threshold, strip by strip: numbers of 8 bytes for a whole page would take much memory
    bounds = paper - 0.65 * contrast, paper - 0.35 * contrast
    mask = np.empty(gray.shape, bool)
    for top in range(0, len(gray), _ROWS):
        around = max(0, top - _WINDOW // 2)
        strip = flat[around : top + _ROWS + _WINDOW // 2]
        threshold = sauvola_threshold(strip, _WINDOW, r=contrast / 2)[top - around :][:_ROWS]
        mask[top : top + _ROWS] = flat[top : top + _ROWS] < np.clip(threshold, *bounds)
    # 3) how dark each gray value is
    darkness = np.clip((paper - values.astype(np.float32)) * (255 / contrast), 0, 255)
    return Ink(mask, cv2.LUT(flat, np.round(darkness).astype(np.uint8)), light_on_dark)


def is_blurred(ink: Ink) -> bool:
    """Return whether the edges of ink are soft: blurred by more than about 1.2 pixels."""
    import cv2

    edges = ink.mask[:, 1:] != ink.mask[:, :-1]
    if not edges.any():
        return False
    steps = cv2.absdiff(ink.darkness[:, 1:], ink.darkness[:, :-1]).reshape(edges.shape)[edges]
    return float(np.median(steps)) < _SOFT


def magnified(gray: np.ndarray) -> np.ndarray:
    """Return a blurred image at twice its size, sharpened."""
    import cv2

    height, width = gray.shape
    large = cv2.resize(gray, (2 * width, 2 * height), interpolation=cv2.INTER_CUBIC)
    values = large.astype(np.float32)
    soft = cv2.GaussianBlur(values, (0, 0), _REACH)
    values = cv2.GaussianBlur(values, (0, 0), 0.7)
    return np.clip(np.round(values + _AMOUNT * (values - soft)), 0, 255).astype(np.uint8)


def _is_light_on_dark(gray: np.ndarray) -> bool:
    """Return whether what stands out from its surroundings is mostly lighter than they are."""
    import cv2

    small = _quarter(gray)
    around = cv2.medianBlur(small, 31)
    difference = small.astype(np.float64) - around
    # Of a picture that is all one letter, the surroundings are its edges.
    if not difference.any():
        difference = small.astype(np.float64) - np.median(small)
    squares = difference * difference
    deviation = float(np.sqrt(np.mean(squares)))
    skewness = float(np.mean(squares * difference)) / max(deviation**3, 1e-12)
    if abs(skewness) < _MIN_SKEWNESS:
        return bool(gray.mean() < 127.5)
    return skewness > 0


def _quarter(gray: np.ndarray) -> np.ndarray:
    import cv2

    height, width = (max(1, side // 4) for side in gray.shape)
    if min(gray.shape) < 256:
        return gray
    return cv2.resize(gray, (width, height), interpolation=cv2.INTER_AREA)


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
    return cv2.divide(dark, np.maximum(paper, 1), scale=255)
