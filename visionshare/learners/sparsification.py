"""Sparsification: fewer features for a classifier whose weights have a small ℓ1 norm."""

from __future__ import annotations

import math
from dataclasses import replace
from numbers import Integral, Real
from typing import TypeVar

import numpy as np

from visionshare.classifier import CompactClassifier
from visionshare.errors import InputError

Weights = TypeVar("Weights", np.ndarray, CompactClassifier)


def features_needed(
    norm: float, lipschitz: float, eps: float, delta: float = 0.05, n_scores: int = 1
) -> int:
    """Return how many draws keep the risk within ``eps``, with probability 1 − ``delta``.

    For inputs in [−1, 1] and a loss that is λ-Lipschitz in the scores (with respect to the ℓ∞ norm
    where there are several): with B = ``norm``, the expected error of the mean over n draws is at
    most B/√n (times min(√k, √(2 ln 2k)) for the worst of k scores), and by McDiarmid's inequality
    it is exceeded by at most B √(2 ln(1/δ)/n).

    Parameters
    ----------
    norm : float
        ‖w‖₁, or Σ_r ‖W_r‖_∞ over the columns of a weight matrix.
    lipschitz : float
        λ.
    eps : float
        ε, above 0.
    delta : float, default 0.05
        δ, between 0 and 1.
    n_scores : int, default 1
        k: rows of a weight matrix.

    References
    ----------
    S. Shalev-Shwartz, N. Srebro, "Low ℓ1 norm and guarantees on sparsifiability", 2008.

    Examples
    --------
    >>> features_needed(norm=5.0, lipschitz=1.0, eps=0.5)
    1189
    """
    for name, value in (("norm", norm), ("lipschitz", lipschitz), ("eps", eps)):
        least = 0 if name != "eps" else 1e-300
        if not isinstance(value, Real) or not least <= float(value) < math.inf:
            raise InputError(name, value, "a finite number of at least 0, eps above 0")
    if not isinstance(delta, Real) or not 0 < float(delta) < 1:
        raise InputError("delta", delta, "a probability between 0 and 1")
    if isinstance(n_scores, bool) or not isinstance(n_scores, Integral) or n_scores < 1:
        raise InputError("n_scores", n_scores, "an integer of at least 1")
    # 1 for one score.
    average = min(math.sqrt(n_scores), math.sqrt(2 * math.log(2 * n_scores)))
    factor = average + math.sqrt(2 * math.log(1 / delta))
    return math.ceil((lipschitz * norm / eps * factor) ** 2)


def sparsify(
    weights: Weights, n: int, random_state: int = 0, scales: np.ndarray | None = None
) -> Weights:
    """Return weights of at most ``n`` features, drawn in proportion to the sizes of the weights.

    Draws n features, each with probability ‖W_r‖_∞ / Σ_s ‖W_s‖_∞; each draw adds
    W_r/‖W_r‖_∞ · Σ_s ‖W_s‖_∞ / n. The expectation is the given weights, and no data is needed; see
    :func:`features_needed` for how many draws are enough.

    Parameters
    ----------
    weights : ndarray of shape (d,) or (k, d), or CompactClassifier
    n : int
        Draws: features at most.
    random_state : int, default 0
        Seed.
    scales : ndarray of shape (d,), optional
        Scale of each feature, such as its largest absolute value: weights are then compared as
        if all features had scale 1. All 1 when omitted.

    References
    ----------
    S. Shalev-Shwartz, N. Srebro, "Low ℓ1 norm and guarantees on sparsifiability", 2008.

    Examples
    --------
    >>> import numpy as np
    >>> sparse = sparsify(np.array([4.0, -0.01, 0.0, 2.0]), 3)
    >>> float(np.abs(sparse).sum()), int(np.count_nonzero(sparse)) <= 3
    (6.01, True)
    """
    if isinstance(weights, CompactClassifier):
        return _sparse_classifier(weights, n, random_state, scales)  # type: ignore[return-value]
    W = np.asarray(weights)
    if W.ndim not in (1, 2) or W.dtype.kind not in "fiu" or not np.isfinite(W).all():
        raise InputError(
            "weights", f"{W.dtype} of shape {W.shape}", "finite numbers (d,) or (k, d)"
        )
    drawn = _drawn(np.atleast_2d(W), n, random_state, scales)
    return drawn if W.ndim == 2 else drawn[0]


def _drawn(W: np.ndarray, n: int, random_state: int, scales: np.ndarray | None) -> np.ndarray:
    if isinstance(n, bool) or not isinstance(n, Integral) or not 1 <= n < 2**63:
        raise InputError("n", n, "an integer of at least 1 and below 2**63")
    sizes = np.ones(W.shape[1]) if scales is None else np.asarray(scales, np.float64)
    if sizes.shape != (W.shape[1],) or not np.isfinite(sizes).all() or (sizes < 0).any():
        raise InputError("scales", sizes.shape, f"a number of at least 0 for each of {W.shape[1]}")
    norms = np.abs(W).max(axis=0).astype(np.float64) * sizes
    total = float(norms.sum())
    if not total > 0:
        raise InputError("weights", "all zero", "a weight that is not zero")
    rng = np.random.default_rng(random_state)
    counts = rng.multinomial(n, norms / total)
    factors = np.where(norms > 0, counts * total / (n * np.where(norms > 0, norms, 1)), 0)
    return W * factors


def _sparse_classifier(
    classifier: CompactClassifier, n: int, random_state: int, scales: np.ndarray | None
) -> CompactClassifier:
    W = _drawn(classifier.weights.astype(np.float64), n, random_state, scales)
    kept = np.flatnonzero(np.abs(W).max(axis=0))
    return replace(
        classifier,
        family=classifier.family.take(kept),
        weights=W[:, kept].astype(np.float32),
        # Both refer to the features of rounds, which are not those that were drawn.
        path=(),
        exit_rule=None,
        unknown=None,
    )
