"""Forward greedy selection: weights of a bounded ℓ1 norm, one feature a step."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from visionshare.classifier.path import PathStep
from visionshare.columns import ArrayColumns, Columns
from visionshare.errors import InputError
from visionshare.learners.calibration import fit_temperature
from visionshare.learners.frank_wolfe import Ball, BallRound, BallSettings, ball_rounds
from visionshare.learners.preparation import chosen_columns, search_of, weights_of
from visionshare.learners.scores import ScoreClassifier, joined, path_step
from visionshare.losses import Smoothed, make_task_loss
from visionshare.resources import resolve_jobs, thread_limit
from visionshare.scores import two_sided
from visionshare.search import Pool

if TYPE_CHECKING:
    pass

__all__ = ["ForwardGreedyClassifier", "ForwardGreedyRegressor"]


class _ForwardGreedy(BaseEstimator):
    """What the classifier and the regressor share: settings and the steps."""

    _losses: tuple[str, ...]

    def __init__(
        self,
        bound: float = 10.0,
        *,
        loss: str = "hinge",
        eps: float = 0.1,
        rounds: int = 500,
        max_features: int | None = None,
        tol: float = 1e-3,
        search: str = "exhaustive",
        search_options: dict[str, Any] | None = None,
        n_jobs: int = 1,
        random_state: int = 0,
    ) -> None:
        self.bound = bound
        self.loss = loss
        self.eps = eps
        self.rounds = rounds
        self.max_features = max_features
        self.tol = tol
        self.search = search
        self.search_options = search_options
        self.n_jobs = n_jobs
        self.random_state = random_state

    def check_parameters(self) -> None:
        """Check all parameters without data.

        Raises
        ------
        InputError
            If a parameter is out of range.
        """
        self._settings()

    def _settings(self) -> BallSettings:
        for name in ("rounds", "max_features"):
            value = getattr(self, name)
            if name == "max_features" and value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
                raise InputError(name, value, "a whole number of at least 1")
        for name, least in (("bound", 1e-300), ("eps", 1e-300), ("tol", 0.0)):
            value = getattr(self, name)
            if not isinstance(value, Real) or not least <= float(value) < np.inf:
                accepted = "a finite number of at least 0" if least == 0 else "a number above 0"
                raise InputError(name, value, accepted)
        if self.loss not in self._losses:
            raise InputError("loss", self.loss, " or ".join(map(repr, self._losses)))
        loss = Smoothed(make_task_loss(self.loss), float(self.eps))
        numbers = (int(self.rounds), self.max_features, float(self.bound))
        return BallSettings(*numbers, loss, float(self.tol), search_of(self))

    def _table(self, X: np.ndarray | Columns, y: np.ndarray, numeric: bool) -> Any:
        if isinstance(X, Columns):
            y = np.asarray(y)
            if y.shape != (X.shape[0],):
                raise InputError("y", y.shape, f"one target for each of {X.shape[0]} examples")
            if X.groups is not None:
                raise InputError("X", "columns in groups", "columns without groups")
            self.n_features_in_ = X.shape[1]
            return X, y
        table, y = validate_data(self, X, y, dtype=(np.float64, np.float32), y_numeric=numeric)
        return ArrayColumns(table, dtype=str(table.dtype)), y

    def _learn(
        self, columns: Columns, targets: Sequence[tuple[np.ndarray, np.ndarray]], omega: np.ndarray
    ) -> list[Ball]:
        settings = self._settings()
        share = omega / omega.sum()
        columns.n_jobs = resolve_jobs(self.n_jobs)
        balls, self.rounds_ = [], []
        with thread_limit(self.n_jobs):
            columns.check_rounds(settings.rounds)
            columns.fit_scaling("max_abs", omega)
            pool = Pool(columns)
            for s, c in targets:
                ball = Ball(columns.shape[0])
                self.rounds_.append(list(ball_rounds(pool, ball, s, c, share, settings)))
                balls.append(ball)
        ids = [np.array(ball.support, np.int64) for ball in balls]
        self.support_, scaled = joined(ids, [np.array(ball.weights) for ball in balls])
        self._scale = columns.scaling_of(self.support_)[1]
        self._coef = scaled * self._scale
        self._intercept = np.array([ball.intercept for ball in balls])
        self.n_iter_ = max(len(rounds) for rounds in self.rounds_)
        return balls

    def _scores(self, X: np.ndarray | Columns) -> np.ndarray:
        return chosen_columns(self, X) @ self._coef.T + self._intercept


class ForwardGreedyClassifier(ScoreClassifier, _ForwardGreedy):
    """Classifier whose weights have ‖w‖₁ ≤ B, reached by steps towards one feature each.

    Within O(λ²B²/ε²) features the risk is within ε of the best weights in the ball, whatever
    their number; see :func:`visionshare.apps.features_needed`. With more than two classes each is
    learned against the rest, in a ball of its own.

    Parameters
    ----------
    bound : float, default 10.0
        B, for columns scaled into [−1, 1].
    loss : {"hinge", "logistic"}, default "hinge"
    eps : float, default 0.1
        ε: the loss is smoothed, and at most ε/4 off.
    rounds : int, default 500
        Steps at most; a step may return to a feature.
    max_features : int, optional
        Stop before more features are used.
    tol : float, default 1e-3
        Stop when the duality gap is below this share of the loss.
    search : {"exhaustive", "random", "screened"}, default "exhaustive"
    search_options : dict, optional
    n_jobs : int, default 1
    random_state : int, default 0
    class_weight : dict, "balanced" or None, default None

    Attributes
    ----------
    classes_ : ndarray of shape (k,)
    support_ : ndarray of int
    coef_ : ndarray of shape (T, n_support), float64
        Weights of the features as they are (unscaled).
    intercept_ : ndarray of shape (T,), float64
    rounds_ : list of list of BallRound
        Of each task.
    path_ : tuple of PathStep
        For two classes every number of features, otherwise the end alone.
    temperature_ : float

    References
    ----------
    S. Shalev-Shwartz, N. Srebro, "Low ℓ1 norm and guarantees on sparsifiability", 2008.

    Examples
    --------
    >>> import numpy as np
    >>> from visionshare import ForwardGreedyClassifier
    >>> X = np.random.default_rng(0).uniform(-1, 1, (200, 50))
    >>> model = ForwardGreedyClassifier(bound=5.0, max_features=2).fit(X, X[:, 3] - X[:, 8] > 0)
    >>> sorted(model.support_.tolist())
    [3, 8]
    """

    _losses = ("hinge", "logistic")

    def __init__(
        self,
        bound: float = 10.0,
        *,
        loss: str = "hinge",
        eps: float = 0.1,
        rounds: int = 500,
        max_features: int | None = None,
        tol: float = 1e-3,
        search: str = "exhaustive",
        search_options: dict[str, Any] | None = None,
        n_jobs: int = 1,
        random_state: int = 0,
        class_weight: dict[Any, float] | str | None = None,
    ) -> None:
        super().__init__(
            bound,
            loss=loss,
            eps=eps,
            rounds=rounds,
            max_features=max_features,
            tol=tol,
            search=search,
            search_options=search_options,
            n_jobs=n_jobs,
            random_state=random_state,
        )
        self.class_weight = class_weight

    def fit(
        self, X: np.ndarray | Columns, y: np.ndarray, sample_weight: np.ndarray | None = None
    ) -> ForwardGreedyClassifier:
        """Choose features and fit their weights.

        Parameters
        ----------
        X : array-like of shape (m, d), or Columns
        y : array-like of shape (m,)
        sample_weight : array-like of shape (m,), optional

        Raises
        ------
        InputError
            If a parameter is out of range or the data has fewer than two classes.
        """
        self._settings()
        columns, y = self._table(X, y, numeric=False)
        check_classification_targets(y)
        self.classes_, index = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise InputError("y", "one class", "examples of two classes or more")
        omega = weights_of(sample_weight, y, self.class_weight)
        wanted = [1] if len(self.classes_) == 2 else range(len(self.classes_))
        ones = np.ones(len(y))
        balls = self._learn(
            columns, [(np.where(index == q, 1.0, -1.0), ones) for q in wanted], omega
        )
        self.coef_, self.intercept_ = self._coef, self._intercept
        scores = np.column_stack([ball.products + ball.intercept for ball in balls])
        self.temperature_ = fit_temperature(two_sided(scores), index, omega)
        self.path_ = self._path(columns, index, omega)
        return self

    def _path(self, columns: Columns, index: np.ndarray, omega: np.ndarray) -> tuple[PathStep, ...]:
        if len(self.support_) == 0:
            return ()
        held = columns.columns_of(self.support_, scaled=False).astype(np.float64)
        last: dict[int, BallRound] = {}
        if len(self.rounds_) == 1:
            last = {len(r.weights): r for r in self.rounds_[0]}
        else:
            last = {len(self.support_): self.rounds_[0][-1]}
        steps: list[PathStep] = []
        for n in sorted(last):
            alone = len(self.rounds_) == 1
            coef = (last[n].weights * self._scale[:n])[None] if alone else self.coef_
            intercept = np.array([last[n].intercept]) if alone else self.intercept_
            before = steps[-1].n_features if steps else 0
            done = [
                r
                for rounds in self.rounds_
                for r in rounds
                if not alone or r.number <= last[n].number
            ]
            figures = {
                "round": last[n].number,
                "feature": tuple(int(j) for j in self.support_[before:n]),
                "loss": last[n].loss,
                "seconds": sum(r.seconds for r in done),
                "macs": columns.macs(self.support_[:n]) or 0,
                "score": last[n].gap,
            }
            steps.append(path_step(held[:n], coef, intercept, index, omega, **figures))
        return tuple(steps)


class ForwardGreedyRegressor(RegressorMixin, _ForwardGreedy):
    """Regression by absolute errors with ‖w‖₁ ≤ B, reached by steps towards one feature each.

    Parameters
    ----------
    bound, loss, eps, rounds, max_features, tol, search, search_options, n_jobs, random_state
        See :class:`ForwardGreedyClassifier`; the loss is "absolute".

    Attributes
    ----------
    support_ : ndarray of int
    coef_ : ndarray of shape (n_support,), float64
    intercept_ : float
    rounds_ : list of list of BallRound

    Examples
    --------
    >>> import numpy as np
    >>> from visionshare import ForwardGreedyRegressor
    >>> X = np.random.default_rng(0).uniform(-1, 1, (200, 50))
    >>> model = ForwardGreedyRegressor(bound=3.0, max_features=2).fit(X, 2 * X[:, 3] - X[:, 8])
    >>> sorted(model.support_.tolist())
    [3, 8]
    """

    _losses = ("absolute",)

    def __init__(
        self,
        bound: float = 10.0,
        *,
        loss: str = "absolute",
        eps: float = 0.1,
        rounds: int = 500,
        max_features: int | None = None,
        tol: float = 1e-3,
        search: str = "exhaustive",
        search_options: dict[str, Any] | None = None,
        n_jobs: int = 1,
        random_state: int = 0,
    ) -> None:
        super().__init__(
            bound,
            loss=loss,
            eps=eps,
            rounds=rounds,
            max_features=max_features,
            tol=tol,
            search=search,
            search_options=search_options,
            n_jobs=n_jobs,
            random_state=random_state,
        )

    def fit(
        self, X: np.ndarray | Columns, y: np.ndarray, sample_weight: np.ndarray | None = None
    ) -> ForwardGreedyRegressor:
        """Choose features and fit their weights.

        Parameters
        ----------
        X : array-like of shape (m, d), or Columns
        y : array-like of shape (m,)
        sample_weight : array-like of shape (m,), optional

        Raises
        ------
        InputError
            If a parameter is out of range.
        """
        self._settings()
        columns, y = self._table(X, y, numeric=True)
        omega = weights_of(sample_weight, y)
        self._learn(columns, [(np.ones(len(y)), np.asarray(y, np.float64))], omega)
        self.coef_, self.intercept_ = self._coef[0], float(self._intercept[0])
        return self

    def predict(self, X: np.ndarray | Columns) -> np.ndarray:
        """Return the targets (m,)."""
        return self._scores(X)[:, 0]
