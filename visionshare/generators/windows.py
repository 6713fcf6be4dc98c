"""Features of the windows of a larger image: shared where a family can, one by one otherwise."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["shares_windows", "window_features"]

_AT_ONCE = 4096


def shares_windows(family: Any) -> bool:
    """Return whether overlapping windows share a family's work.

    Examples
    --------
    >>> from visionshare import GaborBank
    >>> images = np.zeros((1, 16, 16))
    >>> [shares_windows(GaborBank(border=b).fit(images)) for b in ("cut", "inside")]
    [False, True]
    """
    return bool(getattr(family, "shares_windows", False))


def window_features(
    family: Any, image: np.ndarray, ys: np.ndarray, xs: np.ndarray, n_jobs: int = 1
) -> np.ndarray:
    """Return the features of the windows that begin at rows ``ys`` and columns ``xs``.

    A family may have ``shares_windows`` and ``evaluate_windows``, which computes what windows
    have in common once; the windows of any other family are cut out and evaluated in batches.

    Parameters
    ----------
    family : FeatureFamily
        Fitted to images of the windows' size.
    image : ndarray of shape (height, width) or (height, width, C)
    ys, xs : ndarray of int
        Evenly spaced, ascending.
    n_jobs : int, default 1
        Threads.

    Returns
    -------
    ndarray of shape (n_features, len(ys), len(xs)), float32

    Examples
    --------
    >>> from visionshare import Pixels
    >>> family = Pixels().fit(np.zeros((1, 2, 2)))
    >>> image = np.arange(9.0).reshape(3, 3)
    >>> window_features(family, image, np.arange(2), np.arange(2))[3].tolist()
    [[4.0, 5.0], [7.0, 8.0]]
    """
    if shares_windows(family):
        shared: np.ndarray = family.evaluate_windows(image, ys, xs, n_jobs)
        return shared
    height, width = family.image_shape_[:2]
    views = np.lib.stride_tricks.sliding_window_view(image, (height, width), axis=(0, 1))
    if image.ndim == 3:
        views = np.moveaxis(views, 2, -1)
    y, x = (held.ravel() for held in np.meshgrid(ys, xs, indexing="ij"))
    out = np.empty((family.n_features_, len(y)), np.float32)
    for start in range(0, len(y), _AT_ONCE):
        some = slice(start, start + _AT_ONCE)
        windows = np.ascontiguousarray(views[y[some], x[some]])
        windows = windows.reshape(len(windows), *family.image_shape_)
        out[:, some] = family.evaluate(windows, None, n_jobs).T
    return out.reshape(-1, len(ys), len(xs))
