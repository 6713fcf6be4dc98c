"""Predictions of the service, on threads of their own."""

from __future__ import annotations

import asyncio
import io
import math
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from typing import Any, BinaryIO

import numpy as np
from pydantic import BaseModel

from visionshare.apps.pictures import read_picture
from visionshare.apps.service.bodies import Refusal, pixels_of
from visionshare.apps.service.limits import Limits
from visionshare.classifier import CompactClassifier, EarlyExit
from visionshare.errors import DataError
from visionshare.scores import predict_labels

__all__ = ["Prediction", "Reader", "Worker"]

# Makes an image of a picture file: classifier, file, most pixels.
Reader = Callable[[CompactClassifier, BinaryIO, int], np.ndarray]


class Prediction(BaseModel):
    """The answer to a picture.

    A classifier with an exit rule says at which stage it stopped, from 1; ``raster`` is the
    preprocessed image where it is asked for.

    Examples
    --------
    >>> Prediction(label="a", probability=0.9, probabilities={"a": 0.9, "b": 0.1}, macs=12).stage
    """

    label: str
    probability: float | None
    probabilities: dict[str, float | None]
    macs: int
    stage: int | None = None
    raster: list[Any] | None = None


class Worker:
    """Preprocesses and classifies pictures on a pool of threads.

    Parameters
    ----------
    classifier : CompactClassifier
    limits : Limits
    reader : callable
        Makes an image of a picture file, see :func:`visionshare.apps.pictures.read_picture`.

    Attributes
    ----------
    running : int
        Predictions that run or wait. Changed by one thread, the event loop's.
    early : EarlyExit or None
        None for a classifier without an exit rule.

    Examples
    --------
    >>> import numpy as np
    >>> from visionshare import Pixels
    >>> family = Pixels().fit(np.zeros((1, 2))).take([0])
    >>> model = CompactClassifier(family, [[1.0], [-1.0]], np.zeros(2), np.array(["a", "b"]))
    >>> worker = Worker(model, Limits())
    >>> asyncio.run(worker.predict("json", b'{"pixels": [2, 5]}', False)).label
    'a'
    >>> worker.close()
    """

    def __init__(
        self, classifier: CompactClassifier, limits: Limits, reader: Reader = read_picture
    ) -> None:
        self.classifier, self.limits, self.reader = classifier, limits, reader
        self.early = None if classifier.exit_rule is None else EarlyExit(classifier)
        self.running = 0
        self._pool = ThreadPoolExecutor(limits.threads, thread_name_prefix="predict")
        # Compiles the kernels before the first request.
        concurrent = _kernels_run_concurrently(classifier)
        self._kernel_lock: AbstractContextManager[Any] = (
            nullcontext() if concurrent else threading.Lock()
        )

    async def predict(self, kind: str, body: bytes, with_raster: bool) -> Prediction:
        """Return the answer to a body of the kind ``"picture"`` or ``"json"``.

        Raises
        ------
        Refusal
            If too many predictions wait, or the body contains no image for the classifier.
        """
        if self.running >= self.limits.threads + self.limits.max_queue:
            raise Refusal(503, "busy", "too many pictures are waiting; try again")
        self.running += 1
        try:
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._pool, self._predict, kind, body, with_raster)
        finally:
            self.running -= 1

    def close(self) -> None:
        """End the threads, after the predictions that run."""
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _predict(self, kind: str, body: bytes, with_raster: bool) -> Prediction:
        image, model = self._image(kind, body), self.classifier
        with self._kernel_lock:
            if self.early is None:
                scores, stage, macs = model.decision_function(image), None, model.macs
            else:
                scores, stops = self.early.run(image)
                stage, macs = int(stops[0]) + 1, int(self.early.costs[stops[0]])
        names = map(str, model.classes_.tolist())
        values = map(_finite, model.probabilities(scores)[0].tolist())
        probabilities = dict(zip(names, values, strict=True))
        label = str(predict_labels(model.classes_, scores)[0])
        return Prediction(
            label=label,
            probability=probabilities[label],
            probabilities=probabilities,
            macs=macs,
            stage=stage,
            raster=image.tolist() if with_raster else None,
        )

    def _image(self, kind: str, body: bytes) -> np.ndarray:
        if kind == "json":
            return pixels_of(body, self.classifier.image_shape)
        if self.classifier.picture_size is None:
            raise Refusal(415, "unsupported_type", "this classifier takes vectors: send JSON")
        try:
            return self.reader(self.classifier, io.BytesIO(body), self.limits.max_pixels)
        except DataError as error:
            raise Refusal(422, "invalid_picture", str(error)) from None
        except MemoryError:
            raise Refusal(422, "invalid_picture", "decoding it takes too much memory") from None


def _kernels_run_concurrently(classifier: CompactClassifier) -> bool:
    """Classify once; return whether several threads may call kernels at a time."""
    import numba

    classifier.decision_function(np.zeros(classifier.image_shape, np.uint8))
    try:
        return bool(numba.threading_layer() != "workqueue")
    except ValueError:
        # No kernel with threads of its own was called.
        return True


def _finite(value: float) -> float | None:
    return round(value, 6) if math.isfinite(value) else None
