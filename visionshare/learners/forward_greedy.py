"""Forward greedy selection: weights of a bounded ℓ1 norm, one feature a step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np

from visionshare.columns import Columns
from visionshare.errors import InputError
from visionshare.generators.checks import check_choice
from visionshare.learners.base import Classifier, Learner, Regressor
from visionshare.learners.calibration import fit_temperature
from visionshare.learners.frank_wolfe import Ball, BallSettings, ball_rounds, scores_of
from visionshare.learners.labels import has_columns
from visionshare.learners.parameters import check_numbers, check_run, check_whole_numbers
from visionshare.learners.path import Prefix, joint_support, prefix_path, widest
from visionshare.losses import Smoothed, TaskLoss, make_task_loss
from visionshare.search import Pool, Search


@dataclass(eq=False, repr=False)
class _ForwardGreedy(Learner):
    """What the classifier and the regressor share: settings and the steps."""

    takes_sparse = True
    takes_partitions = True
    _losses: ClassVar[tuple[str, ...]]

    bound: float = 10.0
    _: KW_ONLY
    loss: str | TaskLoss = "hinge"
    eps: float = 0.1
    rounds: int = 500
    max_features: int | None = None
    tol: float = 1e-3
    search: str | Search = "exhaustive"
    search_options: dict[str, Any] | None = None
    n_jobs: int | None = 1
    random_state: int = 0

    def _settings(self) -> BallSettings:
        check_run(self)
        check_whole_numbers(self, 1, "rounds")
        check_whole_numbers(self, 1, "max_features", optional=True)
        check_numbers(self, "bound", "eps", positive=True)
        check_numbers(self, "tol")
        if isinstance(self.loss, str):
            check_choice("loss", self.loss, self._losses)
        return BallSettings(
            rounds=int(self.rounds),
            max_features=self.max_features,
            bound=float(self.bound),
            loss=Smoothed(make_task_loss(self.loss), float(self.eps)),
            tol=float(self.tol),
            search=self._search(),
        )

    def _given_columns(self, columns: Columns) -> Columns:
        if columns.groups is not None:
            raise InputError("X", "columns in groups", "columns without groups")
        return columns

    def _learn(
        self, columns: Columns, targets: Sequence[tuple[np.ndarray, np.ndarray]], omega: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, Any]:
        """Run the steps of every target; return weights, intercepts and scores (m, T)."""
        # Weights of the examples are (m,), or (m, T) where they differ between targets.
        settings = self._settings()
        weights = omega[:, None] if omega.ndim == 1 else omega
        fractions = np.broadcast_to((weights / weights.sum(axis=0)).T, (len(targets), len(omega)))
        balls = []
        self.rounds_ = []
        with self._threads(columns):
            columns.check_rounds(settings.rounds)
            self._check_costs(settings.search, columns)
            columns.fit_scaling("max_abs", weights.max(axis=1))
            pool = Pool(columns)
            for (s, c), fraction in zip(targets, fractions, strict=True):
                ball = Ball(columns, settings.loss, s, c, fraction)
                self.rounds_.append(list(ball_rounds(pool, ball, settings)))
                balls.append(ball)
        ids = [np.array(ball.support, np.int64) for ball in balls]
        self.support_, scaled = joint_support(ids, [np.array(ball.weights) for ball in balls])
        self.n_iter_ = max(len(rounds) for rounds in self.rounds_)
        coef = scaled * columns.scaling_of(self.support_)[1]
        intercept = np.array([ball.intercept for ball in balls])
        scores = columns.each(scores_of, intercept, *(ball.targets for ball in balls))
        return coef, intercept, scores


@dataclass(eq=False, repr=False)
class ForwardGreedyClassifier(Classifier, _ForwardGreedy):
    """Classifier whose weights have ‖w‖₁ ≤ B, reached by steps towards one feature each.

    Within O(λ²B²/ε²) features the risk is within ε of the best weights in the ball, whatever
    their number; see :func:`visionshare.learners.features_needed`. With more than two classes
    each is learned against the rest, in a ball of its own.

    Parameters
    ----------
    bound : float, default 10.0
        B, for columns scaled into [−1, 1].
    loss : {"hinge", "logistic"} or TaskLoss, default "hinge"
        With a Lipschitz constant, where it is an object.
    eps : float, default 0.1
        ε: the loss is smoothed, and at most ε/4 off.
    rounds : int, default 500
        Steps at most; a step may return to a feature.
    max_features : int, optional
        Stop before more features are used.
    tol : float, default 1e-3
        Stop when the duality gap is below this fraction of the loss.
    search : {"exhaustive", "random", "screened"} or Search, default "exhaustive"
    search_options, n_jobs, random_state, class_weight
        As in :class:`ShareBoost`.

    Attributes
    ----------
    rounds_ : list of list of Round
        Of each task.
    classes_, support_, coef_, intercept_, path_, temperature_
        As in :class:`ShareBoost`. For two classes ``coef_`` has one row, and the path every number
        of features; otherwise the path is the end alone.

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
    takes_labels = True

    _: KW_ONLY
    class_weight: dict[Any, float] | str | None = None

    def fit(
        self, X: np.ndarray | Columns, y: np.ndarray, sample_weight: np.ndarray | None = None
    ) -> ForwardGreedyClassifier:
        self._settings()
        if has_columns(y):
            columns, label_signs, omega = self._label_examples(X, y, sample_weight)
            signs = np.ascontiguousarray(label_signs.T)
            labels = [(s, np.ones(len(s))) for s in signs]
            self.coef_, self.intercept_, _ = self._learn(columns, labels, omega)
            return self
        examples = self._examples(X, y, sample_weight)
        ones = np.ones(len(examples.y))
        targets = [(s, ones) for s in np.ascontiguousarray(examples.signs.T)]
        columns = examples.columns
        self.coef_, self.intercept_, scores = self._learn(columns, targets, examples.omega)
        self.temperature_ = fit_temperature(scores, examples.y, examples.omega, columns)
        prefixes = list(self._prefixes(columns))
        self.path_ = prefix_path(columns, self.support_, examples, widest(prefixes))
        return self

    def _prefixes(self, columns: Columns) -> Iterator[Prefix]:
        """Yield the model after each round; with several tasks the end alone."""
        if len(self.support_) and len(self.rounds_) > 1:
            seconds = sum(r.seconds for rounds in self.rounds_ for r in rounds)
            ends = [rounds[-1] for rounds in self.rounds_ if rounds]
            loss, gap = np.mean([(end.loss, end.gap) for end in ends], axis=0).tolist()
            yield Prefix(self.n_iter_, self.coef_, self.intercept_, loss, gap, seconds)
            return
        scale = columns.scaling_of(self.support_)[1]
        seconds = 0.0
        for r in self.rounds_[0]:
            seconds += r.seconds
            coef = r.coef * scale[: r.coef.shape[1]]
            yield Prefix(r.number, coef, r.intercept, r.loss, r.gap, seconds)


@dataclass(eq=False, repr=False)
class ForwardGreedyRegressor(Regressor, _ForwardGreedy):
    """Regression by absolute errors with ‖w‖₁ ≤ B, reached by steps towards one feature each.

    Parameters
    ----------
    bound, loss, eps, rounds, max_features, tol, search, search_options, n_jobs, random_state
        See :class:`ForwardGreedyClassifier`; the loss is "absolute".

    Attributes
    ----------
    support_, coef_, intercept_, rounds_
        As in :class:`ForwardGreedyClassifier`; of one target without a row for each.

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

    _: KW_ONLY
    loss: str | TaskLoss = "absolute"

    def fit(
        self, X: np.ndarray | Columns, y: np.ndarray, sample_weight: np.ndarray | None = None
    ) -> ForwardGreedyRegressor:
        self._settings()
        columns, numbers, omega = self._number_examples(X, y, sample_weight)
        targets = [(np.ones(len(numbers)), number) for number in np.ascontiguousarray(numbers.T)]
        coef, intercept, _ = self._learn(columns, targets, omega)
        self._take_weights(coef, intercept)
        return self
