"""Estimators that take arrays of Dask: their rows stay on the workers of a cluster."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, fields
from typing import Any

import numpy as np

from visionshare.columns import Columns
from visionshare.distributed import DistributedColumns
from visionshare.distributed.sources import current_client
from visionshare.learners.shareboost import ShareBoost

__all__ = ["DaskShareBoost"]


@dataclass(eq=False, repr=False)
class DaskShareBoost(ShareBoost):
    """:class:`ShareBoost` on a Dask cluster.

    The chunks of X, divided along rows, are the partitions: with the same chunks any number of
    workers finds the same classifier, bit for bit.

    Parameters
    ----------
    rounds, n_backward, criterion, criterion_options, search, search_options, margin, penalty, \
alpha, beta, scaling, tol, refit_tol, max_iter, validation_fraction, patience, class_weight, \
warm_start, checkpoint, n_jobs, random_state, progress
        See :class:`ShareBoost`; the search is exhaustive or random, and workers have their own
        number of threads.
    client : distributed.Client, optional
        The current one when omitted. It is not pickled.

    Attributes
    ----------
    client_ : distributed.Client
        The one in use.
    classes_, support_, coef_, intercept_, path_, temperature_
        See :class:`ShareBoost`.

    Examples
    --------
    >>> model = DaskShareBoost(rounds=20, client=client)  # doctest: +SKIP
    >>> model.fit(X, y).predict(X)  # doctest: +SKIP
    dask.array<predict, shape=(1797,), dtype=int64, chunksize=(500,), chunktype=numpy.ndarray>
    """

    _: KW_ONLY
    client: Any = None

    @property
    def client_(self) -> Any:
        """The client in use: the given one, or the current one."""
        return current_client(self.client)

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        validation: np.ndarray | None = None,
    ) -> DaskShareBoost:
        """Choose features and fit their weights.

        Parameters
        ----------
        X : dask array of shape (m, d), sequence of delayed arrays, or DistributedColumns
        y : dask array or array-like of shape (m,)
            Classes; gathered, as are the weights: a few bytes an example.
        sample_weight : dask array or array-like of shape (m,), optional
        validation : ndarray of bool, shape (m,), optional

        Raises
        ------
        InputError
            As :class:`ShareBoost`, or if there is no client.
        ClusterError
            If the cluster has no worker in time.
        """
        labels, weights = _gathered(y), _gathered(sample_weight)
        if isinstance(X, Columns):
            super().fit(X, labels, weights, validation=validation)
            return self
        with DistributedColumns.from_array(X, self.client_) as columns:
            super().fit(columns, labels, weights, validation=validation)
        return self

    def predict(self, X: Any) -> Any:
        """Return the class of each example; of a dask array as one, computed when it is needed."""
        if not hasattr(X, "map_blocks"):
            return super().predict(X)
        return _by_chunks(X).map_blocks(
            self.to_local().predict, dtype=self.classes_.dtype, drop_axis=1
        )

    def predict_proba(self, X: Any) -> Any:
        """Return probabilities (m, k); of a dask array as one, computed when they are needed."""
        if not hasattr(X, "map_blocks"):
            return super().predict_proba(X)
        rows = _by_chunks(X)
        chunks = (rows.chunks[0], (len(self.classes_),))
        return rows.map_blocks(self.to_local().predict_proba, dtype=np.float64, chunks=chunks)

    def to_local(self) -> ShareBoost:
        """Return the same estimator, fitted as this is, without a cluster."""
        names = [one.name for one in fields(ShareBoost)]
        local = ShareBoost(**{name: getattr(self, name) for name in names})
        local.__dict__.update({k: v for k, v in vars(self).items() if k != "client"})
        return local

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        return {**state, "client": None}

    def __sklearn_clone__(self) -> DaskShareBoost:
        # A client is not to be copied.
        return type(self)(**self.get_params(deep=False))


def _gathered(values: Any) -> Any:
    return values.compute() if hasattr(values, "compute") else values


def _by_chunks(X: Any) -> Any:
    """Return an array of Dask whose chunks have whole rows."""
    return X.rechunk({1: -1})
