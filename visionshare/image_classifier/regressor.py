"""ImageRegressor: images and values in, such as dials, ages or angles; a compact classifier out."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from visionshare.answers import Answers, ValueRule, checked_period, checked_values
from visionshare.classifier import CompactClassifier
from visionshare.datasets import Augmentation
from visionshare.datasets.image_kinds import as_array
from visionshare.errors import InputError
from visionshare.generators import FeatureFamily
from visionshare.image_classifier.estimator import ImageClassifier
from visionshare.image_classifier.fitted import ImageEstimator
from visionshare.learners.examples import check_length
from visionshare.machine.resources import resolve_jobs


class _LevelClassifier(ImageClassifier):
    """A classifier of levels, which learns and compares what is between them."""

    def __init__(self, answers: Answers, **parameters: Any) -> None:
        super().__init__(**parameters)
        self._answers = answers


@dataclass(eq=False, repr=False)
class ImageRegressor(RegressorMixin, ImageEstimator):
    """A value of an image, such as that of a dial, an age, a count or an angle.

    It searches, learns and exports as :class:`ImageClassifier` does: the classes are levels, close
    to each other where values are, and the value is the mean of the levels by their probabilities.
    What compares trials is how far values are off.

    Parameters
    ----------
    features, budget, time, size, color, augment, random_state, n_jobs
        As of :class:`ImageClassifier`. Mirrored or turned copies keep their value: where the
        value is an angle or a side, say ``augment=False`` or give an ``Augmentation`` without.
    period : float, optional
        Values that differ by it are the same: 360 for degrees, 12 for the hours of a clock.

    Attributes
    ----------
    classifier_ : CompactClassifier
        What was learned; its ``predict`` gives values.
    search_results_ : dict of lists
        All trials, as of :class:`ImageClassifier`: an error is the mean absolute error of
        held-out images, as a fraction of that of answering the median.
    validation_error_ : float
        That of what was chosen; the least of several, so that it is a little low.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> heights = rng.integers(0, 12, 200)
    >>> images = np.zeros((200, 16, 16), np.uint8)
    >>> for image, height in zip(images, heights):
    ...     image[15 - height :] = 255
    >>> bars = ImageRegressor("pixels", n_jobs=1).fit(images[:150], heights[:150])
    >>> bool(np.abs(bars.predict(images[150:]) - heights[150:]).mean() < 0.5)
    True
    """

    features: str | FeatureFamily = "auto"
    _: KW_ONLY
    period: float | None = None
    budget: float | Mapping[str, float] | None = None
    time: float | None = None
    size: int | tuple[int, int] | None = None
    color: str | bool = "auto"
    augment: str | bool | Augmentation = "auto"
    random_state: Any = 0
    n_jobs: int | None = -1

    def fit(self, images: Any, y: Any, *, groups: Any = None) -> ImageRegressor:
        """Choose and learn what says the values of images.

        Parameters
        ----------
        images : array or sequence
            As for :meth:`ImageClassifier.fit`.
        y : array-like of shape (n,)
            Finite numbers, at least two different ones.
        groups : array-like of shape (n,), optional
            Images of one object or burst: trials never compare on a group that they learn.

        Raises
        ------
        InputError
            If a parameter, the images or the values are not accepted.
        """
        period = checked_period(self.period)
        values = checked_values(y, period)
        check_length(values, len(as_array(images)))
        rule = ValueRule.of(values, period)
        parameters = self.get_params(deep=False)
        del parameters["period"]
        inner = _LevelClassifier(Answers(values, rule), **parameters, pretrained=False)
        inner.fit(images, rule.numbers(values), groups=groups)
        found = (inner.recipe_, inner.search_results_, inner.validation_error_)
        self._adopt(inner.classifier_, *found)
        return self

    def predict(self, images: Any) -> np.ndarray:
        """Return the value of each image, (n,)."""
        check_is_fitted(self)
        return self.classifier_.predict(images, resolve_jobs(self.n_jobs))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> ImageRegressor:
        """Return a fitted estimator of a file of values, whoever wrote it.

        Raises
        ------
        ClassifierFileError
            If the file is missing, broken, foreign, or of a version this library does not know.
        InputError
            If it says classes and no values.
        """
        classifier = CompactClassifier.load(path)
        if not isinstance(classifier.answer, ValueRule):
            raise InputError("path", os.fspath(path), "a file of values; visionshare.load reads it")
        loaded = cls(period=classifier.answer.period)
        loaded._adopt(classifier)
        return loaded
