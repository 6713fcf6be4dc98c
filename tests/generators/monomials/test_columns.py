"""Products of what is chosen: numbering, values, choice and resume."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from visionshare import GroupFeatureRegressor, Pixels, ShareBoost, StructuralBoostingRegressor, load
from visionshare.columns import ArrayColumns
from visionshare.errors import InputError
from visionshare.generators.monomials import ProductColumns


def _columns(m=400, entries=30, seed=0):
    X = np.random.default_rng(seed).normal(size=(m, 6)).astype(np.float32)
    return X, ProductColumns(ArrayColumns(X), Pixels().fit(X), entries)


def test_products_are_numbered_by_entry():
    X, columns = _columns()
    columns.enter(np.array([4]))
    columns.enter(np.array([1]))
    assert [m.tolist() for m in columns.monomials(np.arange(6, 9))] == [[4, 4], [1, 4], [1, 1]]
    columns.enter(np.array([7]))
    monomials = [m.tolist() for m in columns.monomials(np.arange(9, 12))]
    assert monomials == [[1, 4, 4], [1, 1, 4], [1, 1, 4, 4]]
    values = columns.columns_of(np.array([3, 9, 0]), scaled=False)
    assert_allclose(values, [X[:, 3], X[:, 1] * X[:, 4] * X[:, 4], X[:, 0]], rtol=1e-5)
    with pytest.raises(InputError, match=r"^ids: got"):
        columns.columns_of(np.array([12]))


def test_products_are_what_plain_columns_would_be():
    X, columns = _columns()
    columns.fit_scaling("unit_variance")
    columns.enter(np.array([0, 5]))
    ids = np.array([8, 2, 7, 6])
    plain = ArrayColumns(np.column_stack([X[:, 5] ** 2, X[:, 2], X[:, 0] * X[:, 5], X[:, 0] ** 2]))
    plain.fit_scaling("unit_variance")
    R = np.random.default_rng(1).normal(size=(len(X), 3)).astype(np.float32)
    assert_allclose(columns.correlate(R, ids), plain.correlate(R), rtol=1e-4, atol=1e-4)
    assert_allclose(columns.take(ids), plain.take(), rtol=1e-4, atol=1e-5)


def test_it_finds_an_interaction_and_its_classifier_holds_it(tmp_path):
    X, columns = _columns(1500)
    a, b, c = X[:, :3].T
    y = (a + b + c + 2 * a * b + 4 * a * b * c > 0) * 1
    model = ShareBoost(rounds=12, search="products").fit(columns, y)
    plain = ShareBoost(rounds=6).fit(X, y)
    assert [0, 1, 2] in [m.tolist() for m in columns.monomials(model.support_)]
    assert model.score(columns, y) > plain.score(X, y) + 0.1
    compact = model.to_classifier(columns.family)
    compact.save(tmp_path / "c.safetensors")
    again = load(tmp_path / "c.safetensors")
    assert_array_equal(again.predict(X), model.predict(columns))


def test_a_stopped_run_goes_on_to_the_same_bits(tmp_path):
    X, columns = _columns()
    y = (X[:, 0] * X[:, 1] + 0.5 * X[:, 0] > 0) * 1
    settings = {"search": "products", "checkpoint": tmp_path / "rounds"}
    ShareBoost(rounds=4, **settings).fit(columns, y)
    _, fresh = _columns()
    resumed = ShareBoost(rounds=9, **settings).fit(fresh, y)
    whole = ShareBoost(rounds=9, search="products").fit(_columns()[1], y)
    assert_array_equal(resumed.support_, whole.support_)
    assert_array_equal(resumed.coef_, whole.coef_)


def test_column_generation_multiplies_too():
    X, columns = _columns()
    y = 2 * X[:, 3] + X[:, 3] * X[:, 4] + X[:, 4]
    model = GroupFeatureRegressor(alpha=0.5, search="products", rounds=20).fit(columns, y)
    monomials = [m.tolist() for m in columns.monomials(model.support_)]
    assert [3, 4] in monomials
    assert np.corrcoef(model.predict(columns), y)[0, 1] > 0.999


def test_wrong_things_are_refused():
    X, columns = _columns(entries=3)
    y = (X[:, 0] > 0) * 1
    with pytest.raises(InputError, match=r"^rounds: got"):
        ShareBoost(rounds=4, search="products").fit(columns, y)
    with pytest.raises(InputError, match=r"^X: got"):
        ShareBoost(rounds=2, search="products").fit(X, y)
    with pytest.raises(InputError, match=r"^ids: got"):
        ShareBoost(rounds=2, search="exhaustive").fit(columns, y)
    with pytest.raises(InputError, match=r"^base: got"):
        ProductColumns(ArrayColumns(X, groups=np.arange(6) // 2), Pixels().fit(X))
    with pytest.raises(InputError, match=r"^entries: got"):
        ProductColumns(ArrayColumns(X), Pixels().fit(X), 0)


def test_room_is_checked_before_work_starts():
    X, columns = _columns(entries=30)
    y = X[:, 0] + X[:, 1] * X[:, 2]
    model = StructuralBoostingRegressor(
        rounds=4, n_entering=10, search="products", scaling="none", solver="newton"
    )
    with pytest.raises(
        InputError, match=r"^rounds: got '4 of 10 candidates'.*at most 3"
    ) as refused:
        model.fit(columns, y)
    assert "30 entries" in str(refused.value)
    assert len(columns.monomials(np.arange(columns.d))) == columns.d
    assert not hasattr(model, "history_")
    model.set_params(rounds=3).fit(columns, y)


def test_a_price_for_factors_ends_a_pool_that_grows():
    X = np.random.default_rng(0).normal(size=(120, 4)).astype(np.float32)
    y = X[:, 0] + X[:, 1] * X[:, 2]
    ended = []
    for price in (1.0, 3.0):
        columns = ProductColumns(ArrayColumns(X), Pixels().fit(X), 40, price)
        model = StructuralBoostingRegressor(
            alpha=0.5, eps=0.05, rounds=8, n_entering=5, search="products", scaling="none",
            solver="newton",
        ).fit(columns, y)  # fmt: skip
        degrees = [len(factors) for factors in columns.monomials(model.support_)]
        ended.append((model.stopped_by_, max(degrees)))
    assert ended[0][0] == "rounds"
    assert ended[1][0] == "optimal"
    assert ended[1][1] < ended[0][1]


def test_a_warm_start_of_a_pool_that_grows_begins_anew():
    """Ids of products follow what entered: those of the fit before mean others."""
    X = np.random.default_rng(0).normal(size=(120, 4)).astype(np.float32)
    y = X[:, 0] + X[:, 1] * X[:, 2] + X[:, 3] ** 2 * X[:, 1]
    columns = ProductColumns(ArrayColumns(X), Pixels().fit(X), 100, 2.0)
    settings = {"rounds": 6, "n_entering": 3, "search": "products", "solver": "newton"}
    warm = StructuralBoostingRegressor(alpha=3.0, warm_start=True, **settings).fit(columns, y)
    warm.set_params(alpha=0.5).fit(columns, y)
    cold = StructuralBoostingRegressor(alpha=0.5, **settings).fit(columns, y)
    np.testing.assert_array_equal(warm.support_, cold.support_)
    np.testing.assert_array_equal(warm.coef_, cold.coef_)


def test_a_price_divides_what_is_scaled():
    X, plain = _columns()
    priced = ProductColumns(ArrayColumns(X), Pixels().fit(X), 30, 2.0)
    for columns in (plain, priced):
        columns.fit_scaling("unit_variance")
        columns.enter(np.array([1, 2]))
        columns.enter(np.array([columns.d + 1]))
    ids = np.arange(plain.d + plain.n_products)
    degrees = np.array([len(factors) for factors in plain.monomials(ids)])
    expected = plain.columns_of(ids) / 2.0 ** (degrees - 1)[:, None]
    np.testing.assert_allclose(priced.columns_of(ids), expected, rtol=1e-5)
    assert degrees.max() == 4
    with pytest.raises(InputError, match=r"^degree_price"):
        ProductColumns(ArrayColumns(X), Pixels().fit(X), 30, 0.5)


def test_many_products_are_those_of_their_factors():
    """More than a batch, of 600 examples; degrees double as products enter."""
    X = np.random.default_rng(3).uniform(-1.5, 1.5, (600, 6)).astype(np.float32)
    columns = ProductColumns(ArrayColumns(X), Pixels().fit(X), 60)
    columns.enter(np.arange(6))
    for _ in range(3):
        columns.enter(columns.d + np.arange(columns.n_products)[-12:])
    ids = np.random.default_rng(4).permutation(columns.d + columns.n_products)
    monomials = columns.monomials(ids)
    assert len(ids) > 800
    assert max(map(len, monomials)) > 8
    expected = np.stack([X[:, factors].astype(np.float64).prod(axis=1) for factors in monomials])
    values = columns.columns_of(ids, scaled=False)
    assert_allclose(values, expected, rtol=1e-5, atol=1e-37)
    assert_array_equal(values[::7], columns.columns_of(ids[::7], scaled=False))
    R = np.random.default_rng(1).normal(size=(600, 2)).astype(np.float32)
    sizes = np.linalg.norm(expected, axis=1)[:, None]
    assert_allclose(columns.correlate(R, ids) / sizes, expected @ R / sizes, rtol=1e-4, atol=1e-4)


def test_each_monomial_is_distinct_once():
    _, columns = _columns()
    columns.enter(np.array([0, 1, 2]))
    columns.enter(columns.d + np.arange(6))
    columns.enter(columns.d + np.arange(30, 36))
    monomials = [tuple(m) for m in columns.monomials(np.arange(columns.d + columns.n_products))]
    first = {}
    for j, monomial in enumerate(monomials):
        first.setdefault(monomial, j)
    expected = [first[monomial] == j for j, monomial in enumerate(monomials)]
    assert_array_equal(columns.distinct, expected)
    assert 0 < len(first) < len(monomials)


def test_what_enters_again_brings_no_products():
    X, columns = _columns()
    columns.enter(np.array([0, 1]))
    before = columns.n_products
    columns.enter(np.array([1, 0]))
    assert columns.n_products == before == 3
    columns.enter(np.array([4]))
    assert [m.tolist() for m in columns.monomials(np.arange(9, 12))] == [[0, 4], [1, 4], [4, 4]]
    assert_allclose(columns.columns_of(np.array([10]))[0], X[:, 1] * X[:, 4], rtol=1e-6)


def test_no_support_has_a_monomial_twice():
    """Pairs that give the same monomial would enter side by side: their gradients are equal."""
    X, columns = _columns(200, entries=200)
    y = X[:, 0] * X[:, 1] * X[:, 2] + (X[:, 0] + X[:, 3]) ** 3
    model = StructuralBoostingRegressor(
        alpha=0.05, rounds=12, n_entering=10, search="products", solver="newton"
    ).fit(columns, y)
    monomials = [tuple(m) for m in columns.monomials(model.support_)]
    assert len(monomials) > 10
    assert len(set(monomials)) == len(monomials)
