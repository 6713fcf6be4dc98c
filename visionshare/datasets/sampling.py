"""Draws of labeled examples: some or a fraction of each class, some of one and of the others."""

from __future__ import annotations

import numpy as np

from visionshare.errors import InputError


def sample_one_class(
    labels: np.ndarray,
    positive: int | str,
    positives: int | None,
    negatives: int | None,
    rng: np.random.Generator,
) -> np.ndarray:
    """Return indices of some examples of one class and, after them, of some of the others."""
    is_positive = np.asarray(labels) == positive
    sides = (("positives", is_positive, positives), ("negatives", ~is_positive, negatives))
    return np.concatenate([_drawn(name, mask, n, rng) for name, mask, n in sides])


def sample_per_class(labels: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    """Return indices of at most ``n`` examples of each class, ascending."""
    if not hasattr(n, "__index__") or n < 0:
        raise InputError("n", n, "an integer of at least 0")
    drawn = [rng.permutation(np.flatnonzero(labels == c))[:n] for c in np.unique(labels)]
    return np.sort(np.concatenate([np.empty(0, np.int64), *drawn])).astype(np.int64)


def _drawn(name: str, mask: np.ndarray, n: int | None, rng: np.random.Generator) -> np.ndarray:
    indices = np.flatnonzero(mask)
    if n is None:
        n = len(indices)
    if isinstance(n, bool) or not hasattr(n, "__index__") or not 1 <= n <= len(indices):
        raise InputError(name, n, f"a number of images from 1 to {len(indices)}, all there are")
    return np.sort(rng.choice(indices, n, replace=False))


def stratified_mask(
    labels: np.ndarray, fraction: float, seed: int, groups: np.ndarray | None = None
) -> np.ndarray:
    """Return a mask (m,) of a random fraction of each class's examples."""
    if not 0 <= fraction <= 1:
        raise InputError("fraction", fraction, "a number from 0 to 1")
    if groups is not None:
        return _mask_of_groups(labels, fraction, seed, groups)
    rng = np.random.default_rng(seed)
    drawn = np.zeros(len(labels), bool)
    for label in np.unique(labels):
        members = rng.permutation(np.flatnonzero(labels == label))
        drawn[members[: round(fraction * len(members))]] = True
    return drawn


def _mask_of_groups(
    labels: np.ndarray, fraction: float, seed: int, groups: np.ndarray
) -> np.ndarray:
    _, firsts, group_of = np.unique(groups, return_index=True, return_inverse=True)
    # In the order of their first examples; without copies the draw is that of examples.
    order = np.argsort(firsts)
    mask = np.empty(len(firsts), bool)
    mask[order] = stratified_mask(labels[firsts[order]], fraction, seed)
    drawn: np.ndarray = mask[group_of]
    return drawn
