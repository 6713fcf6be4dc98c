"""Maps of large images: each pixel gets the class of the window around it."""

from __future__ import annotations

import colorsys

import numpy as np

from visionshare.classifier import CompactClassifier
from visionshare.errors import InputError
from visionshare.generators.base import check_images
from visionshare.machine.resources import parse_size, resolve_jobs

# Okabe and Ito's colors, then Tol's "muted" ones: distinct with any color vision.
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

    The window of the pixel (y, x) is centered there: it begins at (y − height // 2,
    x − width // 2). Beyond its edges the image is reflected, the edge itself not repeated.

    Parameters
    ----------
    classifier : CompactClassifier
        Of images, gray or in color.
    image : ndarray of shape (height, width) or (height, width, C), uint8 or float
        At least as large as the classifier's images.
    step : int, default 1
        The pixels are those at step // 2, step // 2 + step … of both axes.
    n_jobs : int, default 1
        Threads; the scores do not depend on it.
    memory : str or int, default "256MiB"
        About how much memory features and scores may take; the scores do not depend on it.

    Returns
    -------
    ndarray of shape (rows, columns, k), float32

    Raises
    ------
    InputError
        If the classifier is of vectors, or the image does not fit it.

    Examples
    --------
    >>> from visionshare import CompactClassifier, Pixels
    >>> family = Pixels().fit(np.zeros((1, 3, 3))).take([4])
    >>> weights, names = np.array([[0.0], [1.0]]), np.array(["dark", "light"])
    >>> bright = CompactClassifier(family, weights, np.array([0.5, 0.0]), names)
    >>> score_map(bright, np.eye(4), step=2).shape
    (2, 2, 2)
    """
    step, bound, threads = _checked(classifier, image, step, memory, n_jobs)
    height, width = classifier.image_shape[:2]
    top = height // 2
    left = width // 2
    pads = [(top, height - 1 - top), (left, width - 1 - left), (0, 0)]
    padded = np.pad(image, pads[: image.ndim], mode="reflect")
    # Where a side is shorter than half a step, its last pixel is taken.
    ys, xs = (np.arange(min(step // 2, side - 1), side, step) for side in image.shape[:2])
    k = len(classifier.classes_)
    n = classifier.n_features
    rows_at_once = max(1, bound // (4 * len(xs) * (n + 2 * k)))
    scores = np.empty((len(ys), len(xs), k), np.float32)
    for start in range(0, len(ys), rows_at_once):
        rows = ys[start : start + rows_at_once]
        # Only the part of the image that these windows cover.
        strip = padded[rows[0] : rows[-1] + height]
        features = classifier.family.transform_windows(strip, rows - rows[0], xs, threads)
        scores[start : start + rows_at_once] = _scores(classifier, features)
    return scores


def _checked(
    classifier: CompactClassifier, image: np.ndarray, step: int, memory: str | int, n_jobs: int
) -> tuple[int, int, int]:
    shape = classifier.image_shape
    if len(shape) == 1:
        raise InputError("classifier", f"one of vectors of {shape[0]}", "a classifier of images")
    if isinstance(step, bool) or not hasattr(step, "__index__") or step < 1:
        raise InputError("step", step, "an integer of at least 1 (pixels)")
    accepted = f"an image of at least {shape[0]}×{shape[1]} pixels"
    if len(shape) == 3:
        accepted += f" in {shape[2]} channels"
    if not isinstance(image, np.ndarray) or image.ndim != len(shape):
        raise InputError("image", getattr(image, "shape", type(image).__name__), accepted)
    if image.shape[2:] != shape[2:] or image.shape[0] < shape[0] or image.shape[1] < shape[1]:
        raise InputError("image", image.shape, accepted)
    check_images(image[None])
    return int(step), parse_size(memory), resolve_jobs(n_jobs)


def _scores(classifier: CompactClassifier, features: np.ndarray) -> np.ndarray:
    """Return scores (rows, columns, k) of features (n, rows, columns)."""
    # Feature by feature: in a matrix product, rounding may depend on the neighbors of a window.
    scores = np.empty((len(classifier.classes_), *features.shape[1:]), np.float32)
    scores[:] = classifier.intercept[:, None, None]
    product = np.empty(features.shape[1:], np.float32)
    for j, values in enumerate(features):
        for c in range(len(scores)):
            np.multiply(values, classifier.weights[c, j], out=product)
            scores[c] += product
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
    evaluating each window alone, with the same result.

    Parameters
    ----------
    classifier, image, n_jobs, memory
        As in :func:`score_map`.
    step : int, default 1
        Classify every ``step``-th pixel of both axes; the pixels around it get its class.
    smooth : int, default 1
        Side, odd, of the square in which the pixels then vote for the one in the middle, see
        :func:`majority`; 1 changes nothing.

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
        np.minimum(np.arange(side) // step, n - 1)
        for side, n in zip(image.shape[:2], labels.shape, strict=True)
    )
    return majority(labels[np.ix_(rows, cols)], smooth, len(classifier.classes_))


def check_side(smooth: int, argument: str = "smooth") -> None:
    """Check the side of the square in which pixels vote; an error calls it ``argument``."""
    odd = hasattr(smooth, "__index__") and not isinstance(smooth, bool)
    if not odd or smooth < 1 or smooth % 2 == 0:
        raise InputError(argument, smooth, "an odd integer of at least 1 (pixels)")


def majority(labels: np.ndarray, side: int, n_classes: int) -> np.ndarray:
    """Return the most frequent label of the square around each pixel, cut at the map's edges."""
    # Among equally frequent labels the pixel's own wins, then the lowest.
    import cv2

    check_side(side, "side")
    if side == 1:
        return labels
    winners = labels.copy()
    most_votes = np.zeros(labels.shape, np.int32)
    # Beyond twice the map a larger square counts the same pixels.
    size = tuple(min(side, 2 * length + 1) for length in labels.shape[::-1])
    for c in range(n_classes):
        mask = (labels == c).astype(np.uint8)
        counts = cv2.boxFilter(
            mask, cv2.CV_32S, size, normalize=False, borderType=cv2.BORDER_CONSTANT
        )
        # Half a vote more: the pixel keeps its own label among equals.
        votes = 2 * counts + mask
        better = votes > most_votes
        winners[better] = c
        most_votes[better] = votes[better]
    return winners


def class_colors(n: int) -> np.ndarray:
    """Return the colors of ``n`` classes, (n, 3) uint8, the same in every map."""
    # The first sixteen are distinct with any color vision; later ones step through the hues.
    colors = [tuple(bytes.fromhex(text)) for text in _COLORS[:n]]
    for i in range(len(colors), n):
        # The golden ratio keeps neighbors apart, however many there are.
        rgb = colorsys.hsv_to_rgb(0.618034 * i % 1.0, 0.55 + 0.4 * (i % 2), 0.9)
        colors.append(tuple(round(255 * v) for v in rgb))
    return np.array(colors, np.uint8).reshape(n, 3)


def overlay(image: np.ndarray, labels: np.ndarray, n_classes: int) -> np.ndarray:
    """Return the image with the colors of its classes laid over it, (height, width, 3) uint8."""
    gray = image.astype(np.float32)
    if image.ndim == 2 or image.shape[2] != 3:
        gray = gray.reshape(*labels.shape, -1).mean(axis=2, keepdims=True)
    return np.round(0.55 * gray + 0.45 * class_colors(n_classes)[labels]).astype(np.uint8)
