"""The growing factor against QR and least squares of the columns themselves."""

import numpy as np
from numpy.testing import assert_allclose

from visionshare.search.basis import Basis


def _columns(n=40, m=90, seed=0):
    X = np.random.default_rng(seed).normal(size=(m, n))
    # One that others make up, a copy, and a zero.
    X[:, 7] = X[:, 1] - 2 * X[:, 3]
    X[:, 12] = X[:, 2]
    X[:, 20] = 0
    return X


def _basis(X):
    basis, gram = Basis(), X.T @ X
    for j in range(X.shape[1]):
        basis.append(gram[: j + 1, j])
    return basis


def test_vectors_are_those_of_gram_and_schmidt():
    X = _columns()
    basis = _basis(X)
    vectors = np.column_stack([X[:, : j + 1] @ basis.coefficients(j) for j in range(40)])
    dependent = [7, 12, 20]
    assert not vectors[:, dependent].any()
    kept = np.delete(np.arange(40), dependent)
    Q, R = np.linalg.qr(X[:, kept])
    assert_allclose(vectors[:, kept], Q * np.sign(np.diag(R)), atol=1e-9)


def test_squares_are_those_of_projections():
    X, others = _columns(), np.random.default_rng(1).normal(size=(90, 6))
    explained = _basis(X).squares(others.T @ X)
    fitted = X @ np.linalg.lstsq(X, others, rcond=None)[0]
    assert_allclose(explained, np.sum(fitted**2, axis=0), rtol=1e-10)
    assert_allclose(_basis(X[:, :0]).squares(np.zeros((6, 0))), 0)
