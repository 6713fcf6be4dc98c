"""Centers of clusters: what templates and anchors are made of."""

from __future__ import annotations

from typing import Any

import numpy as np

from visionshare.progress import stage

__all__ = ["cluster_centers"]

_BATCH = 4096


def cluster_centers(
    X: np.ndarray, n: int, random_state: int, max_iter: int = 20, init_size: int | None = None
) -> np.ndarray:
    """Return the centers (n, p), float32, of a k-means clustering in small batches.

    Parameters
    ----------
    X : ndarray of shape (m, p), float32
        At least n rows.
    n : int
    random_state : int
        Seed.
    max_iter : int, default 20
        How often each row is seen at most.
    init_size : int, optional
        Rows that the first centers are chosen from; scikit-learn's choice when omitted.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal([[0.0], [80.0]], 1.0, (2, 50)).reshape(100, 1)
    >>> sorted((cluster_centers(X.astype(np.float32), 2, 0).ravel() / 10).round().tolist())
    [0.0, 8.0]
    """
    from sklearn.cluster import MiniBatchKMeans
    from threadpoolctl import threadpool_limits

    steps = max_iter * len(X) // min(_BATCH, len(X))
    with stage(f"clustering {len(X)} vectors", steps) as advance:

        class Clusters(MiniBatchKMeans):
            # Called after each step; it counts none where scikit-learn calls it otherwise.
            def _mini_batch_convergence(self, *arguments: Any) -> Any:
                advance(1)
                return super()._mini_batch_convergence(*arguments)

        clusters = Clusters(
            n, batch_size=_BATCH, n_init=1, max_iter=max_iter, init_size=init_size,
            random_state=random_state,
        )  # fmt: skip
        # One thread: the order of sums, and so the centers, depends on nothing else then.
        with threadpool_limits(limits=1):
            clusters.fit(X)
    return np.asarray(clusters.cluster_centers_, np.float32)
