"""Checks that every kind of columns must pass."""

from __future__ import annotations

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal

from visionshare.columns import Columns
from visionshare.errors import InputError


def check_columns(columns: Columns, X: np.ndarray) -> None:
    """Check columns against the matrix that they represent.

    Parameters
    ----------
    columns : Columns
    X : ndarray of shape (m, d)
        The values, unscaled, in the precision of the columns.

    Examples
    --------
    >>> import numpy as np
    >>> from visionshare.columns import ArrayColumns
    >>> X = np.random.default_rng(0).normal(size=(40, 5)).astype(np.float32)
    >>> check_columns(ArrayColumns(X), X)
    """
    m, d = X.shape
    assert columns.shape == (m, d), f"shape is {columns.shape}, not {(m, d)}"
    rng = np.random.default_rng(0)
    ids = rng.permutation(d)[: max(1, d // 2)]
    _check_taking(columns, X, ids)
    R = rng.normal(size=(m, 3)).astype(columns.compute_dtype)
    omega = np.where(rng.random(m) < 0.8, rng.random(m), 0.0)
    for kind in ("none", "unit_variance", "max_abs"):
        columns.fit_scaling(kind, omega)
        _check_scaling(columns, X, kind, omega)
        _check_products(columns, R, ids)
    for bad in ([d], [-1], [0.5], [[0]]):
        for function in (columns.take, columns.columns_of):
            try:
                function(np.array(bad))
            except InputError:
                continue
            raise AssertionError(f"{function.__name__} accepts ids {bad}")
    columns.fit_scaling("none")


def _check_taking(columns: Columns, X: np.ndarray, ids: np.ndarray) -> None:
    unscaled = X.astype(columns.compute_dtype)
    assert_array_equal(columns.take(scaled=False), unscaled, "take returns other values")
    assert_array_equal(
        columns.take(ids, scaled=False), unscaled[:, ids], "take returns columns in another order"
    )
    assert_array_equal(columns.columns_of(ids, scaled=False), unscaled[:, ids].T)
    assert columns.take(ids).dtype == columns.compute_dtype, "take returns another dtype"
    assert columns.take(np.empty(0, np.int64)).shape == (len(X), 0), "no ids give columns"


def _check_scaling(columns: Columns, X: np.ndarray, kind: str, omega: np.ndarray) -> None:
    weights = omega / omega.sum()
    scaled = (X.astype(np.float64) - columns.offset) * columns.scale
    single = columns.compute_dtype == np.float32
    rtol, atol = (2e-4, 2e-5) if single else (1e-10, 1e-10)
    assert_allclose(columns.take(), scaled, rtol, atol, err_msg=f"scaling {kind} is not applied")
    mean = weights @ scaled
    variance = weights @ (scaled - mean) ** 2
    assert_allclose(columns.variance, variance, 5 * rtol, 5 * atol, err_msg="variance differs")
    varies = columns.scale != 0
    if kind == "unit_variance":
        assert_allclose(mean[varies], 0, atol=1e-3, err_msg="scaled columns have a mean")
        assert_allclose(variance[varies], 1, rtol=1e-3)
    if kind == "max_abs":
        peaks = np.abs(scaled[omega > 0]).max(axis=0)
        assert_allclose(peaks[varies], 1, rtol=1e-3, err_msg="scaled columns exceed 1")


def _check_products(columns: Columns, R: np.ndarray, ids: np.ndarray) -> None:
    m = columns.shape[0]
    scaled = columns.take().astype(np.float64)
    size = np.abs(scaled).sum(axis=0).max() * np.abs(R).max() + 1e-9
    single = columns.compute_dtype == np.float32
    atol = size * (3e-5 if single else 1e-12)
    product = columns.correlate(R)
    assert product.dtype == np.float64, f"correlate returns {product.dtype}"
    assert_allclose(product, scaled.T @ R, atol=atol, rtol=0, err_msg="correlate is not XᵀR")
    assert_allclose(columns.correlate(R, ids), product[ids], atol=atol, rtol=0)
    rows = np.array([0, m - 1, m // 2])
    sample = columns.sample(rows)
    if sample is not None:
        assert_array_equal(sample.take(), columns.take()[rows], "a sample has other values")
    threads = columns.n_jobs
    columns.n_jobs = 2
    assert_array_equal(columns.correlate(R), product, "threads change the bits")
    columns.n_jobs = threads
