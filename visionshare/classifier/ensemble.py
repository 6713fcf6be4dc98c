"""Several classifiers of the same classes as one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from visionshare.classifier.compact import CompactClassifier
from visionshare.classifier.path import PathStep
from visionshare.errors import InputError
from visionshare.generators.union import UnionOfFamilies

__all__ = ["averaged"]


def averaged(classifiers: Sequence[CompactClassifier]) -> CompactClassifier:
    """Return one classifier whose scores are the mean of several ones', at the cost of all.

    Scores count as they are: the classifiers should be learned alike, from other seeds or images.

    Parameters
    ----------
    classifiers : sequence of CompactClassifier
        Of the same images, prepared in the same way, with the same classes in the same order.

    Returns
    -------
    CompactClassifier
        Of a union of the families. Its path is a single step, it has no exit rule; its
        temperature, and the training loss and error of its step, are the means of theirs.

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
    held = list(classifiers)
    if not held:
        raise InputError("classifiers", "none", "one classifier or more")
    first, n = held[0], len(held)
    for other in held[1:]:
        if not np.array_equal(other.classes_, first.classes_):
            raise InputError("classifiers", other.classes_.tolist(), f"{first.classes_.tolist()}")
        if other.image_shape != first.image_shape or other.preprocessing != first.preprocessing:
            raise InputError("classifiers", "other images", "images of one shape and preparation")
    if n == 1:
        return first
    family = UnionOfFamilies.of([c.family for c in held])
    weights = np.concatenate([c.weights for c in held], axis=1) / np.float32(n)
    intercept = np.asarray(np.stack([c.intercept for c in held]).mean(axis=0), np.float32)
    temperature = float(np.mean([c.temperature for c in held]))
    steps = [c.path[-1] for c in held if c.path]
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
        path=(step,), metadata=metadata, exit_rule=None,
    )  # fmt: skip
