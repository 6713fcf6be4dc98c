"""Closed forms of one feature's update: the minimum of a bound on the loss plus a norm.

μ⁺ and μ⁻ are sums of the examples' importance, where the feature agrees with the sign of the
example and where it does not; the bound is a μ⁺e^{−δ/a} + a μ⁻e^{δ/a} for a change δ of the weight.

References
----------
J. Duchi, Y. Singer, "Boosting with structural sparsity", ICML 2009, §3 and §5.
"""

from __future__ import annotations

import numpy as np

# Exponents that are taken: a sum of so large numbers is finite.
_LONGEST = 600.0


def exponential_l1(
    w: np.ndarray, up: np.ndarray, down: np.ndarray, a: float | np.ndarray, alpha: float
) -> np.ndarray:
    """Return the δ that minimize a μ⁺e^{−δ/a} + a μ⁻e^{δ/a} + λ|δ + w|, elementwise."""
    # The slope at δ = −w, where the weight becomes zero; its sign is what counts where it is huge.
    exponent = np.clip(w / a, -_LONGEST, _LONGEST)
    slope = up * np.exp(exponent) - down * np.exp(-exponent)
    root = np.sqrt(alpha**2 + 4 * up * down)
    above = 2 * up / np.where(alpha + root > 0, alpha + root, 1)
    below = 2 * down / np.where(alpha + root > 0, alpha + root, 1)
    rise = a * np.log(np.where(above > 0, above, 1))
    fall = -a * np.log(np.where(below > 0, below, 1))
    return np.where(slope > alpha, rise, np.where(slope < -alpha, fall, -w))


def exponential_max(
    w: np.ndarray, up: np.ndarray, down: np.ndarray, a: float | np.ndarray, alpha: float
) -> np.ndarray:
    """Return the rows γ·a that minimize Σ_r a μ⁺_r e^{−δ_r/a} + a μ⁻_r e^{δ_r/a} + λ‖w + δ‖_∞."""
    a = np.asarray(a, np.float64)[..., None]
    # With γ = (w + δ)/a the bound is a Σ p_r e^{−γ_r} + n_r e^{γ_r}; the norm is a ‖γ‖_∞. All by
    # logarithms: weights may be many times as large as a.
    with np.errstate(divide="ignore"):
        p = np.log(up) + w / a
        n = np.log(down) - w / a
    slopes = np.exp(np.minimum(p, _LONGEST)) - np.exp(np.minimum(n, _LONGEST))
    zero = np.abs(slopes).sum(axis=-1, keepdims=True) <= alpha
    signs = np.where(p >= n, 1.0, -1.0)
    more = np.maximum(p, n)
    less = np.minimum(p, n)
    counts = more > -np.inf
    row_steps = np.where(counts, 0.5 * (np.where(counts, more, 0.0) - less), 0.0)
    order = np.argsort(-row_steps, axis=-1, kind="stable")
    M, N = (
        np.logaddexp.accumulate(np.take_along_axis(v, order, -1), axis=-1) for v in (more, less)
    )
    # The root of M e^{−ξ} − N e^{ξ} = λ, with the conjugate of its numerator.
    penalty = np.log(alpha) if alpha > 0 else -np.inf
    root = 0.5 * np.logaddexp(2 * penalty, np.log(4) + M + N)
    levels = np.where(zero, 0.0, np.log(2) + M) - np.logaddexp(penalty, root)
    following = np.full_like(levels, -np.inf)
    following[..., :-1] = np.take_along_axis(row_steps, order, -1)[..., 1:]
    first = np.argmax(levels >= following, axis=-1)[..., None]
    level = np.maximum(np.take_along_axis(levels, first, -1), 0.0)
    return np.asarray(np.where(zero, 0.0, a * signs * np.minimum(row_steps, level)))
