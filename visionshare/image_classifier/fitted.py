"""What estimators of images share once they are fitted: cost, files, exports."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from visionshare.answers import Answers
from visionshare.classifier import CompactClassifier
from visionshare.image_classifier.exporting import exported
from visionshare.image_classifier.trials import table
from visionshare.learners.examples import checked_table
from visionshare.machine.resources import resolve_jobs


class ImageEstimator(BaseEstimator):
    """An estimator whose fit leaves a compact classifier."""

    classifier_: CompactClassifier
    n_jobs: int | None
    _answers: Answers | None = None

    def _adopt(
        self,
        classifier: CompactClassifier,
        recipe: str | None = None,
        results: dict[str, list[Any]] | None = None,
        error: float = math.nan,
    ) -> None:
        """Become what was learned; of a file it is not known how."""
        self.classifier_ = classifier
        self.image_shape_ = classifier.image_shape
        self.recipe_ = recipe
        self.search_results_ = table([]) if results is None else results
        self.validation_error_ = error
        if len(self.image_shape_) == 1:
            self.n_features_in_ = self.image_shape_[0]

    def _scores(self, images: Any) -> np.ndarray:
        check_is_fitted(self)
        if len(self.image_shape_) == 1:
            images = checked_table(self, images, reset=False)
        return self.classifier_.decision_function(images, resolve_jobs(self.n_jobs))

    @property
    def cost_(self) -> dict[str, int]:
        """What prediction costs: multiply-accumulates per image, learned numbers, and bytes."""
        check_is_fitted(self)
        model = self.classifier_
        return {"macs": model.macs, "parameters": model.n_parameters, "bytes": model.nbytes}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the compact classifier to a file, as :func:`visionshare.load` reads it.

        The file takes what this estimator takes: values are scaled and pictures prepared alike.

        Raises
        ------
        StorageError
            If the file cannot be written.
        """
        check_is_fitted(self)
        self.classifier_.save(path)

    def export(
        self, path: str | os.PathLike[str], format: str = "c", calibrate: Any = None
    ) -> list[Path]:
        """Write the compact classifier as a C program or an ONNX model; return the files.

        Of values the program has a function ``NAME_value`` and the model an output ``value``; of
        several labels they are ``NAME_has`` and ``has``.

        Parameters
        ----------
        path : path-like
            A folder; for "onnx" and "tflite" also a file.
        format : {"c", "onnx", "tflite"}, default "c"
        calibrate : images as in ``fit``, optional
            Training images, a thousand do: the program then computes in integers, with tables of 8
            bits; see :func:`visionshare.classifier.quantize`.

        Raises
        ------
        InputError
            If the format is unknown, files of others are there, or the features of the classifier
            cannot be computed in integers.
        ExportError
            If the features have no such form.
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
