"""Ridge regression on all columns, whose strength is chosen by leaving examples out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from visionshare.columns import Columns
from visionshare.errors import InputError
from visionshare.generators.checks import check_choice, check_whole
from visionshare.learners.base import Classifier
from visionshare.learners.calibration import fit_temperature
from visionshare.learners.examples import Examples
from visionshare.learners.parameters import check_numbers, check_run, check_whole_numbers
from visionshare.learners.path import Prefix, prefix_path
from visionshare.machine.resources import thread_limit

# Of the sum of weights, for columns of mean square 1: strengths that are tried, the largest first,
# so that of equally good ones the strongest is taken.
_SHARES = tuple(10.0 ** (n / 4) for n in range(8, -21, -1))
# Directions of less variance are rounding.
_ROUNDING = 1e-9


@dataclass(eq=False, repr=False)
class DenseClassifier(Classifier):
    """Ridge regression on all columns, for features that cost together what one costs.

    Columns have variance 1, those of a block together its width to the power of 1/2: thousands of
    columns do not drown a dozen others. The strength is the one whose predictions of examples that
    are left out have the least squared error, which takes one eigendecomposition for all of them.
    Features of a pretrained network are such columns; where each column costs, choose few of them
    by :class:`ShareBoost`.

    Parameters
    ----------
    alpha : float or "auto", default "auto"
        Penalty of the squared weights, as a fraction of the sum of the examples' weights.
    blocks : sequence of int, optional
        Widths of runs of columns of one kind; all are one block when omitted.
    copies : int, default 0
        The examples are followed by so many deformed copies of all of them, which are left out
        together. A recipe with deformations says it by itself.
    class_weight, n_jobs
        As in :class:`ShareBoost`.
    random_state : int, default 0
        Not used: nothing is random.

    Attributes
    ----------
    alpha_ : float
        The chosen strength.
    classes_, support_, coef_, intercept_, path_, temperature_
        As in :class:`ShareBoost`: the support has all columns that are not constant, and the path
        is the end alone. For two classes ``coef_`` has one row.

    References
    ----------
    R. Rifkin, R. Lippert, "Notes on regularized least squares", MIT-CSAIL-TR-2007-025.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> bool(DenseClassifier().fit(X[:900], y[:900]).score(X[900:], y[900:]) > 0.85)
    True
    """

    alpha: float | str = "auto"
    _: KW_ONLY
    blocks: Sequence[int] | None = None
    copies: int = 0
    class_weight: dict[Any, float] | str | None = None
    n_jobs: int | None = 1
    random_state: int = 0
    # All columns are looked at.
    search = "exhaustive"
    search_options = None

    def _settings(self) -> tuple[float, ...]:
        """Return the strengths to be tried."""
        check_run(self)
        check_whole_numbers(self, 0, "copies")
        listed = self.blocks is None or isinstance(self.blocks, (list, tuple))
        if not listed:
            raise InputError("blocks", self.blocks, "a list of whole numbers, or None")
        for width in self.blocks or ():
            check_whole("blocks", width, 1)
        if isinstance(self.alpha, str):
            check_choice("alpha", self.alpha, ("auto",))
            return _SHARES
        check_numbers(self, "alpha", positive=True, least=1e-12)
        return (float(self.alpha),)

    def fit(
        self, X: np.ndarray | Columns, y: np.ndarray, sample_weight: np.ndarray | None = None
    ) -> DenseClassifier:
        shares = self._settings()
        examples = self._examples(X, y, sample_weight)
        columns = examples.columns
        if len(examples.y) % (self.copies + 1):
            given = f"{len(examples.y)} examples"
            raise InputError("X", given, f"examples, each with its {self.copies} copies")
        # Products of BLAS on several threads have other last bits.
        with self._threads(columns), thread_limit(1):
            # 1) columns of variance 1, blocks that count alike
            omega = examples.omega
            columns.fit_scaling("unit_variance", omega)
            factors = self._factors(columns)
            self.support_ = np.flatnonzero(factors)
            Z = columns.columns_of(self.support_).astype(np.float64) * factors[self.support_, None]
            total = omega.sum()
            mean = examples.signs.T @ omega / total
            # 2) the strength
            scores, coef, self.alpha_ = self._chosen(Z, examples, mean, shares)
            # 3) weights of the columns as they were given
            weights, self.intercept_ = columns.unscaled(
                coef * factors[self.support_], mean, self.support_
            )
            self.coef_ = weights
            self.temperature_ = fit_temperature(scores, examples.y, omega)
            loss = float(np.square(scores - examples.signs).mean(axis=1) @ omega / total)
            end = Prefix(1, self.coef_, self.intercept_, loss, 0.0, 0.0)
            self.path_ = prefix_path(columns, self.support_, examples, [end])
        self.n_iter_ = 1
        return self

    def _factors(self, columns: Columns) -> np.ndarray:
        """Return what each scaled column is multiplied with: mean squares become 1 together."""
        d = columns.shape[1]
        widths = np.array([d] if self.blocks is None else self.blocks)
        if widths.sum() != d:
            raise InputError("blocks", int(widths.sum()), f"widths of {d} columns together")
        factors = np.repeat(widths, widths) ** -0.25
        factors[columns.scale == 0] = 0.0
        norm = np.sqrt(np.square(factors).sum())
        return factors / norm if norm > 0 else factors

    def _chosen(
        self, Z: np.ndarray, examples: Examples, mean: np.ndarray, shares: tuple[float, ...]
    ) -> tuple[np.ndarray, np.ndarray, float]:
        """Return left-out scores (m, T), weights (T, d) of columns, and the strength."""
        omega = examples.omega
        total = omega.sum()
        roots = np.sqrt(omega)
        T = (examples.signs - mean) * roots[:, None]
        # 1) Z = U diag(√λ) Vᵀ for weighted examples, from the smaller of the two products.
        Z = Z * roots
        is_wide = Z.shape[0] > Z.shape[1]
        values, vectors = np.linalg.eigh(Z.T @ Z if is_wide else Z @ Z.T)
        kept = values > _ROUNDING * max(values.max(initial=0.0), _ROUNDING * total)
        values, vectors = values[kept], vectors[:, kept]
        U = vectors if is_wide else Z.T @ vectors / np.sqrt(values)
        A = U.T @ T
        # 2) A group of an example and its copies is left out: its residual is
        # (I − H)⁻¹ (t − Ht), of the group's block of H = U diag(λ / (λ + α)) Uᵀ and the mean.
        c = self.copies + 1
        n = len(T) // c
        grouped = U.reshape(c, n, -1).transpose(1, 0, 2)
        rooted = roots.reshape(c, n).T
        of_mean = rooted[:, :, None] * rooted[:, None] / total
        best, found = np.inf, (T, A, shares[0])
        for share in shares:
            shrunk = values / (values + share * total)
            residual = (T - U @ (shrunk[:, None] * A)).reshape(c, n, -1).transpose(1, 0, 2)
            H = (grouped * shrunk) @ grouped.transpose(0, 2, 1) + of_mean
            left_out = np.linalg.solve(np.eye(c) * (1 + _ROUNDING) - H, residual)
            error = float(np.square(left_out).sum())
            if error < best:
                best, found = error, (left_out.transpose(1, 0, 2).reshape(T.shape), shrunk, share)
        # 3) scores of the left-out, and the weights V diag(√λ / (λ + α)) Uᵀ T of all
        left_out, shrunk, share = found
        with np.errstate(divide="ignore", invalid="ignore"):
            unweighted = np.where(roots[:, None] > 0, left_out / roots[:, None], 0.0)
        coef = Z @ (U @ ((shrunk / values)[:, None] * A))
        return examples.signs - unweighted, coef.T, share
