"""Predictions of the service, on threads of their own."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
from pydantic import BaseModel

from visionshare.batch.explanation import explain_picture
from visionshare.batch.pictures import read_picture
from visionshare.class_labels import class_names
from visionshare.classifier import CompactClassifier, EarlyExit, explain
from visionshare.datasets.intake import as_rasters
from visionshare.datasets.opening import OpenedPicture, open_picture
from visionshare.errors import DataError
from visionshare.machine.memory import trim_memory
from visionshare.service.bodies import (
    BodyMemory,
    Refusal,
    empty_body,
    file_of,
    pixels_of,
)
from visionshare.service.explanation import ExplanationAnswer, explanation_answer
from visionshare.service.limits import Limits
from visionshare.service.pictures import is_large, reduced_picture

__all__ = ["Prediction", "Reader", "Served", "Worker"]

T = TypeVar("T")
# Makes an image of a picture: classifier, the picture as it was opened, most pixels.
Reader = Callable[[CompactClassifier, OpenedPicture, int], np.ndarray]


class Prediction(BaseModel):
    """The answer to a picture."""

    label: str
    probability: float | None
    probabilities: dict[str, float | None]
    macs: int
    stage: int | None = None
    raster: list[Any] | None = None


@dataclass(frozen=True)
class Served:
    """A classifier that is ready to be called."""

    classifier: CompactClassifier
    early: EarlyExit | None
    macs: int

    @classmethod
    def of(cls, classifier: CompactClassifier) -> Served:
        """Return a classifier whose kernels are compiled."""
        early = None if classifier.exit_rule is None else EarlyExit(classifier)
        classifier.decision_function(np.zeros(classifier.image_shape, np.uint8))
        return cls(classifier, early, classifier.macs)

    def classify(self, images: np.ndarray) -> list[Prediction]:
        """Return an answer for each image."""
        model = self.classifier
        ends: list[tuple[int | None, int]] = []
        if self.early is None:
            scores = model.decision_function(images)
            ends.extend([(None, self.macs)] * len(scores))
        else:
            scores, stops = self.early.run(images)
            ends.extend((int(stop) + 1, int(self.early.costs[stop])) for stop in stops)
        names = class_names(model.classes_)
        best = np.argmax(scores, axis=1).tolist()
        answers = []
        for label, row, (stage, macs) in zip(
            map(names.__getitem__, best), model.probabilities(scores).tolist(), ends, strict=True
        ):
            probabilities = dict(zip(names, map(_finite, row), strict=True))
            answers.append(
                Prediction(
                    label=label,
                    probability=probabilities[label],
                    probabilities=probabilities,
                    macs=macs,
                    stage=stage,
                )
            )
        return answers


class _Large(NamedTuple):
    """The file of a picture that must be reduced before it is preprocessed."""

    body: bytes


@dataclass(frozen=True)
class _Question(Generic[T]):
    """What is to be known of an image, and of a picture file."""

    of_image: Callable[[Served, np.ndarray], T]
    of_picture: Callable[[Served, OpenedPicture], T]


class Worker:
    """Preprocesses and classifies pictures on a pool of threads."""

    def __init__(
        self, classifier: CompactClassifier, limits: Limits, reader: Reader = read_picture
    ) -> None:
        self.limits, self.reader = limits, reader
        self.running = 0
        self.on_running: Callable[[int], None] = lambda _: None
        size = max(limits.max_body_memory, limits.max_body_size)
        self.memory = BodyMemory(size, limits.max_bodies)
        self._pool = ThreadPoolExecutor(limits.threads, thread_name_prefix="predict")
        self._one = ThreadPoolExecutor(1, thread_name_prefix="large")
        self._n_large = 0
        self._next_trim = 0.0
        # Compiles the kernels before the first request.
        self._served = Served.of(classifier)

    @property
    def classifier(self) -> CompactClassifier:
        """The classifier that answers new requests."""
        return self._served.classifier

    @property
    def macs(self) -> int:
        """Multiply-accumulates of the classifier for an image."""
        return self._served.macs

    def reload(self, classifier: CompactClassifier) -> None:
        """Answer new requests with another classifier; those that run end with the former one."""
        self._served = Served.of(classifier)

    def max_json_size(self, n_images: int = 1) -> int:
        """Return the most bytes of JSON with a number of images."""
        # That is 64 for each number with its blanks, and 64 KiB.
        values = n_images * math.prod(self.classifier.image_shape)
        return min(self.limits.max_body_size, (1 << 16) + 64 * values)

    async def run(self, function: Callable[..., T], *arguments: Any) -> T:
        """Return what a function returns on one of the threads, given a :class:`Served` first."""
        with self._place():
            return await self._on(self._pool, function, self._served, *arguments)

    async def predict(
        self, kind: str, body: bytes, with_raster: bool, headers: Mapping[str, str] | None = None
    ) -> Prediction:
        """Return the answer to a body of the kind ``"picture"``, ``"form"`` or ``"json"``."""

        def of_image(served: Served, image: np.ndarray) -> Prediction:
            return _answer(served, image, with_raster)

        def of_picture(served: Served, picture: OpenedPicture) -> Prediction:
            image = _read(self.reader, served.classifier, picture, self.limits.max_pixels)
            return of_image(served, image)

        return await self._ask(kind, body, headers or {}, _Question(of_image, of_picture))

    async def explain(
        self,
        kind: str,
        body: bytes,
        name: str | None,
        top: int,
        headers: Mapping[str, str] | None = None,
    ) -> ExplanationAnswer:
        """Return what features said of a body, see :func:`explanation_answer`."""
        # Boxes lie in the picture; in a reduced one, where it is large.

        def of_image(served: Served, image: np.ndarray) -> ExplanationAnswer:
            return explanation_answer(explain(served.classifier, image), name, top)

        def of_picture(served: Served, picture: OpenedPicture) -> ExplanationAnswer:
            explained = _read(explain_picture, served.classifier, picture, self.limits.max_pixels)
            return explanation_answer(explained.explanation, name, top)

        return await self._ask(kind, body, headers or {}, _Question(of_image, of_picture))

    async def _ask(
        self, kind: str, body: bytes, headers: Mapping[str, str], question: _Question[T]
    ) -> T:
        """Return the answer to a body, on a thread; large pictures wait for each other."""
        with self._place():
            arguments = (self._served, kind, body, headers, question)
            answer = await self._on(self._pool, self._answered, *arguments)
            if not isinstance(answer, _Large):
                return answer
            if self._n_large > self.limits.max_queue // 4:
                raise _busy()
            self._n_large += 1
            try:
                given = (self._served, answer.body, question)
                return await self._on(self._one, self._answered_large, *given)
            finally:
                self._n_large -= 1

    def close(self) -> None:
        """End the threads, after the predictions that run."""
        for pool in (self._one, self._pool):
            pool.shutdown(wait=True, cancel_futures=True)

    @contextmanager
    def _place(self) -> Iterator[None]:
        """Count a prediction that runs or waits; refuse it where too many do."""
        if self.running >= self.limits.threads + self.limits.max_queue:
            raise _busy()
        self._count(1)
        try:
            yield
        finally:
            self._count(-1)

    async def _on(self, pool: ThreadPoolExecutor, function: Callable[..., T], *given: Any) -> T:
        return await asyncio.get_running_loop().run_in_executor(pool, function, *given)

    def _count(self, change: int) -> None:
        self.running += change
        self.on_running(self.running)

    def _answered(
        self,
        served: Served,
        kind: str,
        body: bytes,
        headers: Mapping[str, str],
        question: _Question[T],
    ) -> T | _Large:
        if kind == "form":
            body = file_of(headers, body)
        if not body:
            raise empty_body()
        classifier, limits = served.classifier, self.limits
        if kind == "json":
            return question.of_image(served, as_rasters(pixels_of(body, classifier.image_shape)))
        if classifier.picture_size is None:
            raise Refusal(415, "unsupported_type", "this classifier takes vectors: send JSON")
        try:
            picture = _read(open_picture, body, limits.max_pixels)
            if _read(is_large, picture, limits.max_decoded_pixels):
                return _Large(body)
            return question.of_picture(served, picture)
        finally:
            self._trim()

    def _answered_large(self, served: Served, body: bytes, question: _Question[T]) -> T:
        small = _read(self._reduced, body)
        return question.of_picture(served, open_picture(small))

    def _reduced(self, body: bytes) -> bytes:
        """Return a smaller file; nothing keeps the decoded picture after that."""
        limits = self.limits
        picture = open_picture(body, limits.max_pixels)
        return reduced_picture(picture, limits.max_decoded_pixels, limits.max_decode_memory)

    def _trim(self) -> None:
        """Give memory back, once a second at most: it takes milliseconds."""
        now = time.monotonic()
        if now >= self._next_trim:
            self._next_trim = now + 1
            trim_memory()


def _busy() -> Refusal:
    return Refusal(503, "busy", "too many pictures are waiting; try again")


def _read(function: Callable[..., T], *arguments: Any) -> T:
    """Return what a function makes of a picture."""
    try:
        return function(*arguments)
    except DataError as error:
        raise Refusal(422, "invalid_picture", str(error)) from None
    except MemoryError:
        raise Refusal(422, "invalid_picture", "decoding it takes too much memory") from None


def _answer(served: Served, image: np.ndarray, with_raster: bool) -> Prediction:
    answer = served.classify(image[None])[0]
    return answer.model_copy(update={"raster": image.tolist()}) if with_raster else answer


def _finite(value: float) -> float | None:
    return round(value, 6) if math.isfinite(value) else None
