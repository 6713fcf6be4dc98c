"""Centers of clusters: what templates and anchors are made of."""

from __future__ import annotations

import numpy as np

from visionshare.machine.progress import stage

_BATCH = 4096


def cluster_centers(
    X: np.ndarray, n: int, random_state: int, max_iter: int = 20, init_size: int | None = None
) -> np.ndarray:
    """Return the centers (n, p), float32, of a k-means clustering in small batches."""
    from sklearn.cluster import MiniBatchKMeans
    from threadpoolctl import threadpool_limits

    clusters = MiniBatchKMeans(
        n, batch_size=_BATCH, n_init=1, max_iter=max_iter, init_size=init_size,
        random_state=random_state,
    )  # fmt: skip
    # One thread: the order of sums, and so the centers, depends on nothing else then.
    with stage(f"clustering {len(X)} vectors"), threadpool_limits(limits=1):
        clusters.fit(X)
    return np.asarray(clusters.cluster_centers_, np.float32)
