"""Where things are in a picture: a classifier of crops looks through windows of many sizes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np

from visionshare.classifier import CompactClassifier
from visionshare.classifier.unknown import looks_of_windows
from visionshare.datasets.augmentation.windows import prepared
from visionshare.datasets.intake import UNCHANGED, as_rasters
from visionshare.errors import InputError
from visionshare.generators.windows import cut_windows

# Windows that are classified at once, at most.
_BATCH = 8192
_MOST_WINDOWS = 4_000_000


@dataclass(frozen=True)
class Found:
    """A thing in a picture.

    Attributes
    ----------
    box : tuple of int
        First row, first column, last row and last column (exclusive).
    label : str, int, float or bool
        Its class.
    score : float
        The probability of the class, times the share of known pictures that look as strange.
    """

    box: tuple[int, int, int, int]
    label: Any
    score: float


def find(
    classifier: CompactClassifier,
    picture: np.ndarray,
    *,
    smallest: int | None = None,
    step: float = 0.1,
    scale: float = 1.15,
    least: float = 0.1,
    apart: float = 0.3,
    n_jobs: int = 1,
) -> list[Found]:
    """Return the things in a picture, the surest first.

    Parameters
    ----------
    classifier : CompactClassifier
        Of crops; with a rule for unknown pictures, which are the background.
    picture : ndarray of shape (H, W) or (H, W, 3), uint8
    smallest : int, optional
        Shorter side of the smallest window; that of the classifier's images when omitted.
    step : float, default 0.1
        Distance of windows, as a part of their side.
    scale : float, default 1.15
        How many times as large the next windows are.
    least : float, default 0.1
        Score of a thing at least: the lower, the more are found, and the more wrongly.
    apart : float, default 0.3
        Of things that overlap more (intersection over union), the surest stays.
    n_jobs : int, default 1
        Threads; the result does not depend on it.

    Raises
    ------
    InputError
        If the classifier has no rule, or an argument is not accepted.

    Examples
    --------
    >>> from visionshare import Pixels
    >>> from dataclasses import replace
    >>> from visionshare.classifier import learn_unknown_rule
    >>> rng = np.random.default_rng(0)
    >>> crops = rng.integers(0, 40, (400, 8, 8), np.uint8)
    >>> crops[::2, 2:4] += 200
    >>> crops[1::2, :, 2:4] += 200
    >>> family = Pixels().fit(crops)
    >>> weights = np.stack([crops[::2].mean(axis=0), crops[1::2].mean(axis=0)]).reshape(2, -1)
    >>> model = CompactClassifier(family, weights / 255, np.zeros(2), np.array(["-", "|"]))
    >>> model = replace(model, unknown=learn_unknown_rule(model, crops))
    >>> picture = np.full((24, 24), 120, np.uint8)
    >>> picture[8:16, 8:16] = crops[0]
    >>> [(one.label, one.box) for one in find(model, picture, step=0.25, least=0.02)]
    [('-', (8, 8, 16, 16))]
    """
    # 1) What is accepted.
    size = classifier.picture_size
    if classifier.unknown is None or size is None:
        accepted = "one that knows what is background: trained with reject=0.01, or --reject 0.01"
        raise InputError("classifier", "one without a rule for unknown pictures", accepted)
    smallest = min(size) if smallest is None else smallest
    for name, value, low, high in (
        ("smallest", smallest, 4, 4096), ("step", step, 0.02, 1), ("scale", scale, 1.02, 4),
        ("least", least, 0, 1), ("apart", apart, 0, 1),
    ):  # fmt: skip
        if not low <= value <= high:
            raise InputError(name, value, f"a number from {low} to {high}")
    # 2) The windows of each level of the pyramid, classified.
    boxes: list[np.ndarray] = []
    numbers: list[np.ndarray] = []
    scores: list[np.ndarray] = []
    factor = min(size) / smallest
    n_windows = 0
    while True:
        rows, columns = (round(side * factor) for side in picture.shape[:2])
        if rows < size[0] or columns < size[1]:
            break
        way = cv2.INTER_AREA if factor < 1 else cv2.INTER_LINEAR
        level = cv2.resize(picture, (columns, rows), interpolation=way)
        ys, xs = (
            _begins(length, side, step) for length, side in zip(level.shape, size, strict=False)
        )
        n_windows += len(ys) * len(xs)
        if n_windows > _MOST_WINDOWS:
            accepted = "larger windows (smallest), larger steps, or a smaller picture"
            raise InputError("picture", f"more than {_MOST_WINDOWS} windows", accepted)
        at_once = max(1, _BATCH // len(xs))
        parts = [ys[i : i + at_once] for i in range(0, len(ys), at_once)]
        classified = [_classified(classifier, level, part, xs, n_jobs) for part in parts]
        best, sure = map(np.concatenate, zip(*classified, strict=True))
        likely = sure >= least
        corners = np.stack(np.meshgrid(ys, xs, indexing="ij"), axis=-1).reshape(-1, 2)
        boxes.append((np.hstack([corners, corners + np.array(size)]) / factor)[likely])
        numbers.append(best[likely])
        scores.append(sure[likely])
        factor /= scale
    if not boxes:
        return []
    # 3) Of windows that overlap, the surest.
    every, sure = np.concatenate(boxes), np.concatenate(scores)
    best = np.concatenate(numbers)
    labels = classifier.classes.tolist()
    found = []
    for i in _surest(every, sure, apart):
        top, left, bottom, right = (round(edge) for edge in every[i].tolist())
        found.append(Found((top, left, bottom, right), labels[best[i]], float(sure[i])))
    return found


def overlap(box: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return the intersection over union of a box (4,) with others (n, 4)."""
    sides = np.minimum(box[2:], others[:, 2:]) - np.maximum(box[:2], others[:, :2])
    common = np.clip(sides, 0, None).prod(axis=1)
    areas = (others[:, 2:] - others[:, :2]).prod(axis=1) + (box[2:] - box[:2]).prod()
    return np.asarray(common / np.maximum(areas - common, 1e-12))


def _begins(length: int, side: int, step: float) -> np.ndarray:
    """Return where windows of a side begin, along an axis; the last ones end at the edge."""
    n = int(np.ceil((length - side) / max(1.0, step * side))) + 1
    return np.unique(np.rint(np.linspace(0, length - side, n)).astype(int))


def _classified(
    classifier: CompactClassifier, level: np.ndarray, ys: np.ndarray, xs: np.ndarray, n_jobs: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the likeliest class of each window and its score, 0 for refused ones."""
    rule = classifier.unknown
    assert rule is not None
    shape = classifier.image_shape
    strip = level[ys[0] : ys[-1] + shape[0]]
    ys = ys - ys[0]
    if classifier.preprocessing in UNCHANGED:
        sums = classifier.family.window_sums(strip, ys, xs, classifier.sum_weights, n_jobs)
        scores = sums[:, : len(classifier.classes)]
        scores += classifier.intercept
        look = looks_of_windows(strip, ys, xs, shape)
        known = rule.seen(look, sums, classifier.temperature)
    else:
        images = prepared(cut_windows(strip, ys, xs, shape), classifier.preprocessing)
        scores, shares = classifier.judged(as_rasters(images), n_jobs)
        assert shares is not None
        known = shares
    probabilities = classifier.probabilities(scores)
    sure = np.where(known < rule.reject, 0, probabilities.max(axis=1) * known)
    return probabilities.argmax(axis=1), sure


def _surest(boxes: np.ndarray, scores: np.ndarray, apart: float) -> list[int]:
    """Return the windows that no surer one overlaps, the surest first."""
    left = np.argsort(-scores, kind="stable")
    kept: list[int] = []
    while len(left):
        kept.append(int(left[0]))
        rest = left[1:]
        left = rest[overlap(boxes[left[0]], boxes[rest]) <= apart]
    return kept
