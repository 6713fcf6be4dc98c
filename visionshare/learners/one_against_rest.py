"""One against the rest: a greedy learner for each class alone, whose features add up."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from visionshare.class_labels import quoted
from visionshare.columns import Columns
from visionshare.errors import InputError
from visionshare.learners.base import Classifier
from visionshare.learners.examples import Examples
from visionshare.learners.parameters import check_run, check_whole_numbers
from visionshare.learners.path import Prefix, prefix_path
from visionshare.learners.registry import CLASSIFIERS, classifier_class
from visionshare.scores import two_sided
from visionshare.search import steps_of


@dataclass(eq=False, repr=False)
class OneAgainstRest(Classifier):
    """One classifier per class against the rest, with ShareBoost's search and refit.

    Every class chooses features of its own to be told from the rest; the classifier has all of
    them, so that their number grows with the classes.

    Parameters
    ----------
    rounds : int, default 10
        Features, or groups of features, a class.
    learner : estimator or str, optional
        Template for each class, a :class:`ShareBoost` when omitted: any other classifier of this
        library, or its name in :data:`visionshare.learners.registry.CLASSIFIERS`. Its own
        ``rounds`` do not count.
    n_jobs : int, optional
        Threads of each learner; the template's when omitted.
    random_state : int, optional
        Seed of each learner; the template's when omitted.

    Attributes
    ----------
    learners_ : list of estimator
        One for each class.
    classes_, support_, coef_, intercept_, path_, temperature_
        As in :class:`ShareBoost`; features are in the order in which a class first took them. For
        two classes ``coef_`` has one row.

    References
    ----------
    S. Shalev-Shwartz, Y. Wexler, A. Shashua, "ShareBoost: Efficient multiclass learning with
    feature sharing", NIPS 2011, §7.1.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> model = OneAgainstRest(rounds=3).fit(X[:900], y[:900])
    >>> 15 < len(model.support_) <= 30, bool(model.score(X[900:], y[900:]) > 0.75)
    (True, True)
    """

    rounds: int = 10
    learner: Classifier | str | None = None
    n_jobs: int | None = None
    random_state: int | None = None

    @property
    def takes_sparse(self) -> bool:  # type: ignore[override]
        """Whether the template takes sparse matrices."""
        given = "shareboost" if self.learner is None else self.learner
        if isinstance(given, str) and given in CLASSIFIERS and given != "one_against_rest":
            given = classifier_class(given)()
        return isinstance(given, Classifier) and given.takes_sparse

    def _settings(self) -> None:
        check_run(self, any_seed=True)
        check_whole_numbers(self, 1, "rounds")
        self._template().check_parameters()

    def _template(self) -> Classifier:
        """Return the learner of a class, unfitted."""
        given = "shareboost" if self.learner is None else self.learner
        if isinstance(given, OneAgainstRest) or given == "one_against_rest":
            raise InputError("learner", given, "another classifier than one against the rest")
        if isinstance(given, str):
            template: Any = classifier_class(given)()
        elif isinstance(given, Classifier):
            template = clone(given)
        else:
            names = ", ".join(map(repr, CLASSIFIERS))
            raise InputError("learner", type(given).__name__, f"a classifier, or one of {names}")
        if getattr(template, "checkpoint", None) is not None:
            accepted = "a template without a checkpoint: one folder cannot hold all classes' rounds"
            raise InputError("learner", f"checkpoint={str(template.checkpoint)!r}", accepted)
        if template.makes_columns:
            accepted = "a classifier that chooses among the columns that it is given"
            raise InputError("learner", type(template).__name__, accepted)
        known = template.get_params(deep=False)
        steps = steps_of(template._search()) if "search_options" in known else 0
        if steps:
            # Each class moves draws of its own: one number would stand for several features.
            raise InputError("steps", steps, "0, for a learner of one class")
        settings = {"n_jobs": self.n_jobs, "random_state": self.random_state}
        changed = {k: v for k, v in settings.items() if v is not None} | {"rounds": self.rounds}
        template.set_params(**{k: v for k, v in changed.items() if k in known})
        return template

    def fit(
        self, X: np.ndarray | Columns, y: np.ndarray, sample_weight: np.ndarray | None = None
    ) -> OneAgainstRest:
        self._settings()
        examples = self._examples(X, y, sample_weight)
        counted = np.bincount(examples.y, examples.omega, examples.n_classes) > 0
        if not counted.all():
            given = f"no weight of the class {quoted(self.classes_[[np.argmin(counted)]])}"
            raise InputError("sample_weight", given, "weights above 0 of every class")
        self.learners_: list[Any] = [
            self._template().fit(examples.columns, sign > 0, examples.omega)
            for sign in examples.signs.T
        ]
        self._join(examples)
        self.n_iter_ = max(model.n_iter_ for model in self.learners_)
        return self

    def _join(self, examples: Examples) -> None:
        """Bring all learners' weights to one support, and their paths to one path."""
        position: dict[int, int] = {}
        widths = []
        for t in range(max(len(model.path_) for model in self.learners_)):
            for model in self.learners_:
                for j in model.path_[t].feature if t < len(model.path_) else ():
                    position.setdefault(int(j), len(position))
            widths.append(len(position))
        self.support_ = np.array(list(position), np.int64)
        prefixes = list(self._prefixes(position, widths))
        self.path_ = prefix_path(examples.columns, self.support_, examples, prefixes)
        self.coef_, self.intercept_ = self._weights(len(widths) - 1, position, len(position))
        self.temperature_ = self._training_temperature(examples)

    def _prefixes(self, position: dict[int, int], widths: list[int]) -> Iterator[Prefix]:
        """Yield the joint model after each round that brought a feature; at the end the last."""
        last = len(widths) - 1
        for t, width in enumerate(widths):
            grows = width > (widths[t - 1] if t else 0)
            # The end replaces the last round that brought a feature.
            if t < last and (not grows or widths[-1] == width):
                continue
            coef, intercept = self._weights(t, position, width)
            steps = [
                model.path_[min(t, len(model.path_) - 1)] for model in self.learners_ if model.path_
            ]
            loss = float(np.mean([step.loss for step in steps]))
            score = float(np.mean([step.score for step in steps]))
            yield Prefix(t + 1, coef, intercept, loss, score, sum(s.seconds for s in steps))

    def _weights(
        self, t: int, position: dict[int, int], width: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return weights (T, width) and intercepts (T,) after round t of every class."""
        coef = np.zeros((len(self.learners_), width))
        intercept = np.zeros(len(self.learners_))
        for row, model in enumerate(self.learners_):
            weights = model.coef_
            b = model.intercept_
            if t < len(model.path_) - 1:
                weights = model.path_[t].weights
                b = model.path_[t].intercept
            weights = two_sided(weights.T).T
            b = two_sided(b[None])[0]
            positions = [position[int(j)] for j in model.support_[: weights.shape[1]]]
            # A learner of two classes has a score for each: their difference decides.
            coef[row, positions] = weights[1].astype(np.float64) - weights[0]
            intercept[row] = float(b[1]) - float(b[0])
        return coef, intercept
