"""The transfer baselines of the paper that combine sources: AverageKT, MultiKT, DAM, dictionary.

They see what the others see (`scripts.reproduce.transfer_methods`): standardized examples, no
intercept, settings chosen on the few examples alone.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
from sklearn.decomposition import DictionaryLearning
from sklearn.exceptions import ConvergenceWarning

from scripts.reproduce.transfer_methods import ALPHAS, METHODS, Few, balanced, chosen, rls, scaling

__all__ = ["ALL_METHODS"]

RADII = 10.0 ** np.arange(-3, 4)
STEPS = 50


def average_kt(few: Few) -> np.ndarray:
    """Return the mean of all sources; nothing is learned."""
    n = few.Z.shape[1] - few.d
    return np.concatenate([np.zeros(few.d), np.full(n, 1 / n)])


def multi_kt_l2(few: Few) -> np.ndarray:
    """Return MultiKT whose weights of the sources lie in an ℓ2 ball."""

    def project(beta: np.ndarray) -> np.ndarray:
        norms = np.linalg.norm(beta, axis=1)
        return beta * np.minimum(1, RADII / np.maximum(norms, 1e-12))[:, None]

    return _multi_kt(few, project)


def multi_kt_l1(few: Few) -> np.ndarray:
    """Return MultiKT whose weights of the sources lie in an ℓ1 ball."""

    def project(beta: np.ndarray) -> np.ndarray:
        sizes = np.abs(beta)
        # The threshold that leaves a sum of the radius, from the sorted sizes.
        ordered = -np.sort(-sizes, axis=1)
        excess = np.cumsum(ordered, axis=1) - RADII[:, None]
        counts = np.arange(1, beta.shape[1] + 1)
        last = np.maximum((ordered > excess / counts).sum(axis=1), 1) - 1
        cuts = np.maximum(excess[np.arange(len(beta)), last] / (last + 1), 0)
        return np.sign(beta) * np.maximum(sizes - cuts[:, None], 0)

    return _multi_kt(few, project)


def _multi_kt(few: Few, project: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Return ridge regression on what weighted sources leave; T. Tommasi et al., PAMI 2014.

    The weights minimize the hinge of the leave-one-out errors in a ball, by subgradients; the
    ball and the ridge penalty are those of the lowest leave-one-out error.
    """
    X = few.Z[:, : few.d]
    H = few.Z[:, few.d :]
    omega = balanced(few.y)
    values, vectors = np.linalg.eigh(X @ X.T)
    best = (np.inf, np.inf)
    weights = np.zeros(few.Z.shape[1])
    for alpha in ALPHAS[::-1]:
        # 1) what an example left out lacks: without sources, and for each source
        inverse = (vectors / (np.maximum(values, 0) + alpha)) @ vectors.T
        lacks = inverse @ few.y / np.diag(inverse)
        effects = inverse @ H / np.diag(inverse)[:, None]
        # 2) weights of the sources, for all radii together
        beta = np.zeros((len(RADII), H.shape[1]))
        for step in range(1, STEPS + 1):
            active = (few.y * (lacks - beta @ effects.T) > 0) * (omega * few.y)
            slope = -active @ effects
            size = np.maximum(np.linalg.norm(slope, axis=1), 1e-12)
            beta = project(beta - (RADII / np.sqrt(step) / size)[:, None] * slope)
        # 3) the best so far, the most regularized among equals
        left_out = few.y - (lacks - beta @ effects.T)
        wrong = ((left_out > 0) != (few.y > 0)) @ omega
        squares = ((np.clip(left_out, -1, 1) - few.y) ** 2) @ omega
        for r in range(len(RADII)):
            key = (round(float(wrong[r]), 9), round(float(squares[r]), 9))
            if key < best:
                best = key
                weights = np.concatenate([X.T @ inverse @ (few.y - H @ beta[r]), beta[r]])
    return weights


def dam(few: Few) -> np.ndarray:
    """Return the domain adaptation machine: ridge regression drawn to the sources' mean score.

    L. Duan et al., ICML 2009, with squared errors. There are no other pictures of the target, so
    the few are drawn; sources weigh by their correlation with the labels of the few.
    """
    strengths = RADII

    def path(part: Few) -> np.ndarray:
        X = part.Z[:, : part.d]
        H = part.Z[:, part.d :]
        trust = np.maximum(H.T @ (part.y - part.y.mean()), 0)
        virtual = H @ trust / max(float(trust.sum()), 1e-12)
        values, vectors = np.linalg.eigh(X @ X.T)
        weights = []
        for strength in strengths:
            target = (part.y + strength * virtual) / (1 + strength)
            for alpha in ALPHAS[::-1]:
                scaled = vectors.T @ target / (np.maximum(values, 0) + alpha / (1 + strength))
                weights.append(X.T @ (vectors @ scaled))
        found = np.array(weights)
        return np.hstack([found, np.zeros((len(found), H.shape[1]))])

    return chosen(few, path)


def dictionary(few: Few) -> Callable[[np.ndarray], np.ndarray]:
    """Return ridge regression on features and sparse codes of the scores of the sources.

    After Q. Qiu et al., ECCV 2012: sources alone give no pictures to learn a dictionary from, so
    its atoms are learned from the scores of the few examples.
    """
    H = few.Z[:, few.d :]
    atoms = DictionaryLearning(
        max(2, len(H) // 2), alpha=1.0, max_iter=5, fit_algorithm="cd",
        transform_algorithm="omp", transform_n_nonzero_coefs=3, random_state=0,
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", RuntimeWarning)
        atoms.fit(H)

    def coded(Z: np.ndarray) -> np.ndarray:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            codes = atoms.transform(Z[:, few.d :])
        return np.hstack([Z[:, : few.d], codes])

    own = coded(few.Z)
    offset, scale = scaling(own)
    # Codes together count as much as the features together.
    scale[few.d :] *= np.sqrt(few.d / (len(scale) - few.d))
    weights = rls(Few((own - offset) * scale, few.y, few.d))
    return lambda Z: ((coded(Z) - offset) * scale) @ weights


ALL_METHODS: dict[str, Callable[[Few], np.ndarray | Callable[[np.ndarray], np.ndarray]]] = {
    "AverageKT": average_kt,
    "MultiKT, ℓ2": multi_kt_l2,
    "MultiKT, ℓ1": multi_kt_l1,
    "DAM": dam,
    "dictionary learning": dictionary,
    **METHODS,
}
