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


def averaged(classifiers: Sequence[CompactClassifier]) -> CompactClassifier:
    """Return one classifier whose scores are the mean of several classifiers', at the cost of all.

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
        The metadata come from the first, with their number as ``members``.

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
    # 1) Members fit each other.
    members = list(classifiers)
    if not members:
        raise InputError("classifiers", "none", "one classifier or more")
    first = members[0]
    for other in members[1:]:
        if not np.array_equal(other.classes_, first.classes_):
            raise InputError("classifiers", other.classes_.tolist(), f"{first.classes_.tolist()}")
        if other.image_shape != first.image_shape or other.preprocessing != first.preprocessing:
            raise InputError("classifiers", "other images", "images of one shape and preprocessing")
    values = _common_values(members)
    if len(members) == 1:
        return first
    # 2) All features side by side, and the mean of the scores: the sum, where scores are whole.
    family = UnionOfFamilies.of([one.family for one in members])
    divisor = 1 if all(map(_is_whole, members)) else len(members)
    weights = np.concatenate([one.weights for one in members], axis=1) / np.float32(divisor)
    total = np.sum([one.intercept for one in members], axis=0, dtype=np.float64)
    intercept = np.asarray(total / divisor, np.float32)
    # 3) One step of learning.
    steps = [one.path[-1] for one in members if one.path]
    step = PathStep.whole(
        weights,
        intercept,
        family_macs=int(family.macs()),
        loss=_mean([step.loss for step in steps]),
        train_error=_mean([step.train_error for step in steps]),
        validation_error=None,
        seconds=sum(step.seconds for step in steps),
    )
    return replace(
        first,
        family=family,
        weights=weights,
        intercept=intercept,
        temperature=sum(one.temperature for one in members) / divisor,
        path=(step,),
        metadata={**first.metadata, "members": len(members)},
        exit_rule=None,
        unknown=None,
        values=values,
    )


def _mean(values: list[float]) -> float:
    return float(np.mean(values)) if values else 0.0


def _common_values(members: Sequence[CompactClassifier]) -> TrainingValues | None:
    """Return the values that all members were trained on; ranges of numbers may differ."""
    known = [one.values for one in members if one.values is not None]
    if len(known) < len(members):
        return None
    first = known[0]
    if any((one.kind, one.arrays) != (first.kind, first.arrays) for one in known):
        raise InputError("classifiers", "other images", "training images of one kind of values")
    if first.arrays != "numbers" and any(one != first for one in known):
        ranges = [one.range for one in known]
        raise InputError("classifiers", ranges, "training images of one range of values")
    low = min(one.low for one in known)
    high = max(one.high for one in known)
    return replace(first, low=low, high=high)


def _is_whole(classifier: CompactClassifier) -> bool:
    """Return whether scores are whole numbers."""
    numbers = (classifier.weights, classifier.intercept)
    whole = all(np.array_equal(one, np.rint(one)) for one in numbers)
    return whole and classifier.family.in_whole_numbers
