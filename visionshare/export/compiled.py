"""A classifier that computes with its own C, through the system's compiler."""

from __future__ import annotations

import ctypes
import os
import threading
from pathlib import Path

import numpy as np

from visionshare.classifier import CompactClassifier
from visionshare.errors import ExportError, InputError
from visionshare.export.c.program import CProgram, c_program
from visionshare.export.library_cache import cached_library
from visionshare.scores import predict_labels, softmax

_DTYPES = {"uint8": np.uint8, "float32": np.float32}


class _OneImage(threading.local):
    """A thread's memory for single images: asking for addresses in each call would take time."""

    def __init__(
        self, shape: tuple[int, ...], dtype: type, work_bytes: int, k: int, score: str
    ) -> None:
        self.image: np.ndarray = np.empty((1, *shape), dtype)
        self.scores = np.empty((1, k), score)
        self._work = np.empty(work_bytes, np.uint8)
        self.addresses = self.image.ctypes.data, 1, self._work.ctypes.data, self.scores.ctypes.data


class CompiledClassifier:
    """A compact classifier whose C was compiled here; made by :func:`compile_classifier`.

    Attributes
    ----------
    program : CProgram
        The C.
    classes_ : ndarray of shape (k,)
    image_shape : tuple of int
    work_bytes : int
        Bytes of the memory that a call writes to on this machine.

    Examples
    --------
    >>> compiled = compile_classifier(model)  # doctest: +SKIP
    >>> compiled.predict(images)  # doctest: +SKIP
    array(['b', 'a'], dtype='<U1')
    """

    def __init__(self, classifier: CompactClassifier, program: CProgram, library: Path) -> None:
        self.program = program
        self.classes_ = classifier.classes_
        self.image_shape = classifier.image_shape
        self._dtype = _DTYPES[program.pixel]
        try:
            loaded = ctypes.CDLL(str(library))
        except OSError as error:
            message = f"{error}; remove the file, or name another folder (cache_dir)"
            raise ExportError(message) from None
        self.work_bytes = int(getattr(loaded, f"{program.name}_work_bytes")())
        self._batch = getattr(loaded, f"{program.name}_batch")
        self._batch.argtypes = [ctypes.c_void_p, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
        self._batch.restype = None
        self._one = _OneImage(
            self.image_shape, self._dtype, self.work_bytes, len(self.classes_), program.score
        )
        self._temperature = classifier.temperature
        self._answer = classifier.answer

    def decision_function(self, images: np.ndarray) -> np.ndarray:
        """Return scores (n, k), float32, computed by the C.

        Parameters
        ----------
        images : ndarray of shape (n, *image_shape) or image_shape
            Of the type that the C was made for.

        Raises
        ------
        InputError
            If the images have another shape or type, or hold values that are not finite.
        """
        images = np.asarray(images)
        if images.shape == self.image_shape:
            images = images[None]
        if images.shape[1:] != self.image_shape:
            accepted = f"images of shape {(len(images), *self.image_shape)}"
            raise InputError("images", images.shape, accepted)
        images = self._as_pixels(images)
        if len(images) == 1:
            np.copyto(self._one.image, images)
            self._batch(*self._one.addresses)
            return self._as_scores(self._one.scores)
        scores = np.empty((len(images), len(self.classes_)), self.program.score)
        # Its own memory for each call: calls may run at once, and without the interpreter's lock.
        work = np.empty(self.work_bytes, np.uint8)
        self._batch(images.ctypes.data, len(images), work.ctypes.data, scores.ctypes.data)
        return self._as_scores(scores)

    def _as_scores(self, scores: np.ndarray) -> np.ndarray:
        """Return a copy in float32, on the scale of the classifier."""
        return scores.astype(np.float32) * np.float32(self.program.score_scale)

    def _as_pixels(self, images: np.ndarray) -> np.ndarray:
        of_bytes = images.dtype == np.uint8
        if of_bytes != (self._dtype is np.uint8) or images.dtype.kind not in "fiu":
            raise InputError("images", images.dtype, f"{self.program.pixel}, as compiled for")
        if of_bytes:
            return np.ascontiguousarray(images)
        # What is beyond float32 becomes infinite, and is refused.
        with np.errstate(over="ignore"):
            pixels = np.ascontiguousarray(images, np.float32)
        if not np.isfinite(pixels).all():
            raise InputError("images", "NaN or infinity", "finite values")
        return pixels

    def predict(self, images: np.ndarray) -> np.ndarray:
        """Return the class of each image, its value, or its labels."""
        if self._answer is not None:
            return self._answer.said(self.predict_proba(images))
        return predict_labels(self.classes_, self.decision_function(images))

    def predict_proba(self, images: np.ndarray) -> np.ndarray:
        """Return probabilities (n, k), as the classifier does."""
        scores = self.decision_function(images)
        if self._answer is not None:
            return self._answer.probabilities(scores, self._temperature)
        return softmax(scores, self._temperature)


def compile_classifier(
    classifier: CompactClassifier,
    pixel: str | None = None,
    quantize: str = "none",
    early_exit: bool = False,
    cache_dir: str | os.PathLike[str] | None = None,
    examples: np.ndarray | None = None,
) -> CompiledClassifier:
    """Return a classifier that computes with its own C, compiled for this machine.

    Parameters
    ----------
    classifier : CompactClassifier
    pixel : {"uint8", "float32"}, optional
        Type of the images' values; bytes when omitted, floats where examples are vectors.
    quantize : {"none", "int4", "int8", "int16"}, default "none"
        What the tables hold.
    early_exit : bool, default False
        Whether images stop where the classifier's rule says.
    cache_dir : path-like, optional
        Folder of this user alone in which compiled libraries are kept; the user's cache when
        omitted, see :func:`visionshare.export.library_cache.library_folder`.
    examples : ndarray, optional
        Training images for int4, as in :func:`c_program`.

    Returns
    -------
    CompiledClassifier
        With ``predict``, ``decision_function`` and ``predict_proba``.

    Raises
    ------
    InputError
        If an argument is out of range or the classifier cannot be written in C.
    ExportError
        If there is no C compiler or it fails, or others can write to the folder.

    Examples
    --------
    >>> from visionshare import CompactClassifier, Pixels
    >>> family = Pixels().fit(np.zeros((1, 2, 2))).take([0, 3])
    >>> model = CompactClassifier(family, np.eye(2), np.zeros(2), np.array(["a", "b"]))
    >>> image = np.array([[0, 0], [0, 255]], np.uint8)
    >>> compile_classifier(model).predict(image)  # doctest: +SKIP
    array(['b'], dtype='<U1')
    """
    program = c_program(
        classifier, "model", pixel, quantize, early_exit=early_exit, examples=examples, vectors=True
    )
    return CompiledClassifier(classifier, program, cached_library(program, cache_dir))
