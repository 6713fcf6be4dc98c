"""One classifier from several of the same classes: the mean of their scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from visionshare.classifier.compact import CompactClassifier
from visionshare.classifier.path import PathStep
from visionshare.datasets.training_values import TrainingValues
from visionshare.errors import InputError
from visionshare.generators.union import UnionOfFamilies

__all__ = ["averaged"]


def averaged(classifiers: Sequence[CompactClassifier]) -> CompactClassifier:
    """Return one classifier whose scores are the mean of those of several, at the cost of all.

    Scores are not rescaled: the classifiers should be trained with the same settings, with
    different seeds or images. Where all weights are whole numbers of features in whole numbers,
    scores are sums, and the temperature is as many times as large: labels and probabilities are
    those of the mean, and everything stays whole.

    Parameters
    ----------
    classifiers : sequence of CompactClassifier
        Of the same images and preprocessing, with the same classes in the same order.

    Returns
    -------
    CompactClassifier
        Of a union of the families. Its path is a single step, it has no exit rule; its
        temperature, and the training loss and error of its step, are means over the classifiers.
        The metadata are those of the first, with their number as ``members``.

    Raises
    ------
    InputError
        If there are none, or they do not fit each other.

    Examples
    --------
    >>> from visionshare import Pixels
    >>> pixels = Pixels().fit(np.zeros((1, 2)))
    >>> one, other = (
    ...     CompactClassifier(pixels, np.array(w, np.float32), np.zeros(2), np.arange(2))
    ...     for w in ([[1, 0], [0, 1]], [[0, 0], [0, 4]])
    ... )
    >>> averaged([one, other]).decision_function(np.array([[3.0, 1.0]])).tolist()
    [[1.5, 2.5]]
    """
    members = list(classifiers)
    if not members:
        raise InputError("classifiers", "none", "one classifier or more")
    first, n = members[0], len(members)
    for other in members[1:]:
        if not np.array_equal(other.classes_, first.classes_):
            raise InputError("classifiers", other.classes_.tolist(), f"{first.classes_.tolist()}")
        if other.image_shape != first.image_shape or other.preprocessing != first.preprocessing:
            raise InputError("classifiers", "other images", "images of one shape and preprocessing")
    values = _common_values(members)
    if n == 1:
        return first
    family = UnionOfFamilies.of([c.family for c in members])
    divisor = 1 if all(map(_is_whole, members)) else n
    weights = np.concatenate([c.weights for c in members], axis=1) / np.float32(divisor)
    total = np.stack([c.intercept for c in members]).sum(axis=0, dtype=np.float64)
    intercept = np.asarray(total / divisor, np.float32)
    temperature = sum(c.temperature for c in members) / divisor
    steps = [c.path[-1] for c in members if c.path]
    loss, error = (
        float(np.mean(v)) if v else 0.0
        for v in ([s.loss for s in steps], [s.train_error for s in steps])
    )
    seconds = sum(s.seconds for s in steps)
    macs = int(family.macs())
    step = PathStep.whole(weights, intercept, macs, loss, error, None, seconds)
    metadata = {**first.metadata, "members": n}
    return replace(
        first, family=family, weights=weights, intercept=intercept, temperature=temperature,
        path=(step,), metadata=metadata, exit_rule=None, values=values,
    )  # fmt: skip


def _common_values(members: Sequence[CompactClassifier]) -> TrainingValues | None:
    """Return the values that all members were trained on; those of numbers may differ."""
    first, *others = (member.values for member in members)
    if first is None or any(other is None for other in others):
        return None
    known = [first, *(other for other in others if other is not None)]
    if any((one.kind, one.arrays) != (first.kind, first.arrays) for one in known):
        raise InputError("classifiers", "other images", "training images of one kind of values")
    if first.arrays != "numbers" and any(one != first for one in known):
        ranges = [one.range for one in known]
        raise InputError("classifiers", ranges, "training images of one range of values")
    low, high = min(one.low for one in known), max(one.high for one in known)
    return replace(first, low=low, high=high)


def _is_whole(classifier: CompactClassifier) -> bool:
    """Return whether scores are whole numbers."""
    return classifier.family.in_whole_numbers and all(
        np.array_equal(numbers, np.rint(numbers))
        for numbers in (classifier.weights, classifier.intercept)
    )
