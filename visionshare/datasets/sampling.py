"""Draws of labeled examples: some or a fraction of each class, some of one and of the others."""

from __future__ import annotations

import numpy as np

from visionshare.datasets.checks import check_number


def sample_one_class(
    labels: np.ndarray,
    positive: int | str,
    positives: int | None,
    negatives: int | None,
    rng: np.random.Generator,
) -> np.ndarray:
    """Return indices of some examples of one class and, after them, of some of the others."""
    is_positive = np.asarray(labels) == positive
    of_class = _drawn("positives", is_positive, positives, rng)
    others = _drawn("negatives", ~is_positive, negatives, rng)
    return np.concatenate([of_class, others])


def sample_per_class(labels: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    """Return indices of at most ``n`` examples of each class, ascending."""
    check_number("n", n, 0, whole=True)
    drawn = [rng.permutation(np.flatnonzero(labels == c))[:n] for c in np.unique(labels)]
    return np.sort(np.concatenate([np.empty(0, np.int64), *drawn])).astype(np.int64)


def _drawn(name: str, mask: np.ndarray, n: int | None, rng: np.random.Generator) -> np.ndarray:
    indices = np.flatnonzero(mask)
    n = len(indices) if n is None else n
    check_number(name, n, 1, len(indices), whole=True)
    return np.sort(rng.choice(indices, n, replace=False))


def stratified_mask(
    labels: np.ndarray, fraction: float, seed: int, groups: np.ndarray | None = None
) -> np.ndarray:
    """Return a mask (m,) of a random fraction of each class's examples; groups stay together."""
    check_number("fraction", fraction, 0, 1)
    if groups is not None:
        _, firsts, group_of = np.unique(groups, return_index=True, return_inverse=True)
        # In the order of their first examples; without copies the draw is that of examples.
        order = np.argsort(firsts)
        mask = np.empty(len(firsts), bool)
        mask[order] = stratified_mask(labels[firsts[order]], fraction, seed)
        return mask[group_of]
    rng = np.random.default_rng(seed)
    drawn = np.zeros(len(labels), bool)
    for label in np.unique(labels):
        members = rng.permutation(np.flatnonzero(labels == label))
        drawn[members[: round(fraction * len(members))]] = True
    return drawn
