"""Maps of large images: each pixel gets the class of the window around it."""

from __future__ import annotations

import colorsys

import numpy as np

from visionshare.classifier import CompactClassifier
from visionshare.errors import InputError
from visionshare.generators.base import check_images
from visionshare.resources import parse_size, resolve_jobs

__all__ = ["class_colors", "label_map", "majority", "overlay", "score_map"]

# Okabe and Ito's colors, then Tol's "muted" ones: told apart with any color vision.
_COLORS = (
    "0072b2", "e69f00", "009e73", "d55e00", "56b4e9", "f0e442", "cc79a7", "000000",
    "332288", "ddcc77", "117733", "88ccee", "882255", "44aa99", "aa4499", "999933",
)  # fmt: skip


def score_map(
    classifier: CompactClassifier,
    image: np.ndarray,
    step: int = 1,
    n_jobs: int = 1,
    memory: str | int = "256MiB",
) -> np.ndarray:
    """Return the scores of every ``step``-th pixel of both axes of a large image.

    The window of the pixel (y, x) has its middle there: it begins at (y − height // 2,
    x − width // 2). Beyond its edges the image is reflected, the edge itself not repeated.

    Parameters
    ----------
    classifier : CompactClassifier
        Of images, in one channel or color.
    image : ndarray of shape (height, width) or (height, width, C), uint8 or float
        At least as large as the classifier's images.
    step : int, default 1
        The pixels are those at step // 2, step // 2 + step … of both axes.
    n_jobs : int, default 1
        Threads; the scores do not depend on it.
    memory : str or int, default "256MiB"
        About how much features and scores may take at once; the scores do not depend on it.

    Returns
    -------
    ndarray of shape (rows, columns, k), float32

    Raises
    ------
    InputError
        If the classifier is of vectors, or the image does not fit it.
    """
    step, bound, threads = _checked(classifier, image, step, memory, n_jobs)
    height, width = classifier.image_shape[:2]
    top, left = height // 2, width // 2
    pads = [(top, height - 1 - top), (left, width - 1 - left), (0, 0)]
    padded = np.pad(image, pads[: image.ndim], mode="reflect")
    # Of a side shorter than a step the last pixel stands for all.
    ys, xs = (np.arange(min(step // 2, side - 1), side, step) for side in image.shape[:2])
    k, n = len(classifier.classes_), classifier.n_features
    together = max(1, bound // (4 * len(xs) * (n + 2 * k)))
    scores = np.empty((len(ys), len(xs), k), np.float32)
    for start in range(0, len(ys), together):
        some = ys[start : start + together]
        # No more of the image than these windows see.
        strip = padded[some[0] : some[-1] + height]
        features = classifier.family.transform_windows(strip, some - some[0], xs, threads)
        scores[start : start + together] = _scores(classifier, features)
    return scores


def _checked(
    classifier: CompactClassifier, image: np.ndarray, step: int, memory: str | int, n_jobs: int
) -> tuple[int, int, int]:
    shape = classifier.image_shape
    if len(shape) == 1:
        raise InputError("classifier", f"one of vectors of {shape[0]}", "a classifier of images")
    if isinstance(step, bool) or not hasattr(step, "__index__") or step < 1:
        raise InputError("step", step, "a whole number of pixels of at least 1")
    wanted = f"an image of at least {shape[0]}×{shape[1]} pixels"
    if len(shape) == 3:
        wanted += f" in {shape[2]} channels"
    if not isinstance(image, np.ndarray) or image.ndim != len(shape):
        raise InputError("image", getattr(image, "shape", type(image).__name__), wanted)
    if image.shape[2:] != shape[2:] or image.shape[0] < shape[0] or image.shape[1] < shape[1]:
        raise InputError("image", image.shape, wanted)
    check_images(image[None])
    return int(step), parse_size(memory), resolve_jobs(n_jobs)


def _scores(classifier: CompactClassifier, features: np.ndarray) -> np.ndarray:
    """Return scores (rows, columns, k) of features (n, rows, columns).

    Feature by feature: a product of matrices may round a window differently with its neighbors.
    """
    scores = np.empty((len(classifier.classes_), *features.shape[1:]), np.float32)
    scores[:] = classifier.intercept[:, None, None]
    part = np.empty(features.shape[1:], np.float32)
    for j, values in enumerate(features):
        for c in range(len(scores)):
            np.multiply(values, classifier.weights[c, j], out=part)
            scores[c] += part
    return np.moveaxis(scores, 0, -1)


def label_map(
    classifier: CompactClassifier,
    image: np.ndarray,
    step: int = 1,
    smooth: int = 1,
    n_jobs: int = 1,
    memory: str | int = "256MiB",
) -> np.ndarray:
    """Return the class of every pixel of a large image: that of the window around it.

    A family that shares work among windows (see
    :meth:`visionshare.generators.base.FeatureFamily.transform_windows`) is many times faster than
    window by window, and gives the same.

    Parameters
    ----------
    classifier, image, n_jobs, memory
        As in :func:`score_map`.
    step : int, default 1
        Classify every so-many-th pixel of both axes; the pixels around it get its class.
    smooth : int, default 1
        Side, odd, of the square in which the pixels then vote for the one in the middle, see
        :func:`majority`; 1 leaves them as they are.

    Returns
    -------
    ndarray of shape (height, width), int64
        Indexes into ``classifier.classes_``.

    Raises
    ------
    InputError
        If the classifier is of vectors, the image does not fit it, or a number is out of range.

    Examples
    --------
    >>> from visionshare import CompactClassifier, Pixels
    >>> family = Pixels().fit(np.zeros((1, 3, 3))).take([4])
    >>> weights = np.array([[0.0], [1.0]], np.float32)
    >>> names = np.array(["dark", "light"])
    >>> bright = CompactClassifier(family, weights, np.array([0.5, 0.0]), names)
    >>> label_map(bright, np.eye(4)).tolist()
    [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]
    """
    check_side(smooth)
    scores = score_map(classifier, image, step, n_jobs, memory)
    labels = np.argmax(scores, axis=2)
    rows, cols = (
        np.minimum(np.arange(side) // step, held - 1)
        for side, held in zip(image.shape[:2], labels.shape, strict=True)
    )
    return majority(labels[np.ix_(rows, cols)], smooth, len(classifier.classes_))


def check_side(smooth: int) -> None:
    """Raise an InputError unless it is the side of a square with a middle."""
    odd = hasattr(smooth, "__index__") and not isinstance(smooth, bool)
    if not odd or smooth < 1 or smooth % 2 == 0:
        raise InputError("smooth", smooth, "an odd number of pixels of at least 1")


def majority(labels: np.ndarray, side: int, n_classes: int) -> np.ndarray:
    """Return the most frequent label of the square around each pixel, inside of the map.

    Of equally frequent ones the pixel keeps its own, or gets the lowest.

    Parameters
    ----------
    labels : ndarray of shape (height, width), int
    side : int
        Odd.
    n_classes : int

    Examples
    --------
    >>> majority(np.array([[0, 0, 0], [0, 1, 0], [0, 0, 2]]), 3, 3).tolist()
    [[0, 0, 0], [0, 0, 0], [0, 0, 0]]
    """
    check_side(side)
    if side == 1:
        return labels
    found, best = labels.copy(), np.zeros(labels.shape, np.int64)
    for c in range(n_classes):
        own = labels == c
        # A half vote more: the pixel keeps its own label among equals.
        votes = 2 * _counted(own, side) + own
        better = votes > best
        found[better], best[better] = c, votes[better]
    return found


def _counted(mask: np.ndarray, side: int) -> np.ndarray:
    """Return how many pixels of a mask lie in the square around each pixel."""
    sums = np.zeros((mask.shape[0] + 1, mask.shape[1] + 1), np.int64)
    np.cumsum(np.cumsum(mask, axis=0), axis=1, out=sums[1:, 1:])
    half = side // 2
    ends = []
    for length in mask.shape:
        places = np.arange(length)
        ends.append((np.maximum(places - half, 0), np.minimum(places + half + 1, length)))
    (y0, y1), (x0, x1) = ends
    return sums[np.ix_(y1, x1)] - sums[np.ix_(y0, x1)] - sums[np.ix_(y1, x0)] + sums[np.ix_(y0, x0)]


def class_colors(n: int) -> np.ndarray:
    """Return the colors of ``n`` classes, (n, 3) uint8, the same in every map.

    The first sixteen are told apart with any color vision; later ones turn round the hues.

    Examples
    --------
    >>> class_colors(2).tolist()
    [[0, 114, 178], [230, 159, 0]]
    """
    colors = [tuple(bytes.fromhex(text)) for text in _COLORS[:n]]
    for i in range(len(colors), n):
        # The golden ratio keeps neighbors apart, however many there are.
        mixed = colorsys.hsv_to_rgb(0.618034 * i % 1.0, 0.55 + 0.4 * (i % 2), 0.9)
        colors.append(tuple(round(255 * v) for v in mixed))
    return np.array(colors, np.uint8).reshape(n, 3)


def overlay(image: np.ndarray, labels: np.ndarray, n_classes: int) -> np.ndarray:
    """Return the image with the colors of its classes laid over it, (height, width, 3) uint8.

    Parameters
    ----------
    image : ndarray of shape (height, width) or (height, width, C), uint8
    labels : ndarray of shape (height, width), int
    n_classes : int
    """
    gray = image.astype(np.float32)
    if image.ndim == 2 or image.shape[2] != 3:
        gray = gray.reshape(*labels.shape, -1).mean(axis=2, keepdims=True)
    return np.round(0.55 * gray + 0.45 * class_colors(n_classes)[labels]).astype(np.uint8)
