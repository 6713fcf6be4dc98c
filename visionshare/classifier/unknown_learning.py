"""Learning when to refuse a picture: from known pictures, and unlike ones that are made of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from visionshare.classifier.unknown import (
    LEVELS,
    UnknownRule,
    appearance,
    check_rate,
    checked_unknown_label,
    measures,
)
from visionshare.datasets.augmentation.strangers import pieces, strangers, turned
from visionshare.datasets.augmentation.windows import off_center, prepared, random_windows
from visionshare.datasets.sampling import sample_per_class, stratified_mask
from visionshare.errors import InputError

if TYPE_CHECKING:
    from visionshare.classifier.compact import CompactClassifier

__all__ = ["FEWEST", "learn_unknown_rule"]

_RIDGE = 0.01
# Known pictures to measure at most, and made ones of each kind.
_MOST_KNOWN, _PER_KIND = 5000, 400
# A class with fewer held-out pictures than these has a threshold between its own and that of all.
_OWN = 20.0
# The share of known pictures that a sum calls rare.
_RARE = 0.02
#: Known pictures to learn from and to calibrate on, at least.
FEWEST = 10


def learn_unknown_rule(
    classifier: CompactClassifier,
    images: Any,
    held_out: Any = None,
    *,
    reject: float = 0.01,
    unknown: Any = None,
    background: Sequence[np.ndarray] | None = None,
    unknown_label: Any = None,
    seed: int = 0,
    n_jobs: int = 1,
) -> UnknownRule:
    """Return the rule that refuses a share of the known pictures, and most others.

    Parameters
    ----------
    classifier : CompactClassifier
    images : array or sequence
        Known pictures, a few hundred at least; those that it learned from do.
    held_out : array or sequence, optional
        Known pictures that it did not learn from; half of ``images`` when omitted, which then
        must be such pictures.
    reject : float, default 0.01
        Share of the known pictures that is refused.
    unknown : array or sequence, optional
        Pictures that are of no class, where there are any: they count as much as all made ones of
        one of two sorts, far from known ones and near to them.
    background : sequence of ndarray (H, W) or (H, W, 3), uint8, optional
        Photographs that show nothing of any class, for :func:`visionshare.reading.find`: windows
        of them are unknown, and known pictures are also seen in them, a little off.
    unknown_label : str, int or float, optional
        What refused pictures are called: "unknown" where classes are texts.
    seed : int, default 0
    n_jobs : int, default 1
        Threads; the result does not depend on it.

    Raises
    ------
    InputError
        If an argument is not accepted, the images are not pictures of bytes, or they are too few.

    Examples
    --------
    >>> from dataclasses import replace
    >>> from sklearn.datasets import load_digits
    >>> from visionshare import ImageClassifier
    >>> digits = load_digits()
    >>> images = (digits.images * 15).astype(np.uint8)
    >>> model = ImageClassifier("pixels", n_jobs=1).fit(images[:600], digits.target[:600])
    >>> rule = learn_unknown_rule(model.classifier_, images[600:1200], unknown_label=-1)
    >>> refusing = replace(model.classifier_, unknown=rule)
    >>> refusing.predict(np.zeros((1, 8, 8), np.uint8)).tolist()
    [-1]
    """
    check_rate("reject", reject)
    label = checked_unknown_label(unknown_label, classifier.classes)
    # 1) Known pictures to measure, and others to calibrate on.
    known = _bytes_of(classifier, images, "images")
    known_scores = classifier.decision_function(known, n_jobs)
    if held_out is None:
        calibrates = stratified_mask(np.argmax(known_scores, axis=1), 0.5, seed)
        calibrating, calibrating_scores = known[calibrates], known_scores[calibrates]
        known, known_scores = known[~calibrates], known_scores[~calibrates]
    else:
        calibrating = _bytes_of(classifier, held_out, "held_out")
        calibrating_scores = classifier.decision_function(calibrating, n_jobs)
    for name, some in (("images", known), ("held_out", calibrating)):
        if len(some) < FEWEST:
            raise InputError(name, f"{len(some)} pictures", f"{FEWEST} known pictures or more")
    labels = np.argmax(known_scores, axis=1)
    per_class = -(-_MOST_KNOWN // len(classifier.classes))
    some = sample_per_class(labels, per_class, np.random.default_rng(seed))
    known, known_scores, labels = known[some], known_scores[some], labels[some]
    if background is not None:
        _check_background(classifier, background)
        # Where ink is cut out, it is never off.
        if not classifier.preprocessing.crop and classifier.preprocessing.fit == "resize":
            known = np.concatenate([known, off_center(known, background, seed)])
            known_scores = classifier.decision_function(known, n_jobs)
            labels = np.tile(labels, 2)
            moved = off_center(calibrating, background, seed + 1)
            calibrating = np.concatenate([calibrating, moved])
            calibrating_scores = classifier.decision_function(calibrating, n_jobs)
    # 2) Pictures of no class: made ones, and those at hand.
    n_each = min(_PER_KIND, max(20, len(known) // 4))
    groups = [strangers(known, labels, n_each, seed)]
    groups.append(_near(classifier, known, labels, n_each, seed))
    if unknown is not None:
        groups.append(_bytes_of(classifier, unknown, "unknown"))
    if background is not None:
        windows = random_windows(background, 2 * _PER_KIND, known.shape[1:], seed)
        groups.append(prepared(windows, classifier.preprocessing))
    # 3) What pictures of each class look like, and how they vary.
    temperature = classifier.temperature
    seen = appearance(known, known_scores, temperature)
    rule = _appearances(seen, labels, len(classifier.classes), label, float(reject))
    # 4) Weights of the two sums: ridge regression of known (1) against unknown (-1).
    tables = [measures(known, known_scores, temperature, rule)]
    for group in groups:
        scores = classifier.decision_function(group, n_jobs)
        tables.append(measures(group, scores, temperature, rule))
    n = 2 * len(rule.center)
    weights = np.stack([_ridge(tables, np.arange(n + 1)), _ridge(tables, np.arange(n, n + 8))])
    # 5) Both sums on one scale: 0 for common known pictures, -1 for rare ones.
    measured = measures(calibrating, calibrating_scores, temperature, rule)
    sums = measured @ weights.T
    common = np.median(sums, axis=0)
    weights /= np.maximum(common - np.quantile(sums, _RARE, axis=0), 1e-6)[:, None]
    weights[:, -1] -= np.median(measured @ weights.T, axis=0)
    # 6) The share of known pictures below each sum, by predicted class.
    best = np.argmax(calibrating_scores, axis=1)
    lower = (measured @ weights.T).min(axis=1)
    offsets, quantiles = _calibrated(lower, best, len(classifier.classes))
    return replace(
        rule,
        weights=weights.astype(np.float32),
        offsets=offsets.astype(np.float32),
        quantiles=quantiles.astype(np.float32),
    )


def _near(
    classifier: CompactClassifier, known: np.ndarray, labels: np.ndarray, n: int, seed: int
) -> np.ndarray:
    """Return pictures of no class that are hard to tell from known ones; they count as the others.

    They are pieces of known pictures, and copies that are mirrored or turned: those that the
    classifier takes for another class, as a picture of a letter, and not those of a flower.
    """
    copies, rows = turned(known, 3 * n, seed)
    is_other = np.argmax(classifier.decision_function(copies), axis=1) != labels[rows]
    return np.concatenate([copies[is_other], pieces(known, labels, n, seed)])


def _check_background(classifier: CompactClassifier, background: Sequence[np.ndarray]) -> None:
    n_axes = 3 if classifier.picture_mode == "color" else 2
    for picture in background:
        if picture.ndim != n_axes or picture.dtype != np.uint8:
            given = f"a picture of {picture.ndim} axes and type {picture.dtype}"
            accepted = f"{n_axes} axes and bytes, as pictures of the classifier"
            raise InputError("background", given, accepted)
    if len(background) == 0:
        raise InputError("background", "no pictures", "photographs that show nothing of any class")


def _bytes_of(classifier: CompactClassifier, images: Any, name: str) -> np.ndarray:
    if classifier.picture_size is None:
        raise InputError("classifier", "of vectors", "a classifier of pictures")
    rasters = classifier.rasters(images)
    if rasters.dtype != np.uint8:
        raise InputError(name, f"values of type {rasters.dtype}", "pictures of bytes")
    return rasters


def _appearances(
    seen: np.ndarray, labels: np.ndarray, k: int, label: Any, reject: float
) -> UnknownRule:
    """Return a rule without weights: the mean of each class, and the covariance they share."""
    from sklearn.covariance import ledoit_wolf

    center = seen.mean(axis=0)
    scale = seen.std(axis=0) + 1e-6
    n = seen.shape[1] - 3
    counted = (seen / scale)[:, :n]
    every = counted.mean(axis=0)
    means = np.stack(
        [counted[labels == c].mean(axis=0) if c in labels else every for c in range(k)]
    )
    covariance, _ = ledoit_wolf(counted - means[labels], assume_centered=True)
    precision = np.linalg.inv(covariance + 1e-6 * np.eye(n))
    # The distance is |Lᵀ (seen − mean)|², with the precision L Lᵀ.
    whitening = np.linalg.cholesky(precision).T / scale[:n]
    nothing = np.zeros(0)
    arrays = (means * scale[:n], whitening, center, scale, nothing, nothing, nothing)
    return UnknownRule(label, reject, *(array.astype(np.float32) for array in arrays))


def _ridge(parts: list[np.ndarray], columns: np.ndarray) -> np.ndarray:
    """Return weights that tell the first part from the others, which count as much together."""
    sizes = list(map(len, parts))
    n_others = len(parts) - 1
    X = np.concatenate(parts)[:, columns]
    y = np.repeat([1.0] + [-1.0] * n_others, sizes)
    weight = np.repeat(np.divide([0.5] + [0.5 / n_others] * n_others, sizes), sizes)
    mean = weight @ X
    spread = np.sqrt(weight @ (X - mean) ** 2) + 1e-6
    Z = (X - mean) / spread
    normal = (Z * weight[:, None]).T @ Z + _RIDGE * np.eye(Z.shape[1])
    weights = np.zeros(parts[0].shape[1])
    weights[columns] = np.linalg.solve(normal, Z.T @ (weight * y)) / spread
    return weights


def _calibrated(sums: np.ndarray, best: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return an offset for each class, and the quantiles of what is left."""
    whole = float(np.median(sums))
    offsets = np.full(k, whole)
    for number in np.unique(best):
        of_class = sums[best == number]
        own = len(of_class) / (len(of_class) + _OWN)
        offsets[number] += own * (np.median(of_class) - whole)
    left = sums - offsets[best]
    # Of n pictures, one more may be as strange as the strangest.
    levels = np.clip((np.array(LEVELS) * (len(left) + 1) - 1) / len(left), 0, 1)
    return offsets, np.quantile(left, levels)
