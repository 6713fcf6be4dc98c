"""Answers about pictures, made on threads: the event loop only waits for them."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np
from starlette.requests import Request

from visionshare.classifier import CompactClassifier
from visionshare.datasets.intake import as_rasters
from visionshare.datasets.opening import OpenedPicture, open_picture
from visionshare.machine.memory import trim_memory
from visionshare.service import Limits
from visionshare.service.answers import Served
from visionshare.service.bodies import Bodies, Refusal, body_kind, file_of, pixels_of
from visionshare.service.pictures import reduced_picture

T = TypeVar("T")
# What is to be known of an image, or of a picture that is not preprocessed yet.
Question = Callable[[Served, "np.ndarray | OpenedPicture"], T]


class Worker:
    """Receives pictures, and classifies them on a pool of threads.

    Large pictures are reduced and classified one after the other, on a thread of their own: others
    do not wait for them. At most a quarter of the pictures that may wait are large.
    """

    def __init__(self, classifier: CompactClassifier, limits: Limits) -> None:
        self.limits = limits
        self.served = Served(classifier)
        self.bodies = Bodies(max(limits.max_body_memory, limits.max_body_size), limits.max_bodies)
        # Predictions that run or wait; changed by the event loop's thread alone.
        self.running = 0
        self.on_running: Callable[[int], None] = lambda _: None
        self._pool = ThreadPoolExecutor(limits.threads, thread_name_prefix="predict")
        self._large_pool = ThreadPoolExecutor(1, thread_name_prefix="large")
        self._n_large = 0
        self._next_trim = 0.0

    @property
    def is_full(self) -> bool:
        """Whether as many predictions run and wait as may."""
        return self.running >= self.limits.threads + self.limits.max_queue

    def reload(self, classifier: CompactClassifier) -> None:
        """Answer new requests with another classifier; those that run end with the former one."""
        self.served = Served(classifier)

    def max_json_size(self) -> int:
        """Return the most bytes of JSON: 64 for each number with its blanks, and 64 KiB."""
        values = math.prod(self.served.classifier.image_shape)
        return min(self.limits.max_body_size, (1 << 16) + 64 * values)

    async def ask(self, request: Request, question: Question[T]) -> T:
        """Return the answer to the picture or the pixels in a request."""
        kind = body_kind(request.headers)
        size = self.max_json_size() if kind == "json" else self.limits.max_body_size
        async with self.bodies.receive(request, size, self.limits.body_timeout) as body:
            return await self.answer(kind, body, request.headers, question)

    async def answer(
        self, kind: str, body: bytes, headers: Mapping[str, str], question: Question[T]
    ) -> T:
        """Return the answer to a body; large pictures wait for each other."""
        with self._place():
            given = (kind, body, headers, question)
            loop = asyncio.get_running_loop()
            answer = await loop.run_in_executor(self._pool, self._answer, False, *given)
            if answer is not None:
                return answer
            if self._n_large > self.limits.max_queue // 4:
                raise busy()
            self._n_large += 1
            try:
                large = loop.run_in_executor(self._large_pool, self._answer, True, *given)
                return await large  # type: ignore[return-value]
            finally:
                self._n_large -= 1

    async def run(self, function: Callable[..., T], *arguments: Any) -> T:
        """Return what a function returns on one of the threads, given what is served first."""
        with self._place():
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._pool, function, self.served, *arguments)

    def close(self) -> None:
        """End the threads, after the predictions that run."""
        for pool in (self._large_pool, self._pool):
            pool.shutdown(wait=True, cancel_futures=True)

    @contextmanager
    def _place(self) -> Iterator[None]:
        """Count a prediction that runs or waits; refuse it where too many do."""
        if self.is_full:
            raise busy()
        self.running += 1
        self.on_running(self.running)
        try:
            yield
        finally:
            self.running -= 1
            self.on_running(self.running)

    def _answer(
        self,
        may_be_large: bool,
        kind: str,
        body: bytes,
        headers: Mapping[str, str],
        question: Question[T],
    ) -> T | None:
        """Return the answer to a body, or None for a large picture where there may be none."""
        served = self.served
        if kind == "form":
            body = file_of(headers, body)
        if not body:
            raise Refusal(422, "empty_body", "no picture in the request")
        if kind == "json":
            pixels = pixels_of(body, served.classifier.image_shape)
            return question(served, as_rasters(pixels))
        if served.classifier.picture_size is None:
            raise Refusal(415, "unsupported_type", "this classifier takes vectors: send JSON")
        try:
            picture = open_picture(body, self.limits.max_pixels)
            width, height = picture.stored_size
            if width * height > self.limits.max_decoded_pixels:
                if not may_be_large:
                    return None
                del picture
                picture = open_picture(reduced_picture(body, self.limits))
            return question(served, picture)
        finally:
            self._trim()

    def _trim(self) -> None:
        """Give memory back, once a second at most: it takes milliseconds."""
        now = time.monotonic()
        if now >= self._next_trim:
            self._next_trim = now + 1
            trim_memory()


def busy() -> Refusal:
    """Return the refusal of a picture that found no place in the queue."""
    return Refusal(503, "busy", "too many pictures are waiting; try again")
