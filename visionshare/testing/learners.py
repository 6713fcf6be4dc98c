"""What every learner must do."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal

from visionshare.columns import ArrayColumns


def check_learner(learner: Any) -> None:
    """Put a learner through scikit-learn's estimator checks and through ours.

    Parameters
    ----------
    learner : estimator
        A classifier with ``path_``, ``support_`` and ``to_classifier``.
    """
    from sklearn.utils.estimator_checks import check_estimator

    check_estimator(learner)
    check_learner_on_columns(learner)


def check_learner_on_columns(learner: Any) -> None:
    """Put a learner through our checks alone."""
    from sklearn.base import clone

    from visionshare.generators.pixels import Pixels

    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 150)
    X = rng.normal(size=(150, 20)).astype(np.float32)
    X[np.arange(150), y] += 2
    names = np.array(["a", "b", "c"])[y]
    plain = clone(learner).fit(X, names)
    columns = clone(learner).fit(ArrayColumns(X), names)
    assert_array_equal(columns.support_, plain.support_, "columns choose other features")
    assert_array_equal(columns.coef_, plain.coef_, "columns give other weights than an array")
    again = clone(learner).fit(X, names)
    assert_array_equal(again.coef_, plain.coef_, "the same seed gives other weights")
    if "n_jobs" in learner.get_params():
        two = clone(learner).set_params(n_jobs=2).fit(X, names)
        assert_array_equal(two.coef_, plain.coef_, "threads change the bits")
    _check_path(plain)
    family = Pixels().fit(X)
    compact = plain.to_classifier(family)
    assert_array_equal(compact.predict(X), plain.predict(X), "the compact classifier differs")
    assert_allclose(compact.predict_proba(X), plain.predict_proba(X), atol=1e-4)


def _check_path(fitted: Any) -> None:
    widths = [step.n_features for step in fitted.path_]
    assert widths == sorted(set(widths)), "the path's prefixes do not grow"
    assert widths[-1] == len(fitted.support_), "the path ends elsewhere than the support"
    chosen = [j for step in fitted.path_ for j in step.feature]
    assert chosen == fitted.support_.tolist(), "the path chooses other features"
    assert len(set(chosen)) == len(chosen), "a feature is chosen twice"
    assert_allclose(fitted.path_[-1].weights, fitted.coef_, rtol=1e-5, atol=1e-6)
    seconds = [step.seconds for step in fitted.path_]
    assert seconds == sorted(seconds), "seconds run backwards"
