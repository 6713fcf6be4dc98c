"""Microseconds per image on one thread, of all peers in turn."""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np

__all__ = ["Times", "microseconds", "threads"]

BATCH = 1000
PAUSE, LONGEST = 0.3, 1.0


class Times(NamedTuple):
    """Medians of microseconds per image: single images, and in batches."""

    single: float
    batch: float


@contextmanager
def threads(n: int) -> Iterator[None]:
    """Run BLAS, OpenMP and numba on at most n threads."""
    import numba
    from threadpoolctl import threadpool_limits

    before = numba.get_num_threads()
    numba.set_num_threads(min(n, numba.config.NUMBA_NUM_THREADS))
    try:
        with threadpool_limits(n):
            yield
    finally:
        numba.set_num_threads(before)


def microseconds(
    predictors: Mapping[str, Callable[[np.ndarray], np.ndarray]],
    images: np.ndarray,
    rounds: int = 5,
    singles: int = 200,
) -> dict[str, Times]:
    """Time all predictors in turn, so that whatever else the machine does hits all.

    In each round each predicts a batch of 1000 images, and then up to 200 single images in no more
    than a second.
    """
    one: dict[str, list[float]] = {name: [] for name in predictors}
    many: dict[str, list[float]] = {name: [] for name in predictors}
    size = min(BATCH, len(images))
    with threads(1):
        for predict in predictors.values():
            predict(images[:2]), predict(images[:1])
        for i, (name, predict) in itertools.product(range(rounds), predictors.items()):
            # Threads of the one before spin on for a while, on cores that this one needs.
            time.sleep(PAUSE)
            start = i * size % (len(images) - size + 1)
            batch = images[start : start + size]
            many[name].append(1e6 * _seconds(predict, batch) / size)
            begun = time.perf_counter()
            for k in range(min(singles, size)):
                one[name].append(1e6 * _seconds(predict, batch[k : k + 1]))
                if time.perf_counter() - begun > LONGEST:
                    break
    return {
        name: Times(statistics.median(one[name]), statistics.median(many[name]))
        for name in predictors
    }


def _seconds(predict: Callable[[np.ndarray], np.ndarray], images: np.ndarray) -> float:
    """Return processor seconds: what waits for other jobs does not count."""
    begun = time.process_time()
    predict(images)
    return time.process_time() - begun
