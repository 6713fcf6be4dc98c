"""Kernel machines that the papers compare with: CSI, and infinite kernel learning.

Both are written from their papers, as short as they can be; kernels are Gaussian.

References
----------
F. Bach, M. Jordan, "Predictive low-rank decomposition for kernel methods", ICML 2005 (CSI);
P. Gehler, S. Nowozin, "Infinite kernel learning", 2008; Z. Xu, R. Jin, H. Yang, I. King, M. Lyu,
"Simple and efficient multiple kernel learning by group lasso", ICML 2010 (the weights' update).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular
from scipy.spatial.distance import cdist
from sklearn.svm import SVC

# Columns that are computed ahead to judge pivots, and what the labels count beside the kernel.
AHEAD, SIDE = 10, 0.99


def gaussian(X: np.ndarray, Z: np.ndarray, gamma: float) -> np.ndarray:
    """Return exp(−γ‖x − z‖²), (len(X), len(Z))."""
    return np.exp(-gamma * cdist(X, Z, "sqeuclidean"))


@dataclass(frozen=True)
class LowRank:
    """Weights of a decomposition's columns; ``size`` examples are pivots."""

    pivots: np.ndarray
    factor: np.ndarray
    gamma: float
    weights: np.ndarray
    intercept: float

    @property
    def size(self) -> int:
        """Number of pivots."""
        return len(self.pivots)

    def scores(self, X: np.ndarray) -> np.ndarray:
        """Return scores, above 0 for the second class."""
        kernel = gaussian(X, self.pivots, self.gamma)
        columns = solve_triangular(self.factor, kernel.T, lower=True).T
        return columns @ self.weights + self.intercept


def side_information(
    X: np.ndarray, signs: np.ndarray, rank: int, gamma: float, ridge: float
) -> LowRank:
    """Return ridge regression on an incomplete Cholesky factor whose pivots heed the labels."""
    m = len(X)
    target = signs - signs.mean()
    G = np.zeros((m, 0))
    # Of the columns so far: an orthonormal basis, with the constant.
    Q = np.full((m, 1), 1 / np.sqrt(m))
    left = np.ones(m)
    pivots: list[int] = []
    for _ in range(min(rank, m)):
        # 1) columns ahead stand for the residual of the kernel, which is m × m
        ahead, spare = G, left.copy()
        for _ in range(AHEAD):
            ahead = _with_column(X, ahead, spare, int(np.argmax(spare)), gamma)
        A = ahead[:, G.shape[1] :]
        # 2) what each pivot's column would add to the kernel's trace, and explain of the labels
        trace = np.einsum("ij,jk,ik->i", A, A.T @ A, A) / np.maximum(left, 1e-12)
        free = A - Q @ (Q.T @ A)
        explained = (A @ (free.T @ target)) ** 2
        explained /= np.maximum(np.einsum("ij,jk,ik->i", A, free.T @ free, A), 1e-12)
        gain = (1 - SIDE) * trace / m + SIDE * explained / (target @ target)
        gain[left < 1e-8] = -np.inf
        best = int(np.argmax(gain))
        if not np.isfinite(gain[best]):
            break
        # 3) the best one enters
        G = _with_column(X, G, left, best, gamma)
        pivots.append(best)
        column = G[:, -1] - Q @ (Q.T @ G[:, -1])
        Q = np.column_stack([Q, column / max(np.linalg.norm(column), 1e-12)])
    # 4) ridge regression on the columns
    centered = G - G.mean(axis=0)
    system = centered.T @ centered + ridge * np.eye(len(pivots))
    weights = np.linalg.solve(system, centered.T @ target)
    intercept = float(signs.mean() - G.mean(axis=0) @ weights)
    return LowRank(X[pivots], G[pivots], gamma, weights, intercept)


def _with_column(
    X: np.ndarray, G: np.ndarray, left: np.ndarray, pivot: int, gamma: float
) -> np.ndarray:
    """Return the factor with a pivot's column, and lower what is left of the diagonal."""
    size = np.sqrt(max(left[pivot], 1e-12))
    column = (gaussian(X, X[[pivot]], gamma)[:, 0] - G @ G[pivot]) / size
    # Exactly triangular: rows of earlier pivots have nothing left.
    column[left <= 0] = 0
    column[pivot] = size
    left -= column**2
    left[pivot] = 0
    np.maximum(left, 0, out=left)
    return np.column_stack([G, column])


@dataclass(frozen=True)
class SumOfKernels:
    """A support vector machine with a weighted sum of Gaussian kernels."""

    X: np.ndarray
    gammas: np.ndarray
    shares: np.ndarray
    machine: SVC

    @property
    def size(self) -> int:
        """Number of support vectors."""
        return int(self.machine.n_support_.sum())

    def scores(self, X: np.ndarray) -> np.ndarray:
        """Return scores, above 0 for the second class."""
        return self.machine.decision_function(_summed(X, self.X, self.gammas, self.shares))


def infinite_kernels(
    X: np.ndarray, signs: np.ndarray, cost: float, gammas: tuple[float, float], rounds: int = 6
) -> SumOfKernels:
    """Return a machine whose kernels come from an interval of γ: the worst violator enters."""
    tried = np.geomspace(*gammas, 25)
    distances = cdist(X, X, "sqeuclidean")
    chosen = [float(np.sqrt(gammas[0] * gammas[1]))]
    shares = np.ones(1)
    for _ in range(rounds):
        # 1) machine and shares, in turn, for the kernels so far
        kernels = [np.exp(-gamma * distances) for gamma in chosen]
        for _ in range(5):
            kernel = sum(share * one for share, one in zip(shares, kernels, strict=True))
            machine = SVC(C=cost, kernel="precomputed").fit(kernel, signs)
            dual = np.zeros(len(X))
            dual[machine.support_] = machine.dual_coef_[0]
            norms = shares * np.sqrt([max(dual @ one @ dual, 0) for one in kernels])
            shares = norms / norms.sum()
        # 2) the kernel that violates optimality most; done where none does
        values = [dual @ np.exp(-gamma * distances) @ dual for gamma in tried]
        reached = max(dual @ one @ dual for one in kernels)
        if max(values) <= reached * (1 + 1e-3):
            break
        chosen.append(float(tried[int(np.argmax(values))]))
        shares = np.append(shares * (1 - 1 / len(chosen)), 1 / len(chosen))
    used = shares > 1e-3
    kept = np.array(chosen)[used], shares[used]
    machine = SVC(C=cost, kernel="precomputed").fit(_summed(X, X, *kept), signs)
    return SumOfKernels(X, *kept, machine)


def _summed(X: np.ndarray, Z: np.ndarray, gammas: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Return the weighted sum of kernels."""
    distances = cdist(X, Z, "sqeuclidean")
    out = np.zeros_like(distances)
    for gamma, share in zip(gammas, shares, strict=True):
        out += share * np.exp(-gamma * distances)
    return out
