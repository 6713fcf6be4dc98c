"""Closed forms of one feature's update: the minimum of a bound on the loss plus a norm.

μ⁺ and μ⁻ are sums of the examples' importance, where the feature agrees with the sign of the
example and where it does not; the bound is a μ⁺e^{−δ/a} + a μ⁻e^{δ/a} for a change δ of the weight.

References
----------
J. Duchi, Y. Singer, "Boosting with structural sparsity", ICML 2009, §3 and §5.
"""

from __future__ import annotations

import numpy as np

__all__ = ["exponential_l1", "exponential_max"]


def exponential_l1(
    w: np.ndarray, up: np.ndarray, down: np.ndarray, a: float, strength: float
) -> np.ndarray:
    """Return the δ that minimise a μ⁺e^{−δ/a} + a μ⁻e^{δ/a} + λ|δ + w|, elementwise.

    Parameters
    ----------
    w : ndarray
        Weights before.
    up, down : ndarray
        μ⁺ and μ⁻, at least 0.
    a : float
        Template: a·|x| ≤ 1 for every example.
    strength : float
        λ, above 0.

    Notes
    -----
    The whole root is over 2μ⁻; the printed bracket is misplaced. (−λ + √(λ² + 4μ⁺μ⁻))/(2μ⁻) is
    written with its conjugate, in which nothing cancels and μ⁻ may be 0.

    Examples
    --------
    >>> import numpy as np
    >>> exponential_l1(np.array([0.5]), np.array([1.0]), np.array([1.0]), 1.0, 2.0).tolist()
    [-0.5]
    """
    # The slope at δ = −w, where the weight becomes zero.
    slope = up * np.exp(w / a) - down * np.exp(-w / a)
    root = np.sqrt(strength**2 + 4 * up * down)
    above = 2 * up / np.where(strength + root > 0, strength + root, 1)
    below = 2 * down / np.where(strength + root > 0, strength + root, 1)
    rise = a * np.log(np.where(above > 0, above, 1))
    fall = -a * np.log(np.where(below > 0, below, 1))
    return np.where(slope > strength, rise, np.where(slope < -strength, fall, -w))


def exponential_max(
    w: np.ndarray, up: np.ndarray, down: np.ndarray, a: float, strength: float
) -> np.ndarray:
    """Return the new row γ·a that minimises Σ_r a μ⁺_r e^{−δ_r/a} + a μ⁻_r e^{δ_r/a} + λ‖w + δ‖_∞.

    Parameters
    ----------
    w, up, down : ndarray of shape (k,)
        A row's weights before, and μ⁺ and μ⁻ of each.
    a : float
        Template.
    strength : float
        λ, above 0.

    Returns
    -------
    ndarray of shape (k,)
        w + δ: weights within the level are where their own bound is least, the others at it.

    Notes
    -----
    O(k log k): the weights are let into the bounded set in order of their own minimum. For μ⁻ = 0
    the level is ln(μ⁺/λ), of which the paper prints the reciprocal.
    """
    # With γ = (w + δ)/a the bound is a Σ p_r e^{−γ_r} + n_r e^{γ_r}; the norm is a ‖γ‖_∞.
    p, n = up * np.exp(w / a), down * np.exp(-w / a)
    if np.abs(p - n).sum() <= strength:
        return np.zeros_like(w)
    signs = np.where(p >= n, 1.0, -1.0)
    more, less = np.maximum(p, n), np.minimum(p, n)
    with np.errstate(divide="ignore"):
        own = np.where(more > 0, 0.5 * (np.log(np.where(more > 0, more, 1)) - np.log(less)), 0.0)
    order = np.argsort(-own, kind="stable")
    level = 0.0
    for bounded in range(1, len(w) + 1):
        M, N = more[order[:bounded]].sum(), less[order[:bounded]].sum()
        # The root of M e^{−ξ} − N e^{ξ} = λ, with the conjugate of its numerator.
        level = float(np.log(2 * M / (strength + np.sqrt(strength**2 + 4 * M * N))))
        if bounded == len(w) or level >= own[order[bounded]]:
            break
    return np.asarray(a * signs * np.minimum(own, max(level, 0.0)))
