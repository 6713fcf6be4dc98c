"""The alternating direction method of multipliers for the tasks' master problem."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.linalg.lapack import dpotrs

from visionshare.solvers.tasks import Solver, TaskProblem, TaskSolution, TaskWeights

_CHECK = 10
_LEAST_ETA = 10.0
_SHARE = 0.01
_RELAXED = 1.6
_UNBALANCED = 3.0


@dataclass
class _Dual:
    """Copies and multipliers of the slacks: a, μ (m, T)."""

    a: np.ndarray
    mu: np.ndarray


class Admm(Solver):
    """Splits scores from losses and weights from penalties; factors once, updates the factor.

    Copies a_t of the slacks z_t, u of W and ũ of w̃ carry loss and penalties; the weights solve a
    linear system whose matrix changes only when a column enters (one triangular solve extends its
    Cholesky factor) or leaves. One factor serves all tasks.

    Parameters
    ----------
    problem : TaskProblem
        May gain and lose columns between two calls of :meth:`solve`.
    as_published : bool, default False
        The paper's settings, for comparisons: ξ = max(10/n, 0.1), η = max(10, d) for all d columns
        alike, neither relaxation nor balancing.

    References
    ----------
    A. Rakotomamonjy, R. Flamary, F. Yger, "Learning with infinitely many features", Machine
    Learning 91, 2013, §4.1 and algorithm 2; S. Boyd et al., "Distributed optimization and
    statistical learning via the alternating direction method of multipliers", 2011, §3.4.

    Notes
    -----
    η is for columns of mean square 1 and in proportion for others: unit norm and unit variance
    then take the same steps. ξ begins at the loss's curvature and η at max(10, nd/100), part of
    what the eigenvalues of ΦᵀΦ may be: from the paper's max(10/n, 0.1) and max(10, d), columns
    whose scales differ by 10⁴ did not converge. Iterations 10, 20, 40, … compare the residuals of
    both kinds; where one is far larger than the other, ξ or η changes, with a new factorization.
    The last term of equation 26's second row is missing in print.
    """

    def __init__(self, problem: TaskProblem, as_published: bool = False) -> None:
        self.problem = problem
        self.as_published = as_published
        self._relaxed = 1.0 if as_published else _RELAXED
        curvature = float(problem.loss.curvature)
        first = curvature if np.isfinite(curvature) else 1.0
        self.xi = max(10 / problem.m, 0.1) if as_published else first
        self.eta = 0.0
        self._metric = np.zeros(0)
        self._removals = -1
        self._factor = np.zeros((0, 0))
        self._shared_factor = np.zeros((0, 0))

    def solve(self, start: TaskWeights, tol: float, max_iter: int) -> TaskSolution:
        self._factorize()
        problem = self.problem
        z = problem.slack(start)
        gradient = problem.gradient(z)
        kkt = problem.kkt(start, gradient)
        if kkt <= tol:
            value = problem.loss_value(z) + problem.penalty(start)
            return TaskSolution(start, value, kkt, 0, True)
        # The multipliers start where they would end if the start were optimal.
        dual = _Dual(z, problem.loss.derivative(z) * problem.targets.weights)
        u = start
        nu = TaskWeights(-gradient.W, -gradient.shared, gradient.b)
        W = start
        balance = _CHECK
        for iteration in range(1, max_iter + 1):
            W = self._weights(W, u, nu, dual)
            before_u = u
            before_a = dual.a
            u, nu = self._copies(W, u, nu)
            z = self._losses(W, dual)
            if iteration == balance and not self.as_published:
                balance *= 2
                self._balance(W, u, before_u, nu, z, dual, before_a)
            if iteration % _CHECK == 0 or iteration == max_iter:
                candidate = TaskWeights(u.W, u.shared, W.b)
                value, kkt = problem.examine(candidate)
                if kkt <= tol or iteration == max_iter:
                    return TaskSolution(candidate, value, kkt, iteration, kkt <= tol)
        raise AssertionError("at least one iteration is made")

    def _losses(self, W: TaskWeights, dual: _Dual) -> np.ndarray:
        """Move a and μ; return the slacks."""
        problem = self.problem
        z = problem.slack(W)
        relaxed = self._relaxed * z + (1 - self._relaxed) * dual.a
        dual.a = problem.loss.prox(relaxed + dual.mu / self.xi, problem.targets.weights / self.xi)
        dual.mu = dual.mu + self.xi * (relaxed - dual.a)
        return z

    def _copies(
        self, weights: TaskWeights, u: TaskWeights, nu: TaskWeights
    ) -> tuple[TaskWeights, TaskWeights]:
        """Return u, ũ and their multipliers."""
        eta = self._metric
        W = self._relaxed * weights.W + (1 - self._relaxed) * u.W
        shared = self._relaxed * weights.shared + (1 - self._relaxed) * u.shared
        moved = TaskWeights(W + nu.W / eta[:, None], shared + nu.shared / eta, weights.b)
        solution = self.problem.prox(moved, 1 / eta)
        return solution, TaskWeights(
            nu.W + eta[:, None] * (W - solution.W),
            nu.shared + eta * (shared - solution.shared),
            nu.b,
        )

    def _balance(
        self,
        W: TaskWeights,
        u: TaskWeights,
        before_u: TaskWeights,
        nu: TaskWeights,
        z: np.ndarray,
        dual: _Dual,
        before_a: np.ndarray,
    ) -> None:
        """Change ξ and η where primal and dual residuals are far apart, and factorize again."""
        primal = _share(z - dual.a, z)
        factor = _factor(primal, _share(self.xi * (dual.a - before_a), dual.mu))
        self.xi *= factor
        changed = factor != 1
        if self.problem.n:
            root = np.sqrt(self._metric)[:, None]
            joined = _whole(W)
            copies = _whole(u)
            earlier = _whole(before_u)
            primal = _share((joined - copies) * root, joined * root)
            dual_share = _share((copies - earlier) * root, _whole(nu) / root)
            factor = _factor(primal, dual_share)
            self.eta *= factor
            changed |= factor != 1
        if changed:
            self._removals = -1
            self._factorize()

    def _weights(
        self, old: TaskWeights, u: TaskWeights, nu: TaskWeights, dual: _Dual
    ) -> TaskWeights:
        """Return W and b, then w̃, that solve their linear systems."""
        problem = self.problem
        eta = self._metric
        xi = self.xi
        W = old.W.copy()
        shared = old.shared
        products = problem.products
        sums = problem.sums
        targets = problem.targets
        Q = targets.s * (dual.mu + xi * (targets.c - dual.a))
        B = problem.backward(Q)
        q = Q.sum(axis=0)
        if problem.per_task:
            top = q - xi * (sums @ shared)
            rest = B - nu.W + eta[:, None] * u.W
            rest -= xi * (products @ shared)[:, None]
            solution = self._solve(self._factor, np.vstack([top[None], rest]))
            b = solution[0].copy()
            W[:] = solution[1:]
        else:
            b = q / (xi * problem.m) - sums @ shared / problem.m
        if problem.sharing and problem.n:
            right = eta * u.shared - nu.shared
            right += B.sum(axis=1) - xi * (products @ W.sum(axis=1))
            right -= xi * sums * b.sum()
            shared = self._solve(self._shared_factor, right[:, None])[:, 0]
        return TaskWeights(W, shared, b)

    @staticmethod
    def _solve(factor: np.ndarray, right: np.ndarray) -> np.ndarray:
        solution, _ = dpotrs(factor, right, lower=1)
        return np.asarray(solution)

    def _factorize(self) -> None:
        """Extend the factors by the columns that entered; restart where columns left."""
        problem = self.problem
        eta = max(_LEAST_ETA, float(problem.n))
        if self.as_published and self.eta != eta:
            self.eta = eta
            self._removals = -1
        if self._removals != problem.removals:
            self._removals = problem.removals
            self._factor = np.zeros((0, 0))
            self._shared_factor = np.zeros((0, 0))
        examples = problem.m
        if self.eta == 0 and problem.n:
            self.eta = max(_LEAST_ETA, _SHARE * examples * problem.n)
        squares = np.diag(problem.products) / examples
        # All columns of a group have one weight, so that its proximal operator stays what it is.
        means = np.add.reduceat(squares, problem.starts) if problem.n else squares
        sizes = np.diff(np.append(problem.starts, problem.n))
        self._metric = self.eta * np.maximum(np.repeat(means / np.maximum(sizes, 1), sizes), 1e-300)
        if self.as_published:
            self._metric = np.full(problem.n, self.eta)
        if problem.per_task:
            self._factor = _extended(self._factor, self._system())
        if problem.sharing:
            matrix = np.diag(self._metric) + self.xi * problem.n_tasks * problem.products
            self._shared_factor = _extended(self._shared_factor, matrix)

    def _system(self) -> np.ndarray:
        """Return [ξn, ξ1ᵀΦ; ξΦᵀ1, ξΦᵀΦ + η]: the intercept first, so that columns come last."""
        problem = self.problem
        n = problem.n
        matrix = np.empty((n + 1, n + 1))
        matrix[0, 0] = self.xi * problem.m
        matrix[0, 1:] = matrix[1:, 0] = self.xi * problem.sums
        matrix[1:, 1:] = self.xi * problem.products
        matrix[np.arange(1, n + 1), np.arange(1, n + 1)] += self._metric
        return matrix


def _whole(weights: TaskWeights) -> np.ndarray:
    return np.column_stack([weights.W, weights.shared])


def _share(part: np.ndarray, whole: np.ndarray) -> float:
    return float(np.linalg.norm(part) / max(np.linalg.norm(whole), 1e-300))


def _factor(primal: float, dual: float) -> float:
    """Return what a weight is to be multiplied with: 1 where the residuals are of one size."""
    ratio = primal / max(dual, 1e-300)
    if 1 / _UNBALANCED <= ratio <= _UNBALANCED:
        return 1.0
    return float(np.clip(np.sqrt(ratio), 0.1, 10))


def _extended(factor: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    """Return the lower Cholesky factor of a matrix whose leading part has this factor."""
    have = len(factor)
    if have == len(matrix):
        return factor
    if have == 0:
        return np.asfortranarray(cholesky(matrix, lower=True, check_finite=False))
    side = solve_triangular(factor, matrix[:have, have:], lower=True, check_finite=False)
    corner = matrix[have:, have:] - side.T @ side
    out = np.zeros_like(matrix, order="F")
    out[:have, :have] = factor
    out[have:, :have] = side.T
    out[have:, have:] = cholesky(corner, lower=True, check_finite=False)
    return out
