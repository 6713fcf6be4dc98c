"""Training ShareBoost against ℓ1 multinomial regression with as many features.

Products of pairs of the inputs of StatLog (LandSat) and Pendigits, 5 % of the columns. Needs the
data folder: the environment variable VISIONSHARE_DATA, or ../shared/data beside the checkout.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier

from benchmarks.data import data_folder
from benchmarks.measuring import Noted, Paired
from visionshare import Products, ShareBoost
from visionshare.columns import ArrayColumns
from visionshare.machine.resources import thread_limit

FRACTION = 0.05
# Makes a model of a cost.
Make = Callable[[float], Any]


@dataclass
class Split:
    """All columns of the official training and test part, of mean 0 and variance 1."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray

    @property
    def budget(self) -> int:
        return round(FRACTION * self.X.shape[1])


@pytest.fixture(scope="module", params=["landsat", "pendigits"])
def split(request: pytest.FixtureRequest) -> Split:
    from scripts.reproduce.uci import load, standardized

    X, y, train = load(data_folder("uci"), request.param)
    assert train is not None, "an official split"
    family = Products().fit(X[train])
    Z = standardized(family.transform(X), train).astype(np.float32)
    return Split(Z[train], y[train], Z[~train], y[~train])


def _saga(cost: float) -> Any:
    # Hundred passes are not enough for it; they are what is timed.
    return LogisticRegression(C=cost, l1_ratio=1.0, solver="saga", tol=1e-3, max_iter=100)


def _liblinear(cost: float) -> Any:
    # This solver knows two classes: a class at a time, whose columns add up.
    plain = LogisticRegression(C=cost, l1_ratio=1.0, solver="liblinear", tol=1e-3)
    return OneVsRestClassifier(plain)


def _skglm(cost: float) -> Any:
    skglm = pytest.importorskip("skglm", reason="skglm is not installed")
    # Its losses are of two classes; C is 1 / (m λ).
    return OneVsRestClassifier(skglm.SparseLogisticRegression(alpha=cost, tol=1e-3))


def _used(model: Any) -> int:
    """Return how many columns have weights."""
    coefs = [model.coef_] if hasattr(model, "coef_") else [m.coef_ for m in model.estimators_]
    return int(np.vstack(coefs).any(axis=0).sum())


def _ours(split: Split, columns: ArrayColumns) -> ShareBoost:
    # Refits need no more digits than the next selection sees.
    return ShareBoost(split.budget, refit_tol=1e-3).fit(columns, split.y)


def _error(split: Split, model: Any) -> float:
    Z = split.X_test[:, model.support_] @ model.coef_.T + model.intercept_
    return float(np.mean(np.argmax(Z, axis=1) != split.y_test))


def _as_many_columns(
    make: Make, split: Split, costs: np.ndarray, _: float
) -> tuple[float, float] | None:
    """Return the last cost, from sparse to dense, of no more columns than the budget."""
    best = None
    for cost in costs:
        model = make(cost).fit(split.X, split.y)
        if _used(model) > split.budget:
            break
        best = cost, 1 - model.score(split.X_test, split.y_test)
    return best


def _as_low_errors(
    make: Make, split: Split, costs: np.ndarray, most: float
) -> tuple[float, float] | None:
    """Return the first cost, from sparse to dense, whose error is no higher than ours."""
    for cost in costs:
        error = 1 - make(cost).fit(split.X, split.y).score(split.X_test, split.y_test)
        if error <= most:
            return cost, error
    return None


# Chooses a cost: of a model, a split, costs, and the error of ours.
Choice = Callable[[Make, Split, np.ndarray, float], tuple[float, float] | None]
GROWING, FALLING = np.geomspace(2e-4, 1.0, 12), np.geomspace(0.3, 1e-4, 12)


@pytest.mark.filterwarnings("ignore::numba.core.errors.NumbaPerformanceWarning")
@pytest.mark.parametrize("chosen", [_as_many_columns, _as_low_errors], ids=["columns", "error"])
@pytest.mark.parametrize(
    ("make", "costs"),
    [(_saga, GROWING), (_liblinear, GROWING), (_skglm, FALLING)],
    ids=["saga", "liblinear", "skglm"],
)
def test_against_l1(
    benchmark: Any,
    paired: Paired,
    noted: Noted,
    split: Split,
    make: Make,
    costs: np.ndarray,
    chosen: Choice,
) -> None:
    """Ours with 5 % of the columns; theirs with as many, or with errors as low on the test part.

    What finding their cost takes is not counted.
    """
    columns = ArrayColumns(split.X)
    with warnings.catch_warnings(), thread_limit(1):
        warnings.simplefilter("ignore", ConvergenceWarning)
        error_of_ours = _error(split, _ours(split, columns))
        choice = chosen(make, split, costs, error_of_ours)
        if choice is None:
            benchmark.pedantic(lambda: _ours(split, columns), rounds=2)
            noted(f"{error_of_ours:.3f}, theirs never as low")
            return
        cost, error = choice
        noted(f"{error_of_ours:.3f}, theirs {error:.3f}")
        assert error_of_ours <= error or chosen is _as_low_errors
        paired(lambda: _ours(split, columns), lambda: make(cost).fit(split.X, split.y), rounds=2)
