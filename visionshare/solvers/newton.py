"""Newton steps on the weights that are not zero, between proximal steps that say which are."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from visionshare.penalties import HalfSquares, RowPenalty
from visionshare.solvers.fista import Fista
from visionshare.solvers.tasks import Solver, TaskProblem, TaskSolution, TaskWeights

_DEAREST = 1 << 28
_STEPS = 30
_IDENTIFY = 10
_LARGEST = 6000
_DULL = 3
_PATIENCE = 160
# Many weights are left to proximal steps until no more than this fraction of zeros changes.
_SETTLED = 0.02
_SMALL = 500
_CROSSINGS = 4
_DAMPINGS = (1e-10, 1e-6, 1e-3)
_LENGTHS = 0.5 ** np.arange(6)
_TINY = 1e-300

# Blocks of a block diagonal matrix: their positions, and their entries.
Hessian = list[tuple[np.ndarray, np.ndarray]]


def _bends(norm: RowPenalty) -> bool:
    """Return whether a penalty is smooth where its weights are not zero."""
    return norm.q in (1, 2) or isinstance(norm, HalfSquares)


class Newton(Solver):
    """Proximal steps find which weights are zero, Newton's method the others.

    Where weights are not zero, ℓ1 and ℓ1/ℓ2 norms are smooth, and half the squares always. A
    Newton step costs one weighted Gram matrix of the columns in use, and replaces hundreds of
    first-order iterations where columns are nearly collinear. Norms of other q, and
    more than 6000 free weights that depend on each other, are left to :class:`Fista`.

    References
    ----------
    J. D. Lee, Y. Sun, M. A. Saunders, "Proximal Newton-type methods for minimizing composite
    functions", SIAM Journal on Optimization 24, 2014.
    """

    def __init__(self, problem: TaskProblem) -> None:
        self.problem = problem
        self._proximal = Fista(problem)

    def solve(self, start: TaskWeights, tol: float, max_iter: int) -> TaskSolution:
        if not _bends(self.problem.norm):
            return self._proximal.solve(start, tol, max_iter)
        weights = start
        spent = 0
        patience = _IDENTIFY
        value = np.inf
        dull = 0
        while True:
            solution = self._proximal.solve(weights, tol, min(patience, max_iter - spent))
            changed = np.count_nonzero((solution.weights.W != 0) != (weights.W != 0))
            settled = changed <= _SETTLED * weights.W.size
            weights = solution.weights
            spent = spent + solution.iterations
            if solution.converged or spent >= max_iter or dull >= _DULL:
                return TaskSolution(
                    weights, solution.value, solution.kkt, spent, solution.converged
                )
            # No digit is left where several rounds of both kinds gain nothing.
            dull = dull + 1 if value - solution.value <= self._noise() * abs(solution.value) else 0
            value = solution.value
            steps = 0
            if settled or _Free(self.problem, weights).largest <= _SMALL:
                weights, steps = self._steps(weights, value, tol, max_iter - spent)
            spent += steps
            if dull or steps == 0:
                patience = min(2 * patience, _PATIENCE)
            if spent >= max_iter:
                value, kkt = self.problem.examine(weights)
                return TaskSolution(weights, value, kkt, spent, kkt <= tol)

    def _noise(self) -> float:
        """Return what rounding alone may change in the objective, relative to it."""
        return max(1e-13, 4 * float(np.finfo(self.problem.dtype).eps))

    def _steps(
        self, weights: TaskWeights, value: float, tol: float, most: int
    ) -> tuple[TaskWeights, int]:
        """Return weights after Newton steps that lower the objective, and their number."""
        problem = self.problem
        iterations = 0
        crossings = 0
        while iterations < min(_STEPS, most):
            free = _Free(problem, weights)
            if free.largest > _LARGEST:
                break
            gradient, hessian = free.derivatives(weights)
            fewer = free.without(weights, free.vanishing(weights, gradient, hessian))
            reached = np.inf if fewer is None else problem.value(fewer)
            if fewer is not None and reached <= value:
                weights = fewer
                value = reached
                iterations = iterations + 1
                continue
            if np.abs(gradient).max() <= 0.5 * tol:
                break
            solution = self._step(free, weights, value, gradient, hessian)
            if solution is None:
                break
            new, reached, crossed = solution
            crossings += crossed
            if crossings > _CROSSINGS:
                break
            weights = new
            value = reached
            iterations = iterations + 1
        return weights, iterations

    def _step(
        self,
        free: _Free,
        weights: TaskWeights,
        value: float,
        gradient: np.ndarray,
        hessian: Hessian,
    ) -> tuple[TaskWeights, float, bool] | None:
        """Return weights after one step, their value, and whether it only went to a zero."""
        # Where the Hessian is nearly singular, as with fewer examples at work than weights, its
        # step leads far away: it is damped until it lowers the objective.
        most = value + self._noise() * abs(value)
        largest = np.abs(gradient).max()
        for damping in _DAMPINGS:
            step = np.zeros(len(gradient))
            for positions, H in hessian:
                step[positions] = _solved(H, gradient[positions], damping)
            slope = float(gradient @ step)
            for length in _LENGTHS:
                new = free.moved(weights, length * step)
                reached = self.problem.value(new)
                if reached <= value + 1e-4 * length * slope:
                    return new, reached, False
                # Rounding hides what the step gains; the gradient still shows it.
                if reached <= most and np.abs(free.gradient(new)).max() <= 0.5 * largest:
                    return new, reached, False
        # To the first weight that becomes zero: there are fewer then.
        new = free.moved(weights, free.crossing(weights, step) * step)
        reached = self.problem.value(new)
        return (new, reached, True) if reached <= most else None


def polish(problem: TaskProblem, weights: TaskWeights) -> TaskWeights:
    """Return weights nearer to the optimum with the same zeros, or the same weights.

    Newton steps until they no longer lower the KKT residual: the last digits of a small problem.
    Norms of q other than 1 and 2, and problems whose Hessian is expensive, are returned unchanged.
    """
    if not _bends(problem.norm):
        return weights
    best = problem.examine(weights)[1]
    for _ in range(_STEPS):
        free = _Free(problem, weights)
        if problem.n_rows * free.n * free.largest > _DEAREST:
            return weights
        gradient, hessian = free.derivatives(weights)
        step = np.zeros(free.n)
        for positions, H in hessian:
            step[positions] = np.linalg.lstsq(H, -gradient[positions], rcond=1e-13)[0]
        new = free.moved(weights, step)
        kkt = problem.examine(new)[1]
        if not kkt < best:
            break
        weights = new
        best = kkt
    return weights


def _solved(H: np.ndarray, gradient: np.ndarray, damping: float) -> np.ndarray:
    """Return −(H + ρI)⁻¹g; ρ, the damping times H's mean diagonal, grows where it must."""
    ridge = damping * float(np.trace(H)) / len(H) + 1e-300
    for _ in range(8):
        try:
            damped = H + ridge * np.eye(len(H))
            return -cho_solve(cho_factor(damped, lower=True), gradient)
        except LinAlgError:
            ridge *= 100
    return -gradient


class _Free:
    """The weights that may move: their positions, and the objective's derivatives in them."""

    def __init__(self, problem: TaskProblem, weights: TaskWeights) -> None:
        self.problem = problem
        alive = weights.W != 0
        if problem.norm.q == 2 and problem.n:
            sizes = np.diff(np.append(problem.starts, problem.n))
            norms = problem.norm.norms(weights.W, problem.starts)
            alive = np.broadcast_to(np.repeat(norms > 0, sizes)[:, None], alive.shape)
        elif isinstance(problem.norm, HalfSquares):
            alive = np.ones_like(alive)
        self.entries = np.nonzero(alive & problem.per_task)
        self.shared = np.flatnonzero((weights.shared != 0) & problem.sharing)
        self.n = len(self.entries[0]) + len(self.shared) + problem.n_tasks
        # Norms of each weight alone leave the tasks apart: the Hessian has a block for each.
        apart = problem.norm.q == 1 or isinstance(problem.norm, HalfSquares)
        self.apart = apart and not problem.sharing
        self.largest = self.n
        if self.apart:
            counts = np.bincount(self.entries[1], minlength=problem.n_tasks)
            self.largest = 1 + int(counts.max(initial=0))

    def moved(self, weights: TaskWeights, step: np.ndarray) -> TaskWeights:
        """Return weights after a step; those that ℓ1 norms would bend at 0 stop there."""
        W = weights.W.copy()
        shared = weights.shared.copy()
        a = len(self.entries[0])
        W[self.entries] += step[:a]
        shared[self.shared] += step[a : a + len(self.shared)]
        if self.problem.norm.q == 1:
            W[weights.W * W < 0] = 0
        shared[weights.shared * shared < 0] = 0
        return TaskWeights(W, shared, weights.b + step[a + len(self.shared) :])

    def crossing(self, weights: TaskWeights, step: np.ndarray) -> float:
        """Return the length at which the first weight that ℓ1 norms bend is zero."""
        positions = [(weights.shared[self.shared], len(self.entries[0]))]
        if self.problem.norm.q == 1:
            positions.append((weights.W[self.entries], 0))
        least = 1.0
        for values, first in positions:
            moves = step[first : first + len(values)]
            falling = values * moves < 0
            least = min(least, float(np.min(-values[falling] / moves[falling], initial=1.0)))
        # A little beyond, so that rounding leaves it at zero.
        return least * (1 + 1e-12)

    def vanishing(self, weights: TaskWeights, gradient: np.ndarray, hessian: Hessian) -> np.ndarray:
        """Return the positions of groups that are best at zero while the others stay."""
        # A group's zero is optimal where the loss's gradient there is no longer than λ, and the
        # loss's curvature tells that gradient: Newton's own steps only come nearer to a zero.
        problem = self.problem
        if problem.norm.q != 2 or isinstance(problem.norm, HalfSquares) or not problem.per_task:
            return np.empty(0, np.intp)
        a = len(self.entries[0])
        w = weights.W[self.entries]
        first, second = self._pairs
        # The penalty bends no group along itself, so that H w is the loss's alone.
        curved = np.bincount(first, hessian[0][1][first, second] * w[second], a)
        loss = gradient[:a] - problem.alpha * self._units(w)[0] - curved
        return np.flatnonzero(self._norms(loss) <= problem.alpha)

    def without(self, weights: TaskWeights, positions: np.ndarray) -> TaskWeights | None:
        """Return the weights with zeros at these positions, None where there are none."""
        if not len(positions):
            return None
        W = weights.W.copy()
        W[self.entries[0][positions], self.entries[1][positions]] = 0
        return TaskWeights(W, weights.shared, weights.b)

    def gradient(self, weights: TaskWeights) -> np.ndarray:
        """Return the gradient (n,) of loss and penalties."""
        return self._gradient(weights, self.problem.slack(weights))

    def derivatives(self, weights: TaskWeights) -> tuple[np.ndarray, Hessian]:
        """Return gradient (n,) and Hessian of loss and penalties."""
        problem = self.problem
        z = problem.slack(weights)
        parts = [self._columns(task) for task in range(problem.n_tasks)]
        found = problem.curvature_grams(z, [rows for rows, _ in parts])
        grams = list(zip([positions for _, positions in parts], found, strict=True))
        return self._gradient(weights, z), self._bent(weights, grams)

    def _gradient(self, weights: TaskWeights, z: np.ndarray) -> np.ndarray:
        """Return the gradient where the slacks are known; λŵ of each group for q = 2."""
        problem = self.problem
        a = len(self.entries[0])
        whole = problem.gradient(z)
        gradient = np.concatenate([whole.W[self.entries], whole.shared[self.shared], whole.b])
        if isinstance(problem.norm, HalfSquares):
            gradient[:a] += problem.alpha * weights.W[self.entries]
        elif problem.per_task and problem.norm.q == 1:
            gradient[:a] += problem.alpha * np.sign(weights.W[self.entries])
        elif problem.per_task:
            gradient[:a] += problem.alpha * self._units(weights.W[self.entries])[0]
        if problem.sharing:
            signs = np.sign(weights.shared[self.shared])
            gradient[a : a + len(self.shared)] += problem.shared_alpha * signs
        return gradient

    def _columns(self, task: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the columns that move a task's scores, and all positions, the intercept's last."""
        rows_of_task = np.flatnonzero(self.entries[1] == task)
        first = len(self.entries[0])
        last = first + len(self.shared) + task
        positions = np.concatenate([rows_of_task, first + np.arange(len(self.shared)), [last]])
        return np.concatenate([self.entries[0][rows_of_task], self.shared]), positions

    @cached_property
    def _group(self) -> np.ndarray:
        """Number of the group that each free weight belongs to."""
        return np.searchsorted(self.problem.starts, self.entries[0], side="right") - 1

    @cached_property
    def _pairs(self) -> tuple[np.ndarray, ...]:
        """First and second of all pairs of free weights in one group."""
        return np.nonzero(self._group[:, None] == self._group)

    def _norms(self, values: np.ndarray) -> np.ndarray:
        """Return the length of its group for each free weight's value."""
        squares = np.bincount(self._group, values**2, self.problem.n)
        return np.sqrt(squares)[self._group]

    def _units(self, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the free weights as parts of unit vectors of their groups, and the lengths."""
        norms = np.maximum(self._norms(w), _TINY)
        return w / norms, norms

    def _bent(self, weights: TaskWeights, grams: Hessian) -> Hessian:
        """Return the Hessian: the tasks' Gram matrices and the penalties' curvature."""
        # Half the squares bend by λ, ℓ1/ℓ2 by λ (I − ŵŵᵀ) / ‖w‖ of each group.
        problem = self.problem
        if self.apart:
            if isinstance(problem.norm, HalfSquares):
                for _, gram in grams:
                    rows_of_task = np.arange(len(gram) - 1)
                    gram[rows_of_task, rows_of_task] += problem.alpha
            return grams
        H = np.zeros((self.n, self.n))
        for positions, gram in grams:
            H[np.ix_(positions, positions)] += gram
        if problem.per_task and problem.norm.q == 2:
            first, second = self._pairs
            unit, norms = self._units(weights.W[self.entries])
            bent = (first == second) - unit[first] * unit[second]
            H[first, second] += problem.alpha / norms[first] * bent
        return [(np.arange(self.n), H)]
