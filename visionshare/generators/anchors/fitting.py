"""What anchors learn from training examples: projection, anchors, radii and widths.

All of it runs on one thread: the order of sums, and so the result, depends on nothing else then.
"""

from __future__ import annotations

import numpy as np

from visionshare.generators.clustering import cluster_centers, one_thread

CENTERS = ("kmeans", "sample")
# Stands for "no limit" among radii: files hold finite numbers alone.
NO_LIMIT = np.finfo(np.float32).max
_POOLED_DISTANCES = 1 << 22
_ANCHORS = 16


def projection(X: np.ndarray, n_components: int) -> tuple[np.ndarray, np.ndarray]:
    """Return components (n_components, p) and mean (p,) of a PCA, float32."""
    from sklearn.decomposition import PCA

    # Exact both, and without random numbers.
    solver = "covariance_eigh" if len(X) >= X.shape[1] else "full"
    pca = PCA(n_components, svd_solver=solver)
    # Constant inputs have no variance to explain.
    with one_thread(), np.errstate(divide="ignore", invalid="ignore"):
        pca.fit(X)
    return np.ascontiguousarray(pca.components_, np.float32), pca.mean_.astype(np.float32)


def anchors(V: np.ndarray, n: int, centers: str, random_state: int) -> np.ndarray:
    """Return anchors (at most n, q), float32: all different examples where there are so few."""
    distinct = np.unique(V, axis=0)
    if len(distinct) <= n:
        return distinct
    rng = np.random.default_rng(random_state)
    if centers == "sample":
        return distinct[np.sort(rng.choice(len(distinct), n, replace=False))]
    seed = int(rng.integers(2**31))
    return cluster_centers(V, n, seed, max_iter=50, init_size=max(12288, 3 * n))


def radii(V: np.ndarray, anchors: np.ndarray, n: int) -> np.ndarray:
    """Return n radii for each anchor, ascending, (n_anchors · n,) float32."""
    # The i-th holds the ⌈i m / n⌉ nearest of the m examples, ties included, and lies midway to
    # the next one, so that rounding decides on no example; the last has no limit.
    from visionshare.generators.anchors.kernels import squared_distances

    out = np.empty((len(anchors), n))
    for a in range(0, len(anchors), _ANCHORS):
        square = squared_distances(V, _transposed(anchors[a : a + _ANCHORS]))
        for distances, row in zip(np.sqrt(square.T), out[a : a + _ANCHORS], strict=True):
            row[:] = _radii(np.sort(distances), n)
    return _positive(out).ravel()


def _radii(ordered: np.ndarray, n: int) -> np.ndarray:
    m = len(ordered)
    last = ordered[-(-np.arange(1, n) * m // n) - 1]
    after = np.searchsorted(ordered, last, side="right")
    beyond = ordered[np.minimum(after, m - 1)]
    return np.append(np.where(after < m, last + (beyond - last) / 2, np.inf), np.inf)


def widths(V: np.ndarray, anchors: np.ndarray, n: int) -> np.ndarray:
    """Return the same n widths for each anchor, (n_anchors · n,) float32."""
    # They are the quantiles i / n of the distances above 0 between examples and all anchors; 1
    # where no distance is above 0.
    from visionshare.generators.anchors.kernels import squared_distances

    # Every so many examples: of millions of distances, quantiles are known well enough.
    step = -(-len(V) * len(anchors) // _POOLED_DISTANCES)
    square = squared_distances(V[::step], _transposed(anchors))
    square = square[square > 0]
    if len(square) == 0:
        return np.ones(len(anchors) * n, np.float32)
    quantiles = np.quantile(np.sqrt(square), np.arange(1, n + 1) / n)
    return np.tile(_positive(quantiles), len(anchors))


def _transposed(anchors: np.ndarray) -> np.ndarray:
    return np.array(anchors.T, np.float64, order="C")


def _positive(values: np.ndarray) -> np.ndarray:
    """Return values as float32, from the least normal one to the largest."""
    limits = np.finfo(np.float32)
    return np.clip(values, limits.tiny, limits.max).astype(np.float32)
