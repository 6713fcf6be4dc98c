"""Centers of clusters: what templates and anchors are made of."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache
from typing import Any

import numpy as np

from visionshare.machine.progress import stage

_BATCH = 4096


@cache
def _libraries() -> Any:
    # Threadpoolctl looks for them for milliseconds: as long as few vectors are clustered.
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def one_thread() -> AbstractContextManager[Any]:
    """Hold the libraries of scikit-learn, which is imported before, at one thread."""
    limit: AbstractContextManager[Any] = _libraries().limit(limits=1)
    return limit


def cluster_centers(
    X: np.ndarray, n: int, random_state: int, max_iter: int = 20, init_size: int | None = None
) -> np.ndarray:
    """Return the centers (n, p), float32, of a k-means clustering in small batches."""
    from sklearn.cluster import MiniBatchKMeans

    clusters = MiniBatchKMeans(
        n, batch_size=_BATCH, n_init=1, max_iter=max_iter, init_size=init_size,
        random_state=random_state,
    )  # fmt: skip
    # One thread: the order of sums, and so the centers, depends on nothing else then.
    with stage(f"clustering {len(X)} vectors"), one_thread():
        clusters.fit(X)
    return np.asarray(clusters.cluster_centers_, np.float32)
