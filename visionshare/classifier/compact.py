"""Compact classifiers: evaluation, prefixes of the learning path, cost, saving and loading."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, BinaryIO

import numpy as np

from visionshare.classifier.compilers import Compiled, find_compiler
from visionshare.classifier.exit_rule import ExitRule, check_rule
from visionshare.classifier.file_format import read_parts, write_parts
from visionshare.classifier.path import PathStep
from visionshare.datasets.preprocessing import Preprocessing
from visionshare.errors import ClassifierFileError, InputError
from visionshare.generators.base import FeatureFamily
from visionshare.scores import predict_labels, softmax

__all__ = ["CompactClassifier"]

_BATCH = 4096


class CompactClassifier:
    """A classifier of a few image features that all classes share.

    Parameters
    ----------
    family : FeatureFamily
        The chosen features: a family restricted to them.
    weights : ndarray of shape (k, n_features), float32
    intercept : ndarray of shape (k,), float32
    classes : ndarray of shape (k,)
        Integers or strings.
    temperature : float, default 1.0
        Divides the scores in :meth:`predict_proba`.
    path : sequence of PathStep, optional
        The classifier after each round of learning.
    metadata : dict, optional
        Plain values that travel in the file.
    exit_rule : ExitRule, optional
        Where images may stop early, see :func:`visionshare.classifier.learn_exit_rule`;
        :class:`visionshare.classifier.EarlyExit` follows it, the classifier itself evaluates all
        features.
    preprocessing : Preprocessing, optional
        How pictures become images of ``image_shape``, see :meth:`read`; they are stretched when
        omitted.

    Attributes
    ----------
    classes_ : ndarray of shape (k,)
    image_shape : tuple of int
        Shape of one image.

    Examples
    --------
    >>> import numpy as np
    >>> from visionshare import CompactClassifier, Pixels
    >>> family = Pixels().fit(np.zeros((1, 2, 2))).take([0, 3])
    >>> weights = np.array([[1, 0], [0, 1]], np.float32)
    >>> model = CompactClassifier(family, weights, np.zeros(2, np.float32), np.array(["a", "b"]))
    >>> model.predict(np.array([[0.0, 0.0], [0.0, 1.0]]))
    array(['b'], dtype='<U1')
    """

    def __init__(
        self,
        family: FeatureFamily,
        weights: np.ndarray,
        intercept: np.ndarray,
        classes: np.ndarray,
        temperature: float = 1.0,
        path: Sequence[PathStep] = (),
        metadata: Mapping[str, Any] | None = None,
        exit_rule: ExitRule | None = None,
        preprocessing: Preprocessing | None = None,
    ) -> None:
        self.family = family
        self.weights = np.ascontiguousarray(weights, np.float32)
        self.intercept = np.ascontiguousarray(intercept, np.float32)
        self.classes_ = np.asarray(classes)
        self.temperature = float(temperature)
        self.path = tuple(path)
        self.metadata = dict(metadata or {})
        k, n = len(self.classes_), family.n_features_
        if self.weights.shape != (k, n):
            raise InputError("weights", self.weights.shape, f"an array of shape {(k, n)}")
        if self.intercept.shape != (k,):
            raise InputError("intercept", self.intercept.shape, f"an array of shape {(k,)}")
        if k < 2 or self.classes_.ndim != 1:
            raise InputError("classes", self.classes_.shape, "a vector of two classes or more")
        if not (np.isfinite(self.weights).all() and np.isfinite(self.intercept).all()):
            raise InputError("weights", "NaN or infinity", "finite numbers")
        if not (np.isfinite(self.temperature) and self.temperature > 0):
            raise InputError("temperature", temperature, "a finite number above 0")
        self.exit_rule = exit_rule
        if exit_rule is not None:
            check_rule(exit_rule, len(self.path))
        self.preprocessing = Preprocessing() if preprocessing is None else preprocessing
        if self.picture_size is not None:
            self.preprocessing.check_size(self.picture_size)

    @property
    def image_shape(self) -> tuple[int, ...]:
        """Shape of one image."""
        return tuple(self.family.image_shape_)

    @property
    def picture_size(self) -> tuple[int, int] | None:
        """Height and width that pictures are brought to; None where examples are vectors."""
        shape = self.image_shape
        return None if len(shape) == 1 else (shape[0], shape[1])

    @property
    def picture_mode(self) -> str:
        """Whether pictures are read as ``"gray"`` or in ``"color"``."""
        return "color" if self.image_shape[2:] == (3,) else "gray"

    @property
    def n_features(self) -> int:
        """Number of features."""
        return int(self.family.n_features_)

    @property
    def macs(self) -> int:
        """Multiply-accumulates an image: features and scores."""
        return int(self.family.macs()) + self.weights.size

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays that prediction needs."""
        _, arrays = self.family.to_state()
        held = sum(array.nbytes for array in arrays.values())
        return int(held + self.weights.nbytes + self.intercept.nbytes)

    @property
    def features(self) -> list[dict[str, Any]]:
        """Each feature's description, with its weights by class."""
        described = []
        for j in range(self.n_features):
            weights = dict(zip(self.classes_.tolist(), self.weights[:, j].tolist(), strict=True))
            described.append({**self.family.describe(j), "weights": weights})
        return described

    def read(
        self, source: str | os.PathLike[str] | BinaryIO, largest: int | None = None
    ) -> np.ndarray:
        """Return the image of a picture file, prepared as the classifier takes it.

        Parameters
        ----------
        source : path-like or binary file
        largest : int, optional
            Pixels that a picture may have, checked before they are decoded.

        Returns
        -------
        ndarray of shape image_shape, uint8

        Raises
        ------
        DataError
            If it is no picture, broken or too large.
        InputError
            If the classifier's examples are vectors.
        """
        from visionshare.datasets.folders import read_image

        size = self.picture_size
        if size is None or self.image_shape[2:] not in ((), (1,), (3,)):
            raise InputError("classifier", f"shape {self.image_shape}", "one of gray or RGB images")
        limits = {} if largest is None else {"largest": largest}
        raster = read_image(source, size, self.picture_mode, self.preprocessing, **limits)
        return raster.reshape(self.image_shape)

    def decision_function(self, images: np.ndarray, n_jobs: int = 1) -> np.ndarray:
        """Return scores (n, k), float32.

        Parameters
        ----------
        images : ndarray of shape (n, *image_shape) or image_shape
            One image or many, uint8 or float.
        n_jobs : int, default 1
            Threads for many images; the result does not depend on it.

        Raises
        ------
        InputError
            If the images have another shape or hold values that are not finite.
        """
        images = np.asarray(images)
        if images.shape == self.image_shape:
            images = images[None]
        if len(images) <= _BATCH:
            return self._scores(images, n_jobs)
        parts = range(0, len(images), _BATCH)
        return np.concatenate([self._scores(images[i : i + _BATCH], n_jobs) for i in parts])

    def _scores(self, images: np.ndarray, n_jobs: int) -> np.ndarray:
        # A stranger's file may hold numbers that overflow: scores are then inf or nan.
        with np.errstate(over="ignore", invalid="ignore"):
            return self.family.weighted_sums(images, self.weights, n_jobs) + self.intercept

    def predict(self, images: np.ndarray, n_jobs: int = 1) -> np.ndarray:
        """Return the class of each image."""
        return predict_labels(self.classes_, self.decision_function(images, n_jobs))

    def predict_proba(self, images: np.ndarray, n_jobs: int = 1) -> np.ndarray:
        """Return probabilities (n, k), the softmax of scores / temperature."""
        return self.probabilities(self.decision_function(images, n_jobs))

    def probabilities(self, scores: np.ndarray) -> np.ndarray:
        """Return the probabilities (n, k) of scores (n, k); NaN where scores overflowed."""
        with np.errstate(over="ignore", invalid="ignore"):
            return softmax(scores, self.temperature)

    def with_exit_rule(self, rule: ExitRule | None) -> CompactClassifier:
        """Return the same classifier with another rule, or with none."""
        return CompactClassifier(**{**self._parts(), "exit_rule": rule})

    def with_preprocessing(self, preprocessing: Preprocessing | None) -> CompactClassifier:
        """Return the same classifier for pictures prepared otherwise, or stretched."""
        return CompactClassifier(**{**self._parts(), "preprocessing": preprocessing})

    def with_path(self, path: Sequence[PathStep]) -> CompactClassifier:
        """Return the same classifier with another account of its learning."""
        return CompactClassifier(**{**self._parts(), "path": path})

    def _parts(self) -> dict[str, Any]:
        """Return the arguments of a classifier that is equal to this one."""
        return {
            "family": self.family,
            "weights": self.weights,
            "intercept": self.intercept,
            "classes": self.classes_,
            "temperature": self.temperature,
            "path": self.path,
            "metadata": self.metadata,
            "exit_rule": self.exit_rule,
            "preprocessing": self.preprocessing,
        }

    def at(self, t: int) -> CompactClassifier:
        """Return the classifier after the first ``t`` rounds of learning.

        Its probabilities are those of the temperature that was fitted to the whole classifier.

        Raises
        ------
        InputError
            If the path has no such round.
        """
        if isinstance(t, bool) or not hasattr(t, "__index__") or not 1 <= t <= len(self.path):
            raise InputError("t", t, f"a round from 1 to {len(self.path)}")
        step, rule = self.path[t - 1], self.exit_rule
        if rule is not None:
            n = sum(r < t for r in rule.rounds)
            rule = ExitRule(rule.rounds[:n], rule.margins[:n])
        return CompactClassifier(
            self.family.take(np.arange(step.n_features)),
            step.weights,
            step.intercept,
            self.classes_,
            self.temperature,
            self.path[:t],
            self.metadata,
            rule,
            self.preprocessing,
        )

    def summary(self) -> dict[str, Any]:
        """Return plain values that describe the classifier."""
        return {
            "family": type(self.family).name,
            "features": self.n_features,
            "classes": self.classes_.tolist(),
            "image_shape": list(self.image_shape),
            "macs": self.macs,
            "nbytes": self.nbytes,
            "rounds": len(self.path),
            "temperature": self.temperature,
            "exit_rounds": [] if self.exit_rule is None else list(self.exit_rule.rounds),
            "preprocessing": self.preprocessing.to_values(),
            "metadata": self.metadata,
        }

    def compile(self, target: str = "c", **options: Any) -> Compiled:
        """Return an estimator that computes the same, compiled for this machine.

        Parameters
        ----------
        target : str, default "c"
            What to compile; "c" is the exported C through the system's compiler, installed
            packages may offer others, see :func:`visionshare.classifier.compilers.find_compiler`.
        **options
            Of the compiler; of "c": ``pixel``, ``quantize`` and ``early_exit``, see
            :func:`visionshare.export.compile_classifier`.

        Raises
        ------
        InputError
            If an option is out of range or the classifier cannot be compiled.
        ExportError
            If there is no such compiler, no C compiler, or it fails.

        Examples
        --------
        >>> from visionshare import Pixels
        >>> family = Pixels().fit(np.zeros((1, 2, 2))).take([0, 3])
        >>> model = CompactClassifier(family, np.eye(2), np.zeros(2), np.array(["a", "b"]))
        >>> fast = model.compile(quantize="int8")  # doctest: +SKIP
        >>> fast.predict(np.array([[0, 0], [0, 255]], np.uint8))  # doctest: +SKIP
        array(['b'], dtype='<U1')
        """
        return find_compiler(target)(self, **options)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the classifier to one data-only file, whole or not at all."""
        write_parts(path, self._parts())

    @staticmethod
    def load(path: str | os.PathLike[str]) -> CompactClassifier:
        """Read a classifier file.

        Raises
        ------
        ClassifierFileError
            If the file is missing, broken, foreign, or of a version this library does not know.
        """
        parts = read_parts(path)
        try:
            return CompactClassifier(**parts)
        except InputError as error:
            raise ClassifierFileError(f"{path}: not a sound classifier ({error})") from None
