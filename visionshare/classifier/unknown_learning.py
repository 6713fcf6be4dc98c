"""Learning when to refuse a picture: from known pictures, and unlike ones that are made of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from visionshare.classifier.unknown import (
    LEVELS,
    Look,
    UnknownRule,
    appearance,
    check_rate,
    checked_unknown_label,
    looks,
    measures,
)
from visionshare.datasets.augmentation.strangers import pieces, strangers, turned
from visionshare.datasets.augmentation.windows import off_center, prepared, random_windows
from visionshare.datasets.sampling import sample_per_class, stratified_mask
from visionshare.errors import InputError

if TYPE_CHECKING:
    from visionshare.classifier.compact import CompactClassifier


_RIDGE = 0.01
# Known pictures to measure at most, and made ones of each kind.
_MOST_KNOWN = 5000
_PER_KIND = 400
# A class with fewer held-out pictures than these has a threshold between its own and that of all.
_OWN = 20.0
# The share of known pictures that a sum calls rare.
_RARE = 0.02
# Weighted sums of features that make a distance, and features that are weighted, at most.
_DIRECTIONS = 8
_MOST_FEATURES = 4096
# A later choice of sums is taken if it refuses more made pictures by this share: real strangers are
# farther, and the distance alone tells them even better.
_WORTH = 0.02
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
    scores = classifier.decision_function(known, n_jobs)
    if held_out is None:
        calibrates = stratified_mask(np.argmax(scores, axis=1), 0.5, seed)
        calibrating = known[calibrates]
        known = known[~calibrates]
        scores = scores[~calibrates]
    else:
        calibrating = _bytes_of(classifier, held_out, "held_out")
    for name, some in (("images", known), ("held_out", calibrating)):
        if len(some) < FEWEST:
            raise InputError(name, f"{len(some)} pictures", f"{FEWEST} known pictures or more")
    labels = np.argmax(scores, axis=1)
    per_class = -(-_MOST_KNOWN // len(classifier.classes))
    rows = sample_per_class(labels, per_class, np.random.default_rng(seed))
    known = known[rows]
    labels = labels[rows]
    windows: list[np.ndarray] = []
    if background is not None:
        _check_background(classifier, background)
        # Where ink is cut out, it is never off.
        if not classifier.preprocessing.crop and classifier.preprocessing.fit == "resize":
            known = np.concatenate([known, off_center(known, background, seed)])
            labels = np.tile(labels, 2)
            moved = off_center(calibrating, background, seed + 1)
            calibrating = np.concatenate([calibrating, moved])
        cut = random_windows(background, 3 * _PER_KIND, known.shape[1:], seed)
        windows = np.split(prepared(cut, classifier.preprocessing), [2 * _PER_KIND])
    # 2) Pictures of no class: made ones, and those at hand. Fresh ones judge the rules.
    groups = [*_made(classifier, known, labels, seed), *windows[:1]]
    if unknown is not None:
        groups.append(_bytes_of(classifier, unknown, "unknown"))
    plain = replace(classifier, unknown=None)
    learning = [_seen(plain, some, n_jobs) for some in (known, *groups)]
    held = _seen(plain, calibrating, n_jobs)
    best = np.argmax(held.sums, axis=1)
    fresh = [*_made(classifier, calibrating, best, seed + 1), *windows[1:]]
    judging = [_seen(plain, some, n_jobs) for some in fresh]
    # 3) What pictures of each class look like, and how they vary.
    temperature = classifier.temperature
    seen = appearance(learning[0].look, learning[0].sums, temperature)
    rule = _appearances(seen, labels, len(classifier.classes), label, float(reject))
    directions = _directions(learning, labels, len(classifier.classes))
    if directions is not None:
        means = _class_means(learning[0].values @ directions.T, labels, len(classifier.classes))
        rule = replace(rule, directions=directions, feature_means=means.astype(np.float32))
    # 4) Rules of two or three sums: with the distance alone, in some of them, or nowhere.
    tables, (measured,), judged = (
        [measures(one.look, one.beside(directions), temperature, rule) for one in some]
        for some in (learning, [held], judging)
    )
    n = 2 * len(rule.center)
    every = np.arange(n + 1)
    few = np.arange(n, n + 8)
    away = np.array([n + 8])
    choices: list[list[np.ndarray]] = [[every, few]]
    if directions is not None:
        both = [np.append(every, away), np.append(few, away)]
        choices = [[every, few, away], [*both, away], [both[0], few], [every, few]]
    rules = [_weighted(rule, [_ridge(tables, c) for c in sums], measured, best) for sums in choices]
    # 5) The first one that refuses nearly as many fresh pictures of no class as the best.
    refused = np.array([
        np.mean([
            np.mean(made.shares(table, np.argmax(one.sums, axis=1)) < reject)
            for one, table in zip(judging, judged, strict=True)
        ])
        for made in rules
    ])  # fmt: skip
    chosen = rules[int(np.argmax(refused >= refused.max() - _WORTH))]
    if chosen is not rules[-1] or directions is None:
        return chosen
    weights = np.delete(chosen.weights, away, axis=1)
    return replace(chosen, weights=weights, directions=None, feature_means=None)


class _Seen(NamedTuple):
    """How pictures look, their scores, and their features where there is to be a distance."""

    look: Look
    sums: np.ndarray
    values: np.ndarray | None

    def beside(self, directions: np.ndarray | None) -> np.ndarray:
        """Return the scores and, beside them, the sums of directions."""
        if directions is None or self.values is None:
            return self.sums
        return np.hstack([self.sums, self.values @ directions.T])


def _seen(classifier: CompactClassifier, images: np.ndarray, n_jobs: int) -> _Seen:
    # Networks of whole numbers stay so.
    if classifier.n_features > _MOST_FEATURES or classifier.family.in_whole_numbers:
        return _Seen(looks(images), classifier.decision_function(images, n_jobs), None)
    values = classifier.family.transform(images, None, n_jobs)
    return _Seen(looks(images), values @ classifier.weights.T + classifier.intercept, values)


def _directions(parts: list[_Seen], labels: np.ndarray, k: int) -> np.ndarray | None:
    """Return weights of features (d, n_features) in sums that strangers take far from a class."""
    # The first part is known pictures, for which the sums vary by 1 about the mean of the class.
    from scipy.linalg import eigh
    from sklearn.covariance import ledoit_wolf

    values = parts[0].values
    if values is None:
        return None
    means = _class_means(values, labels, k)
    covariance, _ = ledoit_wolf(values - means[labels], assume_centered=True)
    n = len(covariance)
    covariance += (1e-6 * np.trace(covariance) / n + 1e-12) * np.eye(n)
    strange = np.zeros((n, n))
    for part in parts[1:]:
        away = part.values - means[np.argmax(part.sums, axis=1)]
        strange += away.T @ away / len(away)
    few = (max(0, n - _DIRECTIONS), n - 1)
    _, found = eigh(strange, covariance, subset_by_index=few)
    return np.ascontiguousarray(found.T, np.float32)


def _class_means(values: np.ndarray, labels: np.ndarray, k: int) -> np.ndarray:
    """Return the mean of each class (k, n); of all where there is none of a class."""
    every = values.mean(axis=0)
    means = [values[labels == c].mean(axis=0) if c in labels else every for c in range(k)]
    return np.stack(means)


def _weighted(
    rule: UnknownRule, sums: list[np.ndarray], measured: np.ndarray, best: np.ndarray
) -> UnknownRule:
    """Return the rule with weights of sums, calibrated on known pictures."""
    weights = np.stack(sums)
    # 1) All sums on one scale: 0 for common known pictures, -1 for rare ones.
    found = measured @ weights.T
    common = np.median(found, axis=0)
    weights /= np.maximum(common - np.quantile(found, _RARE, axis=0), 1e-6)[:, None]
    weights[:, -1] -= np.median(measured @ weights.T, axis=0)
    # 2) The share of known pictures below the lowest sum, by predicted class.
    lowest = (measured @ weights.T).min(axis=1)
    offsets, quantiles = _calibrated(lowest, best, len(rule.means))
    return replace(
        rule,
        weights=weights.astype(np.float32),
        offsets=offsets.astype(np.float32),
        quantiles=quantiles.astype(np.float32),
    )


def _made(
    classifier: CompactClassifier, known: np.ndarray, labels: np.ndarray, seed: int
) -> list[np.ndarray]:
    """Return made pictures of no class, of two sorts: far from known ones, and near to them."""
    n = min(_PER_KIND, max(20, len(known) // 4))
    return [strangers(known, labels, n, seed), _near(classifier, known, labels, n, seed)]


def _near(
    classifier: CompactClassifier, known: np.ndarray, labels: np.ndarray, n: int, seed: int
) -> np.ndarray:
    """Return pictures of no class that are hard to tell from known ones."""
    # They are pieces of known pictures, and copies that are mirrored or turned: those that the
    # classifier takes for another class, as a picture of a letter, and not a picture of a flower.
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
    means = _class_means(counted, labels, k)
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
