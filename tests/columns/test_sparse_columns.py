"""Columns of sparse matrices: what arrays give, from the entries alone; learners on them."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from visionshare import (
    ForwardGreedyClassifier,
    ForwardGreedyRegressor,
    GroupFeatureClassifier,
    ShareBoost,
    StructuralBoostingClassifier,
)
from visionshare.columns import ArrayColumns, SparseColumns
from visionshare.errors import InputError


def _matrix(seed=0, m=90, d=30, density=0.2):
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((m, d)) < density, rng.normal(size=(m, d)), 0)
    X[:, 7] = 0
    X[:, 9] = 2
    return X


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("make", [sparse.csr_matrix, sparse.csc_array, sparse.coo_array])
@pytest.mark.parametrize("scaling", ["none", "unit_variance", "unit_norm", "max_abs"])
def test_they_are_the_columns_of_an_array(dtype, make, scaling):
    X, rng = _matrix(), np.random.default_rng(1)
    omega, R = rng.uniform(0, 2, 90), rng.normal(size=(90, 3))
    omega[:5] = 0
    plain, columns = ArrayColumns(X, dtype=dtype), SparseColumns(make(X), dtype=dtype, n_jobs=2)
    ids = np.array([3, 29, 9, 7, 0])
    for each in (plain, columns):
        each.fit_scaling(scaling, omega)
    tolerance = 1e-12 if dtype == "float64" else 2e-5
    assert_allclose(columns.moments(omega), plain.moments(omega), atol=tolerance)
    assert_allclose(columns.offset, plain.offset, atol=tolerance)
    assert_allclose(columns.scale, plain.scale, rtol=tolerance, atol=tolerance)
    assert_allclose(columns.correlate(R), plain.correlate(R), atol=20 * tolerance)
    assert_allclose(columns.correlate(R, ids), plain.correlate(R, ids), atol=20 * tolerance)
    assert_allclose(columns.columns_of(ids), plain.columns_of(ids), atol=tolerance)
    assert_array_equal(columns.columns_of(ids, scaled=False), plain.columns_of(ids, scaled=False))
    coef, intercept = rng.normal(size=(3, 5)), rng.normal(size=3)
    expected = plain.scores_of(ids, coef, intercept)
    assert_allclose(columns.scores_of(ids, coef, intercept), expected, atol=20 * tolerance)
    assert_array_equal(columns.flat(), plain.flat())
    rows = np.array([4, 80, 11])
    assert_allclose(columns.sample(rows).take(), plain.sample(rows).take(), atol=tolerance)


def test_the_bits_do_not_depend_on_threads():
    X, R = sparse.csr_array(_matrix()), np.random.default_rng(1).normal(size=(90, 3))
    one, two = (SparseColumns(X, n_jobs=jobs) for jobs in (1, 2))
    assert_array_equal(one.correlate(R), two.correlate(R))
    assert_array_equal(one.moments(np.ones(90)), two.moments(np.ones(90)))


def test_the_matrix_that_is_given_stays_what_it_is():
    rows, cols, values = [0, 0, 1], [1, 1, 0], [1.0, 2.0, 4.0]
    X = sparse.csc_array((values, (rows, cols)), shape=(2, 2))
    raw = sparse.csc_array((np.array([2.0, 1.0]), np.array([1, 0]), np.array([0, 2, 2])), (2, 2))
    before = raw.indices.copy()
    assert SparseColumns(X).take().tolist() == [[0.0, 3.0], [4.0, 0.0]]
    assert SparseColumns(raw, dtype="float64").take().tolist() == [[1.0, 0.0], [2.0, 0.0]]
    assert_array_equal(raw.indices, before)


@pytest.mark.parametrize(
    "learner",
    [
        GroupFeatureClassifier(alpha=0.5, rounds=8),
        pytest.param(
            StructuralBoostingClassifier(alpha=1.0, rounds=8), marks=pytest.mark.exhaustive
        ),
        ForwardGreedyClassifier(4.0, rounds=20),
        ShareBoost(6),
        ShareBoost(6, criterion="orthogonal", search="screened", search_options={"keep": 8}),
    ],
    ids=lambda learner: type(learner).__name__,
)
def test_learners_find_in_them_what_they_find_in_arrays(learner):
    X = _matrix(3)
    y = np.digitize(X[:, 1] + X[:, 5] - X[:, 12], [-0.3, 0.3])
    plain = learner.fit(X, y)
    support, scores, labels = plain.support_, plain.decision_function(X), plain.predict(X)
    for given in (sparse.csr_matrix(X), sparse.csc_array(X)):
        found = learner.fit(given, y)
        assert_array_equal(found.support_, support)
        assert_allclose(found.decision_function(given), scores, atol=1e-3)
        assert_allclose(found.decision_function(X), scores, atol=1e-3)
        assert_array_equal(found.predict(given), labels)


@pytest.mark.parametrize("solver", ["gradboost", "adaboost"])
@pytest.mark.parametrize("penalty", ["l1", "l1/linf"])
def test_several_labels_of_an_example_are_learned_from_them(solver, penalty):
    """As for texts: few words of many in each, several topics, some of them not known."""
    X = _matrix(4)
    rng = np.random.default_rng(5)
    Y = (X[:, [1, 5, 12]] + 0.3 * rng.normal(size=(len(X), 3)) > 0.1).astype(float)
    Y[rng.random(Y.shape) < 0.1] = np.nan
    settings = {"loss": "logistic", "solver": solver, "penalty": penalty, "alpha": 2.0}
    plain = StructuralBoostingClassifier(**settings).fit(X, Y)
    found = StructuralBoostingClassifier(**settings).fit(sparse.csr_matrix(X), Y)
    assert {1, 5, 12} <= set(found.support_.tolist())
    assert_array_equal(found.support_, plain.support_)
    assert_allclose(found.coef_, plain.coef_, atol=1e-6)
    assert_array_equal(found.predict(sparse.csc_array(X)), plain.predict(X))
    assert np.mean((found.predict(X) == Y)[~np.isnan(Y)]) > 0.8


def test_a_wide_matrix_of_few_entries_is_never_written_out():
    X = sparse.random_array(
        (400, 200_000), density=1e-4, random_state=np.random.default_rng(0), format="csr"
    )
    marks = np.repeat([1.0, 0.0], 200)
    X = sparse.hstack([X, sparse.csr_array(marks[:, None])], format="csr")
    model = ForwardGreedyRegressor(3.0, rounds=5).fit(X, marks)
    assert model.support_[0] == 200_000


def test_other_matrices_are_refused():
    with pytest.raises(InputError, match=r"^X: got 'ndarray'"):
        SparseColumns(np.zeros((2, 2)))
    with pytest.raises(InputError, match=r"^dtype: got 'float16'"):
        SparseColumns(sparse.csr_array(np.eye(2)), dtype="float16")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_matrix_of_the_caller_stays_as_it_is(dtype):
    parts = (sparse.random(30, 20, 0.3, random_state=i, format="csc") for i in (0, 1))
    first, second = parts
    product = sparse.csc_matrix(first @ second.T)
    before = product.toarray()
    columns = SparseColumns(product, dtype=dtype)
    assert_array_equal(product.toarray(), before)
    assert_allclose(columns.take(), before, rtol=1e-6)
    assert_allclose(SparseColumns(product.todok(), dtype=dtype).take(), before, rtol=1e-6)
