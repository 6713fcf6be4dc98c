"""GreedyTL: few features and source classifiers, chosen together for a new task."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from visionshare.columns import Columns
from visionshare.errors import InputError
from visionshare.generators.checks import check_choice
from visionshare.learners.base import Classifier
from visionshare.learners.calibration import fit_temperature
from visionshare.learners.examples import Examples
from visionshare.learners.parameters import (
    check_flags,
    check_numbers,
    check_run,
    check_whole_numbers,
)
from visionshare.learners.path import Prefix, joint_support, prefix_path, support_of
from visionshare.learners.ridge_choice import chosen_settings
from visionshare.learners.ridge_rounds import RidgeSettings, kept_rounds, ridge_rounds
from visionshare.search import Pool, Search


@dataclass(eq=False, repr=False)
class GreedyTL(Classifier):
    """Greedy transfer: ridge regression on few of many features and sources.

    Each round takes the column of Z = [X, h_1(x), …, h_n(x)] that lowers the error of ridge
    regression most; with more than two classes each is learned against the rest.

    Parameters
    ----------
    rounds : int or "auto", default 100
        Features and sources at most, a class. "auto" chooses their number for each class, as
        ``alpha="auto"`` does λ, and with it: far fewer columns than ``tol`` lets enter, at some
        loss of accuracy.
    sources : sequence, optional
        Predictors whose scores are columns too, after X's; see
        :class:`visionshare.generators.sources.SourceClassifiers`. Not with ``Columns``: their
        family may be a union that holds sources.
    alpha : float or "auto", default 1.0
        λ of λI + Σ zzᵀ, as algorithm 1 prints it. Equation (2) has the mean of the errors, which
        is m·λ here. "auto" chooses λ among multiples of m for each class, by examples that are
        left out of the selection too: nothing is to be tuned.
    tol : float, default 1e-4
        δ: stop when a round lowers the regularized error by less than this fraction.
    search : {"exhaustive", "random"} or Search, default "exhaustive"
        "random" looks at a fresh random subset each round, 59 when not said otherwise: among 59
        is one of the best 5 % in 95 of 100 rounds (GreedyTL-59).
    search_options : dict, optional
        Arguments of the search, such as ``{"n": 59}``.
    fit_intercept : bool, default True
        When not, a class is decided as in the paper: by a score above that of the mean example,
        whatever the proportions of the classes. For few examples that are not drawn in proportion.
    class_weight, n_jobs, random_state
        As in :class:`ShareBoost`.

    Attributes
    ----------
    scaled_coef_ : ndarray of shape (T, n_support), float64
        Weights of the columns at variance 1: comparable with each other.
    rounds_ : list of list of Round
        Of each task: one for two classes, otherwise one a class.
    alphas_ : ndarray of shape (T,), float64
        λ of each task.
    chosen_sources_ : list of tuple (class, source, output, weight)
        With weights of ``scaled_coef_``.
    classes_, support_, coef_, intercept_, path_, temperature_
        As in :class:`ShareBoost`, with columns of Z and a row of weights for each task. For two
        classes the path has every round, otherwise the end alone.

    References
    ----------
    I. Kuzborskij, F. Orabona, B. Caputo, "Scalable greedy algorithms for transfer learning",
    Computer Vision and Image Understanding 156, 2017.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(12, 200))
    >>> y = X[:, 7] + X[:, 8] > 0
    >>> model = GreedyTL(sources=[lambda X: X[:, 7] + X[:, 8]], rounds=1).fit(X, y)
    >>> model.support_.tolist(), model.chosen_sources_[0][:3]
    ([200], (True, 0, 0))
    """

    takes_partitions = True

    rounds: int | str = 100
    _: KW_ONLY
    sources: Sequence[Any] | None = None
    alpha: float | str = 1.0
    tol: float = 1e-4
    search: str | Search = "exhaustive"
    search_options: dict[str, Any] | None = None
    class_weight: dict[Any, float] | str | None = None
    fit_intercept: bool = True
    n_jobs: int | None = 1
    random_state: int = 0

    def _settings(self) -> RidgeSettings:
        if isinstance(self.rounds, str):
            check_choice("rounds", self.rounds, ("auto",))
        else:
            check_whole_numbers(self, 1, "rounds")
        if isinstance(self.alpha, str):
            check_choice("alpha", self.alpha, ("auto",))
        else:
            check_numbers(self, "alpha", positive=True, least=1e-12)
        check_run(self)
        check_numbers(self, "tol")
        check_flags(self, "fit_intercept")
        if isinstance(self.search, str):
            check_choice("search", self.search, ("exhaustive", "random"))
        search = self._search()
        rounds = None if isinstance(self.rounds, str) else int(self.rounds)
        alpha = None if isinstance(self.alpha, str) else float(self.alpha)
        return RidgeSettings(rounds, alpha, float(self.tol), search)

    def fit(
        self, X: np.ndarray | Columns, y: np.ndarray, sample_weight: np.ndarray | None = None
    ) -> GreedyTL:
        settings = self._settings()
        self._scorers: Any = None
        examples = self._examples(X, y, sample_weight)
        signs = np.ascontiguousarray(examples.signs.T)
        columns = examples.columns
        with self._threads(columns):
            self._check_costs(settings.search, columns)
            omega = examples.omega
            mean = self.fit_intercept
            chosen = [chosen_settings(columns, s, omega, settings, mean) for s in signs]
            self.alphas_ = np.array([one.alpha for one in chosen])
            columns.fit_scaling("unit_variance", omega)
            pool = Pool(columns)
            self.rounds_ = [
                kept_rounds(columns, ridge_rounds(pool, s, omega, one))
                for s, one in zip(signs, chosen, strict=True)
            ]
            self._gather(pool, signs, examples)
        self.n_iter_ = max(len(rounds) for rounds in self.rounds_)
        return self

    def _given_columns(self, columns: Columns) -> Columns:
        if self.sources:
            raise InputError("sources", len(self.sources), "None, for columns of a family")
        return columns

    @property
    def makes_columns(self) -> bool:  # type: ignore[override]
        """Whether sources have columns too."""
        return bool(self.sources)

    def _table_columns(self, table: np.ndarray) -> Columns:
        if self.sources:
            from visionshare.generators.sources import SourceClassifiers

            self._scorers = SourceClassifiers(self.sources).fit(table)
        return super()._table_columns(self._with_scores(table))

    def _table_features(self, table: np.ndarray) -> np.ndarray:
        return super()._table_features(self._with_scores(table))

    def _with_scores(self, table: np.ndarray) -> np.ndarray:
        """Return [X, h_1(x), …, h_n(x)]."""
        if self._scorers is None:
            return table
        return np.hstack([table, self._scorers.transform(table)])

    def _gather(self, pool: Pool, signs: np.ndarray, examples: Examples) -> None:
        """Bring all tasks' weights to one support; calibrate."""
        columns = pool.columns
        omega = examples.omega
        ends = [rounds[-1:] for rounds in self.rounds_]
        ids = [support_of(pool, end[0].candidates if end else ()) for end in ends]
        weights = [end[0].coef[0] if end else np.empty(0) for end in ends]
        self.support_, self.scaled_coef_ = joint_support(ids, weights)
        offset, scale = columns.scaling_of(self.support_)
        means = np.array([np.dot(omega, s) / omega.sum() for s in signs])
        if not self.fit_intercept:
            means[:] = 0
        held_out = columns.each(
            _held_out, means, columns.of_examples(omega), *(e[0].left_out if e else 0 for e in ends)
        )
        self.coef_ = self.scaled_coef_ * scale
        self.intercept_ = means - self.coef_ @ offset
        self.temperature_ = fit_temperature(held_out, examples.y, omega, columns)
        if columns.partitioned:
            # What is left of the rounds must not hold what lies elsewhere.
            empty = np.empty(0)
            self.rounds_ = [[replace(r, left_out=empty) for r in rs] for rs in self.rounds_]
        self.path_ = prefix_path(columns, self.support_, examples, self._prefixes(columns))

    def _prefixes(self, columns: Columns) -> Iterator[Prefix]:
        """Yield the model after each round; with several tasks the end alone."""
        seconds = 0.0
        if len(self.rounds_) > 1:
            errors = [rounds[-1].loss if rounds else 1.0 for rounds in self.rounds_]
            seconds = sum(r.seconds for rounds in self.rounds_ for r in rounds)
            yield Prefix(1, self.coef_, self.intercept_, float(np.mean(errors)), 0.0, seconds)
            return
        offset, scale = columns.scaling_of(self.support_)
        mean = float(self.intercept_[0] + self.coef_[0] @ offset)
        rounds = self.rounds_[0]
        widths = [r.coef.shape[1] for r in rounds]
        # All rounds in one product: there are many of a few columns.
        coef = np.zeros((len(rounds), len(scale)))
        for row, r, n in zip(coef, rounds, widths, strict=True):
            row[:n] = r.coef[0]
        coef *= scale
        intercept = (mean - coef @ offset)[:, None]
        for i, (r, n) in enumerate(zip(rounds, widths, strict=True)):
            seconds += r.seconds
            yield Prefix(r.number, coef[i : i + 1, :n], intercept[i], r.loss, r.score, seconds)

    @property
    def chosen_sources_(self) -> list[tuple[Any, int, int, float]]:
        """Class, source, output and weight of each chosen source, the largest weights first."""
        check_is_fitted(self)
        if self._scorers is None:
            return []
        names = self.classes_.tolist()[1 if len(self.rounds_) == 1 else 0 :]
        chosen = []
        for i, j in enumerate(self.support_):
            if j < self.n_features_in_:
                continue
            source, output = self._scorers.layout_[j - self.n_features_in_]
            for name, weight in zip(names, self.scaled_coef_[:, i], strict=True):
                if weight:
                    chosen.append((name, int(source), int(output), float(weight)))
        return sorted(chosen, key=lambda entry: -abs(entry[3]))


def _held_out(means: np.ndarray, omega: np.ndarray, *left_out: Any) -> np.ndarray:
    """Return scores (m, T) of examples from fits without them."""
    tasks = zip(means, left_out, strict=True)
    return np.column_stack([np.full(len(omega), mean) + values for mean, values in tasks])
