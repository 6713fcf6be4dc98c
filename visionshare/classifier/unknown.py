"""Whether a picture is of a classifier's kind at all, from its scores and a view of the picture.

A rule measures how sure the scores are, how the picture looks from afar (a few coefficients of its
cosine transform, its contrast), and how far that is from pictures of the class. Two sums weigh the
measures by what tells known pictures from ones that no class has, which are made from the known
ones: one of all measures, one of the few that also judge pictures unlike any that were made. The
lower one counts. Where held-out pictures show that it helps, a distance of the features joins: how
far a few weighted sums of them are from their means in the class. It needs no unknown pictures.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from visionshare.errors import InputError
from visionshare.scores import softmax

# Coefficients of the view are SIDE × SIDE.
_SIDE = 6
#: Shares of the known pictures whose score is below the quantiles of a rule.
LEVELS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0)
# Measures of the scores, of contrast and slopes; what is seen of a picture, and all measures.
_SCORES = 4
_CONTRASTS = 3
_SEEN = _SIDE * _SIDE + _SCORES + _CONTRASTS
_N = _SEEN + _CONTRASTS
# Measures count no more than a rare known picture's, in standard deviations.
LARGEST = 3.0
_BATCH = 1024
# Small values of contrast are told apart on a scale of logarithms.
FAINT = 0.01
# The view of images, and their contrast and slopes.
Look = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True, eq=False)
class UnknownRule:
    """The rule that refuses a picture: too few known pictures look as unfamiliar.

    Attributes
    ----------
    label : str, int or float
        What refused pictures are called.
    reject : float
        Share of the known pictures that is refused.
    means : ndarray of shape (k, 43), float32
        What pictures of each class look like: see :func:`appearance`.
    whitening : ndarray of shape (43, 43), float32
        The squared length of what it makes of an appearance minus its mean is the distance.
    center, scale : ndarray of shape (46,), float32
        Of the measures among known pictures.
    weights : ndarray of shape (r, 101), or (r, 102) with directions, float32
        Of the measures in the sums; the lowest one counts.
    offsets : ndarray of shape (k,), float32
        Subtracted from the lowest sum, by predicted class.
    quantiles : ndarray of shape (10,), float32
        Of what is left, among known pictures, at :data:`LEVELS`.
    directions : ndarray of shape (d, n_features), float32, optional
        Weights of features in the sums whose distance to their means is a measure.
    feature_means : ndarray of shape (k, d), float32, optional
        Of these sums, among known pictures of each class.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from visionshare import ImageClassifier
    >>> digits = load_digits()
    >>> model = ImageClassifier("pixels", reject=0.05, unknown_label=-1, n_jobs=1)
    >>> images = (digits.images[:600] * 15).astype(np.uint8)
    >>> rule = model.fit(images, digits.target[:600]).classifier_.unknown
    >>> rule.label, rule.reject
    (-1, 0.05)
    """

    label: Any
    reject: float
    means: np.ndarray
    whitening: np.ndarray
    center: np.ndarray
    scale: np.ndarray
    weights: np.ndarray
    offsets: np.ndarray
    quantiles: np.ndarray
    directions: np.ndarray | None = None
    feature_means: np.ndarray | None = None

    def check(self, classes: np.ndarray, n_features: int) -> None:
        """Check the rule against the classes and the number of features of a classifier."""
        k = len(classes)
        rows = max(1, len(self.weights))
        n_measures = 2 * _N + (9 if self.directions is None else 10)
        shapes: dict[str, tuple[int, ...]] = {
            "means": (k, _SEEN), "whitening": (_SEEN, _SEEN), "center": (_N,), "scale": (_N,),
            "weights": (rows, n_measures), "offsets": (k,), "quantiles": (len(LEVELS),),
        }  # fmt: skip
        if self.directions is not None:
            d = len(self.directions)
            shapes |= {"directions": (d, n_features), "feature_means": (k, d)}
        for name, shape in shapes.items():
            array = np.asarray(getattr(self, name))
            if array.shape != shape or not np.isfinite(array).all():
                raise InputError(f"unknown.{name}", array.shape, f"finite, of shape {shape}")
        if (np.diff(self.quantiles) < 0).any():
            raise InputError("unknown.quantiles", self.quantiles.tolist(), "ascending numbers")
        check_rate("reject", self.reject)
        checked_unknown_label(self.label, classes)

    def known(self, images: np.ndarray, sums: np.ndarray, temperature: float) -> np.ndarray:
        """Return the share of known pictures that look as strange as each image, (n,).

        The sums are scores, followed by the sums of the directions, (n, k + d).
        """
        starts = range(0, max(1, len(images)), _BATCH)
        parts = [slice(i, i + _BATCH) for i in starts]
        return np.concatenate(
            [self.seen(looks(images[part]), sums[part], temperature) for part in parts]
        )

    def seen(self, look: Look, sums: np.ndarray, temperature: float) -> np.ndarray:
        """Return the shares (n,) of images that look like this."""
        best = np.argmax(sums[:, : len(self.means)], axis=1)
        return self.shares(measures(look, sums, temperature, self), best)

    def shares(self, measured: np.ndarray, best: np.ndarray) -> np.ndarray:
        """Return the shares (n,) of images that are measured, and of these classes."""
        lowest = (measured @ self.weights.T.astype(np.float64)).min(axis=1)
        left = lowest - self.offsets[best]
        # Below the lowest quantile the share falls on, by the distance: 0 is never reached.
        low = self.quantiles[0]
        high = self.quantiles[-2]
        span = max(float(high - low), 1e-6)
        below = LEVELS[0] * np.exp(np.minimum(left - low, 0) / span)
        return np.where(left < low, below, np.interp(left, self.quantiles, LEVELS))

    def labels(self, classes: np.ndarray, scores: np.ndarray, known: np.ndarray) -> np.ndarray:
        """Return the class of each image, or the rule's label where fewer are known."""
        best = np.where(known < self.reject, len(classes), np.argmax(scores, axis=1))
        return np.asarray(self.names(classes)[best])

    def names(self, classes: np.ndarray) -> np.ndarray:
        """Return the classes and, after them, the label of refused pictures."""
        # Numbers of booleans have room for a third.
        whole = classes.astype(np.int64) if classes.dtype.kind == "b" else classes
        return np.append(whole, np.array([self.label], object if whole.dtype == object else None))

    def to_values(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return plain values and arrays that a file holds."""
        names = _ARRAYS if self.directions is None else _ARRAYS + _OF_FEATURES
        arrays = {name: getattr(self, name) for name in names}
        return {"label": self.label, "reject": self.reject}, arrays

    @staticmethod
    def from_values(values: Any, arrays: Mapping[str, np.ndarray]) -> UnknownRule | None:
        """Return what :meth:`to_values` described; None for None."""
        if values is None:
            return None
        if not isinstance(values, dict) or set(values) != {"label", "reject"}:
            raise InputError("unknown", values, "a table of label and reject")
        names = _ARRAYS + _OF_FEATURES if "directions" in arrays else _ARRAYS
        missing = [name for name in names if name not in arrays]
        if missing:
            raise InputError("unknown", f"no {missing[0]}", f"the arrays {', '.join(names)}")
        kept = {name: arrays[name].astype(np.float32) for name in names}
        return UnknownRule(values["label"], values["reject"], **kept)


_ARRAYS = ("means", "whitening", "center", "scale", "weights", "offsets", "quantiles")
_OF_FEATURES = ("directions", "feature_means")


def checked_unknown_label(label: Any, classes: np.ndarray) -> Any:
    """Return the label of refused pictures; "unknown" for None where classes are texts."""
    kind = classes.dtype.kind
    if label is None and kind in "UO":
        label = "unknown"
    label = label.item() if isinstance(label, np.generic) else label
    types: dict[str, tuple[tuple[type, ...], str]] = {
        "U": ((str,), "a text"), "O": ((str,), "a text"),
        "i": ((int,), "a whole number"), "u": ((int,), "a whole number"),
        "f": ((int, float), "a finite number"), "b": ((int,), "a whole number"),
    }  # fmt: skip
    accepted, words = types[kind]
    is_right = isinstance(label, accepted) and not isinstance(label, bool)
    is_right = is_right and (isinstance(label, str) or bool(np.isfinite(label)))
    if not is_right or label in classes.tolist():
        raise InputError(
            "unknown_label",
            label,
            f"{words} that is no class: -1, for example"
            if words != "a text"
            else f"{words} that is no class",
        )
    return label


def check_rate(name: str, rate: Any) -> None:
    is_number = isinstance(rate, (int, float)) and not isinstance(rate, bool)
    if not is_number or not 0 < rate < 1:
        raise InputError(name, rate, "a share of the known pictures above 0 and below 1, like 0.01")


@lru_cache(maxsize=64)
def view_matrix(side: int, n: int = _SIDE) -> np.ndarray:
    """Return the matrix (n, side) that averages n cells of an axis, and takes their cosines."""
    # 1) Each cell is the mean of its pixels, those at its ends in part.
    edges = np.linspace(0, side, n + 1)
    pixels = np.arange(side)
    cells = np.minimum(edges[1:, None], pixels + 1) - np.maximum(edges[:-1, None], pixels)
    cells = np.clip(cells, 0, None) * (n / side)
    # 2) The orthonormal cosine transform of the cells.
    frequency, place = np.meshgrid(np.arange(n), np.arange(n), indexing="ij")
    cosines = np.cos(np.pi * (place + 0.5) * frequency / n) * np.sqrt(2 / n)
    cosines[0] /= np.sqrt(2)
    return np.asarray(cosines @ cells)


def looks(images: np.ndarray) -> Look:
    """Return the view (n, 36) of images, and their contrast and mean slopes (n, 3)."""
    gray = images.reshape(*images.shape[:3], -1).mean(axis=3) / 255
    rows, columns = gray.shape[1:]
    view = view_matrix(rows) @ gray @ view_matrix(columns).T
    axes = (1, 2)
    slopes = [np.abs(np.diff(gray, axis=axis)).sum(axis=axes) / (rows * columns) for axis in axes]
    return view.reshape(len(gray), -1), np.stack([gray.std(axis=axes), *slopes], axis=1)


def looks_of_windows(
    image: np.ndarray, ys: np.ndarray, xs: np.ndarray, shape: tuple[int, ...]
) -> Look:
    """Return the :func:`looks` of windows of an image that begin at rows ys and columns xs."""
    rows, columns = shape[:2]
    gray = image.reshape(*image.shape[:2], -1).mean(axis=2) / 255
    # 1) The view: rows of cells at each ys for all columns of the image, then columns of cells.
    strips = np.lib.stride_tricks.sliding_window_view(gray, rows, axis=0)[ys]
    strips = strips @ view_matrix(rows).T
    windows = np.lib.stride_tricks.sliding_window_view(strips, columns, axis=1)[:, xs]
    view = windows @ view_matrix(columns).T
    # 2) Contrast and slopes: differences of sums from the corner of the image.
    n = rows * columns
    mean = _window_sums(gray, ys, xs, rows, columns) / n
    square = _window_sums(gray**2, ys, xs, rows, columns) / n
    down = _window_sums(np.abs(np.diff(gray, axis=0)), ys, xs, rows - 1, columns) / n
    across = _window_sums(np.abs(np.diff(gray, axis=1)), ys, xs, rows, columns - 1) / n
    contrast = np.sqrt(np.maximum(square - mean**2, 0))
    return view.reshape(len(contrast), -1), np.stack([contrast, down, across], axis=1)


def _window_sums(
    values: np.ndarray, ys: np.ndarray, xs: np.ndarray, rows: int, columns: int
) -> np.ndarray:
    total = np.pad(values, ((1, 0), (1, 0))).cumsum(axis=0).cumsum(axis=1)
    down = total[ys + rows] - total[ys]
    return np.asarray((down[:, xs + columns] - down[:, xs]).ravel())


def appearance(look: Look, scores: np.ndarray, temperature: float) -> np.ndarray:
    """Return how sure scores are and how images look, (n, 46)."""
    # Four numbers of the scores, the view, the logarithms of contrast and slopes, and these.
    scaled = np.asarray(scores, np.float64) / temperature
    two = np.partition(scaled, scaled.shape[1] - 2, axis=1)[:, -2:]
    largest = softmax(scores, temperature).max(axis=1)
    # The logarithm of the sum of exponentials: the largest has the largest score.
    sure = [two[:, 1] - np.log(largest), largest, two[:, 1], two[:, 0]]
    view, contrast = look
    return np.column_stack([*sure, view, np.log(contrast + FAINT), contrast])


def few_measures() -> list[int]:
    """Return the columns of an appearance that are measured without bounds."""
    return [*range(_SCORES), *range(_SEEN - _CONTRASTS, _SEEN)]


def measures(look: Look, sums: np.ndarray, temperature: float, rule: UnknownRule) -> np.ndarray:
    """Return what the sums of a rule weigh, (n, 101) or (n, 102)."""
    # The standardized appearance within bounds, its squares, the distance to the class, what is
    # known of the scores and of contrast without bounds, the distance of the features if the rule
    # has one, and 1.
    scores = sums[:, : len(rule.means)]
    best = np.argmax(scores, axis=1)
    seen = appearance(look, scores, temperature)
    standard = (seen - rule.center) / rule.scale
    bounded = np.clip(standard, -LARGEST, LARGEST)
    away = (seen[:, :_SEEN] - rule.means[best]) @ rule.whitening.T.astype(np.float64)
    parts = [bounded, bounded**2, _distance(away), standard[:, few_measures()]]
    if rule.feature_means is not None:
        parts.append(_distance(sums[:, len(rule.means) :] - rule.feature_means[best]))
    return np.column_stack([*parts, np.ones(len(seen))])


def _distance(away: np.ndarray) -> np.ndarray:
    """Return a distance on a scale of logarithms, (n,), from what differs, (n, d)."""
    return np.asarray(np.log1p((away.astype(np.float64) ** 2).sum(axis=1)))
