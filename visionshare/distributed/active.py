"""An active set whose examples lie in partitions: sums and weights travel, columns do not."""

from __future__ import annotations

import operator
from collections.abc import Callable
from copy import copy
from typing import Any, TypeVar, cast

import numpy as np

from visionshare.columns import Columns
from visionshare.distributed.engine import Engine, PartitionedRows, staying, summed
from visionshare.distributed.host import THREADS
from visionshare.losses import Loss
from visionshare.solvers import ActiveSet

T = TypeVar("T")


class PartitionedActive(ActiveSet):
    """An active set in each partition, and their sums."""

    def __init__(
        self,
        engine: Engine,
        make: Callable[..., Any],
        y: np.ndarray,
        omega: np.ndarray,
        n_classes: int,
        dtype: np.dtype,
    ) -> None:
        self.m = len(y)
        self.k = n_classes
        self.n = 0
        self.dtype = np.dtype(dtype)
        self.y = y
        self.omega = omega
        self.executor = None
        self._engine = engine
        self._local = engine.rows(
            _local_set,
            engine.data,
            make,
            engine.split(y),
            engine.split(omega),
            n_classes,
            THREADS,
        )

    def total(self, function: Callable[..., T], *args: Any, how: str = "sum") -> T:
        return self._engine.total(function, self._local, *args, how=how)

    def each(self, function: Callable[..., Any], *args: Any) -> Any:
        return self._engine.rows(function, self._local, *args)

    def of_examples(self, values: Any) -> Any:
        return self._engine.of_examples(values)

    def append(self, new: Any) -> None:
        self._engine.change(self._local, ActiveSet.append, new)
        self.n += new.shape[0]

    def keep(self, positions: np.ndarray) -> None:
        self._engine.change(self._local, ActiveSet.keep, np.asarray(positions))
        self.n = len(positions)

    @property
    def labels(self) -> np.ndarray:
        return self.y

    @property
    def weights(self) -> np.ndarray:
        return self.omega

    def _beside(self, local: PartitionedRows) -> PartitionedActive:
        other = copy(self)
        other._local = local
        return other

    def reweighted(self, omega: Any) -> PartitionedActive:
        return self._beside(self.each(ActiveSet.reweighted, self.of_examples(omega)))

    def beside(self, new: Any) -> PartitionedActive:
        other = self._beside(self.each(ActiveSet.beside, new))
        other.n = new.shape[0]
        return other

    scores = staying(ActiveSet.scores)
    flat = staying(ActiveSet.flat)
    weighted_combination = staying(ActiveSet.weighted_combination)
    value = summed(ActiveSet.value)
    gradient = summed(ActiveSet.gradient)
    inner_products = summed(ActiveSet.inner_products)
    weighted_products = summed(ActiveSet.weighted_products)
    curvature_grams = summed(ActiveSet.curvature_grams)
    curvature_blocks = summed(ActiveSet.curvature_blocks)
    hessian = summed(ActiveSet.hessian)

    def value_and_gradient(
        self, loss: Loss, Z: Any, following: Any
    ) -> tuple[float, Callable[[], tuple[float, np.ndarray]]]:
        # One request for both: on a cluster a request takes longer than a gradient of few columns.
        value, *gradient = cast("Any", self.total(_value_and_gradient, loss, Z, following))
        return value, lambda: tuple(gradient)

    def residual(self, loss: Loss, Z: Any) -> tuple[float, Any]:
        both = self.each(ActiveSet.residual, loss, Z)
        R = self._engine.rows(operator.itemgetter(1), both, shape=(self.m, self.k))
        return self._engine.total(operator.itemgetter(0), both), R


def _local_set(
    columns: Columns, make: Callable[..., Any], y: np.ndarray, omega: np.ndarray, k: int, pool: Any
) -> Any:
    return columns.active_set(make, y, omega, k, pool)


def _value_and_gradient(
    active: ActiveSet, loss: Loss, Z: np.ndarray, following: np.ndarray
) -> tuple[float, float, np.ndarray]:
    return active.value(loss, Z), *active.gradient(loss, following)
