"""Explanations: what each feature of one image said, for which class, and where it responded."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from visionshare.class_labels import class_names, quoted
from visionshare.classifier.compact import CompactClassifier
from visionshare.datasets.intake import as_rasters
from visionshare.errors import InputError
from visionshare.generators.contributions import clipped_boxes, whole_boxes
from visionshare.scores import predict_labels


@dataclass(frozen=True, eq=False)
class Explanation:
    """The scores of one image, taken apart: a score is the sum of its contributions and its base.

    Contributions are relative to zero: a feature that is 0 adds nothing. Only differences between
    classes change a probability; :attr:`evidence` are contributions relative to the mean of the
    classes, so that what all classes share is left out.

    Parameters
    ----------
    classes : ndarray of shape (k,)
    scores, probabilities : ndarray of shape (k,), float64
    label : int or str
        The class of the highest score.
    base : ndarray of shape (k,), float64
        What no feature adds: the intercept, and offsets inside features.
    families : tuple of str
        Of each feature, (p,).
    numbers : ndarray of shape (p,), int64
        Of the features, from 1, as the report shows them.
    values : ndarray of shape (p,), float64
    contributions : ndarray of shape (k, p), float64
    boxes : ndarray of shape (p, 4), float64
        First row, last row (exclusive), first column and last column (exclusive) of the pixels
        that each feature responded to.
    everywhere : ndarray of shape (p,), bool
        Whether a feature saw the whole image.
    size : tuple of int
        Height and width of what the boxes are in; (1, n) where examples are vectors.

    Examples
    --------
    >>> from visionshare import Pixels
    >>> from visionshare.classifier import CompactClassifier, explain
    >>> family = Pixels().fit(np.zeros((1, 2, 2))).take([0, 3])
    >>> model = CompactClassifier(family, np.eye(2), np.zeros(2), np.array(["a", "b"]))
    >>> said = explain(model, np.array([[1.0, 0.0], [0.0, 0.5]]))
    >>> (said.contributions.sum(axis=1) + said.base).tolist()
    [1.0, 0.5]
    """

    classes: np.ndarray
    scores: np.ndarray
    probabilities: np.ndarray
    label: Any
    base: np.ndarray
    families: tuple[str, ...]
    numbers: np.ndarray
    values: np.ndarray
    contributions: np.ndarray
    boxes: np.ndarray
    everywhere: np.ndarray
    size: tuple[int, int]

    @property
    def evidence(self) -> np.ndarray:
        """Contributions relative to the mean of the classes, (k, p)."""
        return self.contributions - self.contributions.mean(axis=0)

    @property
    def base_evidence(self) -> np.ndarray:
        """The base relative to the mean of the classes, (k,)."""
        return self.base - self.base.mean()

    def class_index(self, name: Any = None) -> int:
        """Return the index of a class, of the predicted one when omitted.

        Raises
        ------
        InputError
            If there is no such class.
        """
        names = class_names(self.classes)
        wanted = str(self.label if name is None else name)
        if wanted not in names:
            raise InputError("class", wanted, f"one of {quoted(names)}")
        return names.index(wanted)

    def rival(self, k: int) -> int:
        """Return the index of the most probable class but one."""
        others = np.argsort(-self.scores, kind="stable")
        return int(others[others != k][0])

    def top_features(self, k: int, n: int = 10) -> np.ndarray:
        """Return the features with the largest evidence for or against a class, at most ``n``.

        Parameters
        ----------
        k : int
            Index of the class.
        n : int, default 10

        Returns
        -------
        ndarray of int64
        """
        amounts = np.abs(self.evidence[k])
        order: np.ndarray = np.argsort(-amounts, kind="stable")[:n]
        return order[amounts[order] > 0]

    def evidence_map(self, k: int) -> np.ndarray:
        """Return the evidence for a class by pixel, (height, width): each feature's, over its box.

        Evidence of features that saw the whole image is left out: it is nowhere.
        """
        height, width = self.size
        evidence = self.evidence[k, ~self.everywhere]
        boxes = np.rint(self.boxes[~self.everywhere]).astype(int)
        rows = boxes[:, :2].clip(0, height)
        cols = boxes[:, 2:].clip(0, width)
        areas = np.maximum((rows[:, 1] - rows[:, 0]) * (cols[:, 1] - cols[:, 0]), 1)
        # Twice the running sum of what changes at the corners is what the boxes hold.
        changes = np.zeros((height + 1, width + 1))
        for i, j, sign in ((0, 0, 1), (0, 1, -1), (1, 0, -1), (1, 1, 1)):
            np.add.at(changes, (rows[:, i], cols[:, j]), sign * evidence / areas)
        return changes.cumsum(axis=0).cumsum(axis=1)[:-1, :-1]

    def placed(self, boxes: np.ndarray, size: tuple[int, int]) -> Explanation:
        """Return the same with boxes (p, 4) in a picture of this height and width, cut to it."""
        return replace(self, boxes=clipped_boxes(boxes, size), size=size)

    def scaled(self, size: tuple[int, int]) -> Explanation:
        """Return the same, of the picture brought to this height and width."""
        factors = np.repeat([a / b for a, b in zip(size, self.size, strict=True)], 2)
        return self.placed(self.boxes * factors, size)


def explain(classifier: CompactClassifier, image: np.ndarray) -> Explanation:
    """Return what each feature of one image added to the score of each class, and where.

    A feature adds value × weight. Of products of features each factor has an equal part (its
    Shapley value); units on a layer of features hand on what they add to their inputs, see
    :meth:`visionshare.generators.layers.units.layer.UnitLayer.shares`.

    Parameters
    ----------
    classifier : CompactClassifier
    image : ndarray of shape image_shape, uint8 or float

    Raises
    ------
    InputError
        If the image is of another shape.

    References
    ----------
    L. S. Shapley, "A value for n-person games", 1953; of linear scores: E. Štrumbelj, I. Kononenko,
    "Explaining prediction models and individual predictions with feature contributions", 2014.

    Examples
    --------
    >>> from visionshare import Pixels
    >>> family = Pixels().fit(np.zeros((1, 2, 2))).take([0, 3])
    >>> weights = np.array([[2.0, 0.0], [0.0, 1.0]])
    >>> model = CompactClassifier(family, weights, np.array([0.5, 0.0]), np.array(["a", "b"]))
    >>> said = explain(model, np.array([[1.0, 0.0], [0.0, 1.0]]))
    >>> said.label, said.contributions.tolist(), said.boxes[1].tolist()
    ('a', [[2.0, 0.0], [0.0, 1.0]], [1.0, 2.0, 1.0, 2.0])
    """
    if np.shape(image) != classifier.image_shape:
        raise InputError("image", np.shape(image), f"an image of shape {classifier.image_shape}")
    rasters = classifier.rasters(image)
    scores = classifier.decision_function(as_rasters(rasters))
    image = rasters[0]
    parts = classifier.family.contributions(image, classifier.weights)
    size = classifier.picture_size or (1, classifier.image_shape[0])
    return Explanation(
        classifier.classes_,
        scores[0].astype(np.float64),
        classifier.probabilities(scores)[0].astype(np.float64),
        predict_labels(classifier.classes_, scores).tolist()[0],
        parts.rest + classifier.intercept,
        parts.families,
        parts.numbers,
        parts.values,
        parts.amounts,
        parts.boxes,
        (parts.boxes == whole_boxes(1, size)).all(axis=1),
        size,
    )
