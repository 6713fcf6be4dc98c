"""The restricted master problem of several tasks that share features.

min Σ_t Σ_i ω_i L(z_it) + λ_s ‖w̃‖₁ + λ_p Σ_J ‖W_J‖_q with z_t = c_t − s_t ∘ (Φ(w_t + w̃) + b_t):
each task has weights of its own (W, one column a task) and shares others (w̃); either may be left
out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, Protocol, TypeVar, cast

import numpy as np

from visionshare.errors import InputError
from visionshare.losses import ConjugateLoss, ImportanceLoss, Multinomial, TaskLoss
from visionshare.penalties import RowPenalty, violations

T = TypeVar("T")


@dataclass(frozen=True)
class TaskTargets:
    """Targets and weights of the examples in each task.

    Attributes
    ----------
    s, c : ndarray of shape (m, T), float64
        z = c − s·f for scores f; see :mod:`visionshare.losses.separable`.
    omega : ndarray of shape (m,) or (m, T), float64
        Weights of the examples, above 0; or of each example in each task, at least 0: where it is
        0, the example's target is missing in that task.
    """

    s: np.ndarray
    c: np.ndarray
    omega: np.ndarray

    @property
    def n_tasks(self) -> int:
        """T."""
        return self.s.shape[1]

    @property
    def weights(self) -> np.ndarray:
        """Weights that broadcast over the tasks, (m, 1) or (m, T)."""
        return self.omega if self.omega.ndim == 2 else self.omega[:, None]

    @property
    def totals(self) -> np.ndarray:
        """Sum of the weights in each task, (T,)."""
        return np.broadcast_to(self.weights.sum(axis=0), self.n_tasks)


@dataclass(frozen=True)
class TaskWeights:
    """W (d, T), w̃ (d,) and b (T,), for scaled columns."""

    W: np.ndarray
    shared: np.ndarray
    b: np.ndarray

    @property
    def whole(self) -> np.ndarray:
        """w_t + w̃ as (d, T)."""
        return self.W + self.shared[:, None]

    def padded(self, n_new: int) -> TaskWeights:
        """Return these with ``n_new`` columns more, of weight 0."""
        return TaskWeights(
            np.pad(self.W, ((0, n_new), (0, 0))), np.pad(self.shared, (0, n_new)), self.b
        )

    def kept(self, positions: np.ndarray) -> TaskWeights:
        """Return these of some columns alone."""
        return TaskWeights(self.W[positions], self.shared[positions], self.b)


@dataclass(frozen=True)
class TaskSolution:
    """Where a solver stopped."""

    weights: TaskWeights
    value: float
    kkt: float
    iterations: int
    converged: bool


class Solver(Protocol):
    """What column generation asks of a solver."""

    def solve(self, start: TaskWeights, tol: float, max_iter: int) -> TaskSolution:
        """Return weights whose KKT residual is at most ``tol``."""
        ...


class StepSolver(Solver, Protocol):
    """A solver that can also make a single update."""

    def step(self, start: TaskWeights, group: int) -> TaskSolution:
        """Return weights after one update of the intercepts and one of a group's weights."""
        ...


@dataclass
class TaskProblem:
    """The active columns, what is learned from them, and the products a solver needs.

    Products run over tiles of examples, whose results are added in order: the bits do not depend
    on the number of threads.

    Attributes
    ----------
    targets : TaskTargets
    loss : TaskLoss
    norm : RowPenalty
        Ω_p, over the tasks and columns of a group.
    alpha, shared_alpha : float
        λ_p and λ_s; infinity leaves the weights of one kind out.
    dtype : numpy dtype
        Of the columns and the products.
    tile : int, default 8192
        Examples in a tile.
    order : ndarray of int, optional
        The examples of the rows among those of the columns that are appended; all when omitted.
    examples : int, optional
        Number of the columns' examples; that of the rows when omitted.
    """

    targets: TaskTargets
    loss: TaskLoss
    norm: RowPenalty
    alpha: float
    shared_alpha: float = np.inf
    dtype: np.dtype = field(default_factory=lambda: np.dtype(np.float64))
    executor: Executor | None = None
    n: int = 0
    removals: int = 0
    tile: int = 8192
    order: np.ndarray | None = None
    examples: int | None = None

    def __post_init__(self) -> None:
        self.m = len(self.targets.s)
        self.n_tasks = self.targets.n_tasks
        self._columns = np.empty((16, self.m), self.dtype)
        self._sizes: list[int] = []
        self.ids = np.zeros(0, np.int64)
        self.products = np.zeros((0, 0))
        self.sums = np.zeros(0)
        self.squares = np.zeros((0, self.targets.weights.shape[1]))

    def total(self, function: Callable[..., T], *args: Any, how: str = "sum") -> T:
        """Return the sum of what a function gives for all examples: of this problem, itself.

        A problem whose examples lie in several places calls it in each of them: see
        :meth:`visionshare.solvers.ActiveSet.total`.
        """
        return function(self, *args)

    def each(self, function: Callable[..., Any], *args: Any) -> Any:
        """Return what a function gives for each example: of this problem, itself."""
        return function(self, *args)

    @property
    def n_rows(self) -> int:
        """Examples that the problem learns from."""
        return self.m

    @property
    def omegas(self) -> np.ndarray:
        """Weights of the rows, or of the rows in each task, (n_weights, m)."""
        return np.ascontiguousarray(self.targets.weights.T)

    @property
    def per_task(self) -> bool:
        """Whether each task has weights W besides the shared ones."""
        return bool(np.isfinite(self.alpha))

    @property
    def sharing(self) -> bool:
        """Whether tasks share weights."""
        return bool(np.isfinite(self.shared_alpha))

    @property
    def least_alpha(self) -> float:
        """The least of λ_p and λ_s that is finite."""
        return min(s for s in (self.alpha, self.shared_alpha) if np.isfinite(s))

    @property
    def starts(self) -> np.ndarray:
        """First row of W of each group."""
        return np.cumsum([0, *self._sizes])[:-1].astype(np.int64)

    @property
    def columns(self) -> np.ndarray:
        """The active columns, (d, m)."""
        return self._columns[: self.n]

    def empty(self) -> TaskWeights:
        """Return weights of no columns."""
        return TaskWeights(np.zeros((0, self.n_tasks)), np.zeros(0), np.zeros(self.n_tasks))

    def append(
        self,
        new: np.ndarray,
        sizes: Sequence[int] | None = None,
        ids: np.ndarray | None = None,
    ) -> None:
        """Add scaled columns, given as rows of an array (g, m).

        Parameters
        ----------
        new : ndarray of shape (g, m)
            With an :attr:`order`, of all examples.
        sizes : sequence of int, optional
            Columns of each group, one after the other; all are one group when omitted.
        ids : ndarray of int, optional
            Ids of the columns; their positions here when omitted.
        """
        new = new if self.order is None else new[:, self.order]
        needed = self.n + len(new)
        if needed > len(self._columns):
            grown = np.empty((max(needed, 2 * len(self._columns)), self.m), self.dtype)
            grown[: self.n] = self.columns
            self._columns = grown
        self._columns[self.n : needed] = new
        first = self.n
        self.n = needed
        self._sizes.extend([len(new)] if sizes is None else sizes)
        self.ids = np.append(self.ids, np.arange(first, needed) if ids is None else ids)
        added = self._columns[first:needed].astype(np.float64)
        products = np.zeros((needed, needed))
        products[:first, :first] = self.products
        products[first:] = self.backward(added.T).T
        products[:, first:] = products[first:].T
        self.products = products
        self.sums = np.append(self.sums, added.sum(axis=1))
        weights = self.targets.weights
        squares = self._map(lambda tile: np.square(added[:, tile]) @ weights[tile], self.m)
        self.squares = np.vstack([self.squares, np.sum(squares, axis=0)])

    def keep(self, groups: np.ndarray) -> np.ndarray:
        """Keep only these groups, ascending; return the positions of their columns."""
        positions = self._positions(groups)
        self._columns[: len(positions)] = self._columns[positions]
        self.products = self.products[np.ix_(positions, positions)]
        self.sums = self.sums[positions]
        self.squares = self.squares[positions]
        return positions

    def _positions(self, groups: np.ndarray) -> np.ndarray:
        """Count only these groups from now on; return the positions of their columns."""
        ends = np.cumsum(self._sizes)
        parts = [np.arange(ends[g] - self._sizes[g], ends[g]) for g in groups]
        positions = np.concatenate([np.empty(0, np.int64), *parts])
        self._sizes = [self._sizes[g] for g in groups]
        self.n = len(positions)
        self.ids = self.ids[positions]
        self.removals += 1
        return positions

    def _map(self, function: Callable[[slice], T], m: int) -> list[T]:
        # One tile at least, so that there is something to add up.
        starts = range(0, max(m, 1), self.tile)
        tiles = [slice(i, min(i + self.tile, m)) for i in starts]
        if self.executor is None or len(tiles) == 1:
            return [function(tile) for tile in tiles]
        return list(self.executor.map(function, tiles))

    def forward(self, whole: np.ndarray) -> np.ndarray:
        """Return Φ·whole (m, T), float64, for weights (d, T)."""
        weights = np.ascontiguousarray(whole, self.dtype)
        X = self.columns
        parts = self._map(lambda tile: np.dot(X[:, tile].T, weights), self.m)
        return np.concatenate(parts).astype(np.float64, copy=False)

    def backward(self, Q: np.ndarray) -> np.ndarray:
        """Return ΦᵀQ (d, columns of Q), float64."""
        Q = np.ascontiguousarray(Q, self.dtype)
        X = self.columns
        parts = self._map(lambda tile: np.dot(X[:, tile], Q[tile]), self.m)
        return np.asarray(np.sum(parts, axis=0, dtype=np.float64))

    def gram(self, A: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Return A·diag(weights)·Aᵀ (p, p), float64, for rows A (p, n) of the problem's dtype."""
        w = weights.astype(A.dtype)
        parts = self._map(lambda tile: np.dot(A[:, tile] * w[tile], A[:, tile].T), len(w))
        return np.asarray(np.sum(parts, axis=0, dtype=np.float64))

    def mean_squares(self) -> np.ndarray:
        """Return the columns' mean Σ ω x² in each task, (T,); 1 without columns."""
        means = self.squares.mean(axis=0) if self.n else np.ones(1)
        return np.broadcast_to(means, self.n_tasks)

    def curvature_grams(
        self, z: np.ndarray, columns: Sequence[np.ndarray]
    ) -> tuple[np.ndarray, ...]:
        """Return Σ_i h_i [x_i; 1][x_i; 1]ᵀ for each task's own columns, with h = ω L''.

        Examples without curvature are skipped.
        """
        bends = self.loss.second_derivative(z) * self.targets.weights
        grams = []
        for i, rows in enumerate(columns):
            used = np.flatnonzero(bends[:, i])
            A = np.ones((len(rows) + 1, len(used)), self.dtype)
            A[:-1] = self.columns[np.ix_(rows, used)]
            grams.append(self.gram(A, bends[used, i]))
        return tuple(grams)

    def row_values(self, rows: np.ndarray) -> np.ndarray:
        """Return some columns as rows (g, m), float64."""
        return self.columns[rows].astype(np.float64)

    def row_sums(self, z: np.ndarray, X: np.ndarray, weighs: bool) -> tuple[np.ndarray, np.ndarray]:
        """Return the gradient of rows (g, T), and the importance times |x| where it weighs."""
        gradient = X @ self.residual(z)
        if not weighs:
            return gradient, np.zeros_like(gradient)
        return gradient, np.abs(X) @ self.importance(z)

    def shifted(self, z: np.ndarray, X: np.ndarray, change: np.ndarray) -> np.ndarray:
        """Return slacks, written over, after a change (g, T) of the weights of rows."""
        z -= self.targets.s * (X.T @ change)
        return z

    def intercept_gradient(self, z: np.ndarray) -> np.ndarray:
        """Return the gradient of the intercepts (T,)."""
        return np.asarray(self.residual(z).sum(axis=0))

    def intercept_importance(self, z: np.ndarray) -> np.ndarray:
        """Return the importance of the examples in each task, (T,)."""
        return np.asarray(self.importance(z).sum(axis=0))

    def raised(self, z: np.ndarray, step: np.ndarray) -> np.ndarray:
        """Return slacks, written over, after a step (T,) of the intercepts."""
        z -= self.targets.s * step
        return z

    def subset(self, used: np.ndarray) -> TaskProblem:
        """Return the problem of those rows that are used, (m,) bool."""
        rows = np.flatnonzero(used)
        targets = self.targets
        part = TaskTargets(targets.s[rows], targets.c[rows], targets.omega[rows])
        loss = self.loss
        if isinstance(loss, Multinomial):
            loss = replace(loss, y=loss.y[rows])
        smaller = TaskProblem(
            part, loss, self.norm, self.alpha, self.shared_alpha, self.dtype, self.executor
        )
        for a, b in pairwise(np.append(self.starts, self.n)):
            smaller.append(self.columns[a:b, rows], ids=self.ids[a:b])
        return smaller

    def slack(self, weights: TaskWeights) -> np.ndarray:
        """Return z (m, T)."""
        scores = self.forward(weights.whole) + weights.b
        return self.targets.c - self.targets.s * scores

    def residual(self, z: np.ndarray) -> np.ndarray:
        """Return R (m, T), the loss's derivative in the scores."""
        return -self.targets.s * self.loss.derivative(z) * self.targets.weights

    def importance(self, z: np.ndarray) -> np.ndarray:
        """Return the weighted importance (m, T), for losses that have one."""
        return cast(ImportanceLoss, self.loss).importance(z) * self.targets.weights

    def loss_value(self, z: np.ndarray) -> float:
        """Return the weighted loss at slacks z."""
        return float(np.sum(self.targets.weights * self.loss.value(z)))

    def value(self, weights: TaskWeights) -> float:
        """Return the objective."""
        return self.loss_value(self.slack(weights)) + self.penalty(weights)

    def penalty(self, weights: TaskWeights) -> float:
        """Return λ_s ‖w̃‖₁ + λ_p Ω_p(W)."""
        total = 0.0
        if self.per_task and self.n:
            total += self.alpha * self.norm.value(weights.W, self.starts)
        if self.sharing:
            total += self.shared_alpha * float(np.abs(weights.shared).sum())
        return total

    def prox(self, weights: TaskWeights, step: float | np.ndarray) -> TaskWeights:
        """Return the proximal operator of ``step`` times the penalties.

        A step may be given for each column, equal within groups.
        """
        W = np.zeros_like(weights.W)
        shared = np.zeros_like(weights.shared)
        if self.per_task:
            W = self.norm.prox(weights.W, self.starts, step * self.alpha)
        if self.sharing:
            level = step * self.shared_alpha
            shared = np.sign(weights.shared) * np.maximum(np.abs(weights.shared) - level, 0)
        return TaskWeights(W, shared, weights.b)

    def gradient(self, z: np.ndarray) -> TaskWeights:
        """Return the loss's gradient in all weights, at slacks z."""
        R = self.residual(z)
        W = self.backward(R)
        return TaskWeights(W, W.sum(axis=1), R.sum(axis=0))

    def examine(self, weights: TaskWeights) -> tuple[float, float]:
        """Return the objective and the KKT residual."""
        z = self.slack(weights)
        value = self.loss_value(z) + self.penalty(weights)
        return value, self.kkt(weights, self.gradient(z))

    def duality_gap(self, weights: TaskWeights, violation: float) -> float:
        """Return an upper bound of how far the objective is above that of all candidates.

        The loss's derivative, scaled by σ = λ / (λ + v) until nothing violates, is feasible in the
        dual problem; the bound is the objective minus the dual's. At the optimum of the problem's
        columns it is at most 1 − σ of the objective, and (1 − σ)² of the loss plus 1 − σ of the
        penalties where losses are squares.

        Parameters
        ----------
        weights : TaskWeights
            With the best intercepts: the dual takes their gradient for zero.
        violation : float
            v, the largest of candidates outside the problem.

        Raises
        ------
        InputError
            If the penalty makes no weight zero: a bound would need every candidate's gradient.
        """
        if self.norm.least(1.0) == 0:
            raise InputError("norm", self.norm, "a norm that makes weights zero")
        z = self.slack(weights)
        gradient = self.gradient(z)
        worst = max(violation, 0.0)
        if self.n:
            limits = (self.norm, self.alpha, self.shared_alpha)
            worst = max(worst, float(violations(gradient.W, self.starts, *limits).max()))
        scale = self.least_alpha / (self.least_alpha + worst)
        along = float(np.sum(gradient.W * weights.W) + gradient.shared @ weights.shared)
        return self.penalty(weights) + scale * along + self.fenchel_young(z, scale)

    def fenchel_young(self, z: np.ndarray, scale: float) -> float:
        """Return Σ ω (L(z) + L*(u) − zu) with u = scale·L'(z), or an upper bound."""
        if scale == 1:
            return 0.0
        if not isinstance(self.loss, ConjugateLoss):
            return (1 - scale) * self.loss_value(z)
        return float(np.sum(self.targets.weights * self.loss.fenchel_young(z, scale)))

    def kkt(self, weights: TaskWeights, gradient: TaskWeights) -> float:
        """Return how far weights are from optimal: the largest of three shares.

        ‖v − prox(v − ∇)‖_∞, the step that a proximal gradient of unit length would take, over λ,
        for W and for w̃ (for half the squares the objective's gradient); and the intercepts'
        gradients over √m·λ, as for columns of unit norm.
        """
        residuals = [0.0]
        least = self.least_alpha or 1.0
        if self.per_task and self.n:
            far = self.norm.distance(weights.W, gradient.W, self.starts, self.alpha)
            residuals.append(far.max() / (self.alpha or 1.0))
        if self.sharing and self.n:
            ahead = weights.shared - gradient.shared
            kept = np.sign(ahead) * np.maximum(np.abs(ahead) - self.shared_alpha, 0)
            size = np.abs(weights.shared - kept).max()
            residuals.append(size / (self.shared_alpha or 1.0))
        scale = least * np.sqrt(self.targets.totals)
        residuals.append((np.abs(gradient.b) / scale).max())
        return float(max(residuals))
