"""ImageRegressor: images and values in, such as dials, ages or angles; a compact classifier out."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from visionshare.answers import Answers, ValueRule, checked_period, checked_values
from visionshare.classifier import CompactClassifier
from visionshare.datasets import Augmentation
from visionshare.datasets.image_kinds import as_array
from visionshare.errors import InputError
from visionshare.generators import FeatureFamily
from visionshare.image_classifier.estimator import ImageClassifier
from visionshare.image_classifier.exporting import exported
from visionshare.image_classifier.trials import table
from visionshare.learners.examples import check_length
from visionshare.machine.resources import resolve_jobs

__all__ = ["ImageRegressor"]


class _LevelClassifier(ImageClassifier):
    """A classifier of levels, which learns and compares what is between them."""

    def __init__(self, answers: Answers, **parameters: Any) -> None:
        super().__init__(**parameters)
        self._answers = answers


class ImageRegressor(RegressorMixin, BaseEstimator):
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

    def __init__(
        self,
        features: str | FeatureFamily = "auto",
        *,
        period: float | None = None,
        budget: float | Mapping[str, float] | None = None,
        time: float | None = None,
        size: int | tuple[int, int] | None = None,
        color: str | bool = "auto",
        augment: str | bool | Augmentation = "auto",
        random_state: Any = 0,
        n_jobs: int | None = -1,
    ) -> None:
        self.features = features
        self.period = period
        self.budget = budget
        self.time = time
        self.size = size
        self.color = color
        self.augment = augment
        self.random_state = random_state
        self.n_jobs = n_jobs

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
        self._adopt(replace(inner.classifier_, classes=rule.classes, answer=rule))
        self.recipe_ = inner.recipe_
        self.search_results_ = inner.search_results_
        self.validation_error_ = inner.validation_error_
        return self

    def _adopt(self, classifier: CompactClassifier) -> None:
        self.classifier_ = classifier
        self.image_shape_ = classifier.image_shape
        if len(classifier.image_shape) == 1:
            self.n_features_in_ = classifier.image_shape[0]

    def predict(self, images: Any) -> np.ndarray:
        """Return the value of each image, (n,)."""
        check_is_fitted(self)
        return self.classifier_.predict(images, resolve_jobs(self.n_jobs))

    @property
    def cost_(self) -> dict[str, int]:
        """What prediction costs: multiply-accumulates per image, learned numbers, and bytes."""
        check_is_fitted(self)
        model = self.classifier_
        return {"macs": model.macs, "parameters": model.n_parameters, "bytes": model.nbytes}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the compact classifier to a file, as :func:`visionshare.load` reads it."""
        check_is_fitted(self)
        self.classifier_.save(path)

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
        loaded.recipe_ = None
        loaded.search_results_ = table([])
        loaded.validation_error_ = math.nan
        return loaded

    def export(
        self, path: str | os.PathLike[str], format: str = "c", calibrate: Any = None
    ) -> list[Path]:
        """Write a C program or an ONNX model; return the files: see :meth:`ImageClassifier.export`.

        The program has a function of the value of an image, the model an output ``value``.
        """
        check_is_fitted(self)
        return exported(self.classifier_, Path(path), format, calibrate, resolve_jobs(self.n_jobs))

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "classifier_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.input_tags.string = True
        return tags
