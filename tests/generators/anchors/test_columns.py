"""Columns of anchors that are never kept: the same as evaluated ones, for every use of them."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_digits

import visionshare
from visionshare import KernelAnchors, Pixels, ShareBoost
from visionshare.columns import ArrayColumns
from visionshare.errors import InputError
from visionshare.generators.anchors import AnchorColumns
from visionshare.search import Pool
from visionshare.testing import check_columns


@pytest.fixture(scope="module")
def digits():
    digits = load_digits()
    return digits.images[:600].astype(np.uint8) * 15, digits.target[:600]


@pytest.fixture(scope="module", params=["linear", "tapered"])
def family(digits, request):
    return KernelAnchors(request.param, n_anchors=20, n_radii=6, n_components=8).fit(digits[0])


def _random(m=70, q=3, ties=False, seed=0):
    rng = np.random.default_rng(seed)
    return rng.integers(0, 3, (m, q)).astype(float) if ties else rng.normal(size=(m, q))


@pytest.mark.parametrize(
    ("X", "parameters"),
    [
        (_random(), {"n_anchors": 7, "n_radii": 4}),
        (_random(ties=True), {"n_anchors": 9, "n_radii": 6}),
        (_random(), {"n_anchors": 1, "n_radii": 1}),
        (_random(m=300), {"n_anchors": 2, "n_radii": 255}),
        (_random(m=1200, q=1), {"n_anchors": 3, "n_radii": 2, "scaling": "none"}),
        (np.ones((5, 2)), {"n_anchors": 3, "n_radii": 2}),
        (_random(), {"kind": "tapered", "n_anchors": 7, "n_radii": 4}),
        (_random(ties=True), {"kind": "tapered", "n_anchors": 9, "n_radii": 6}),
        (np.ones((5, 2)), {"kind": "tapered", "n_anchors": 3, "n_radii": 2}),
    ],
    ids=[
        "plain",
        "ties",
        "one pair",
        "255 radii",
        "many examples",
        "all the same",
        "tapered",
        "tapered ties",
        "tapered, all the same",
    ],
)
def test_every_rule_of_columns(X, parameters):
    family = KernelAnchors(**parameters).fit(X)
    check_columns(AnchorColumns(family, X), family.transform(X))


def test_columns_are_those_of_the_family_to_the_bit(family, digits):
    X = digits[0]
    columns = AnchorColumns(family, X, n_jobs=2)
    whole = family.transform_columns(X)
    assert_array_equal(columns.columns_of(scaled=False), whole)
    ids = np.random.default_rng(0).permutation(family.n_features_)[:50]
    assert_array_equal(columns.columns_of(ids, scaled=False), family.transform_columns(X, ids))
    assert_array_equal(columns.groups, family.groups)
    assert columns.macs(ids) == family.macs(ids)


def test_examples_that_were_not_learned_from(family):
    X = load_digits().images[600:800].astype(np.uint8) * 15
    assert_array_equal(
        AnchorColumns(family, X).columns_of(scaled=False), family.transform_columns(X)
    )


def test_computing_in_batches_changes_nothing(family, digits):
    whole = AnchorColumns(family, digits[0]).columns_of(scaled=False)
    columns = AnchorColumns(family, digits[0], span_bytes=4 * 600 * 7)
    assert max(len(span.offsets) for span in columns.spans(None)) == 7
    assert_array_equal(columns.columns_of(scaled=False), whole)
    assert_array_equal(columns.columns_of(np.arange(40, 3, -1), scaled=False), whole[40:3:-1])


def test_products_are_sums_over_the_examples_inside(family, digits):
    X = digits[0]
    columns = AnchorColumns(family, X)
    R = np.random.default_rng(1).normal(size=(600, 4)).astype(np.float32)
    columns.fit_scaling("unit_variance")
    scaled = (family.transform(X).astype(np.float64) - columns.offset) * columns.scale
    products = columns.correlate(R)
    size = (np.abs(scaled).T @ np.abs(R)).max()
    assert_allclose(products, scaled.T @ R, atol=2e-6 * size)
    for ids in (np.array([200, 3, 200]), np.arange(columns.shape[1])[::-1], np.empty(0, int)):
        assert_array_equal(columns.correlate(R, ids), products[ids])


@pytest.mark.parametrize("kind", ["none", "unit_variance", "max_abs"])
def test_scaling_is_that_of_evaluated_columns(family, digits, kind):
    X = digits[0]
    omega = np.where(np.arange(600) % 5 == 0, 0.0, np.random.default_rng(2).random(600))
    columns, evaluated = AnchorColumns(family, X), ArrayColumns.from_family(family, X)
    before = columns.fingerprint
    for either in (columns, evaluated):
        either.fit_scaling(kind, omega)
    assert_allclose(columns.offset, evaluated.offset, rtol=1e-9, atol=1e-12)
    assert_allclose(columns.scale, evaluated.scale, rtol=1e-9)
    assert_allclose(columns.variance, evaluated.variance, rtol=1e-9, atol=1e-12)
    again = AnchorColumns(family, X, n_jobs=2)
    again.fit_scaling(kind, omega)
    assert again.fingerprint == columns.fingerprint
    assert columns.fingerprint != before


def test_the_same_columns_get_the_same_bits(family, digits):
    columns = AnchorColumns(family, digits[0])
    columns.fit_scaling("unit_variance")
    R = np.random.default_rng(3).normal(size=(600, 5))
    # The last radius of every anchor holds all examples.
    last = columns.correlate(R).reshape(20, 6, 9, 5)[:, -1]
    assert_array_equal(last, np.broadcast_to(last[0], last.shape))
    assert len(np.unique(columns.scale.reshape(20, 6, 9)[:, -1], axis=0)) == 1
    norms = Pool(columns).gradient_norms(R).reshape(20, 6)[:, -1]
    assert len(np.unique(norms)) == 1


SETTINGS = {
    "plain": {},
    "max_abs": {"scaling": "max_abs"},
    "screened": {"search": "screened", "search_options": {"fraction": 0.3, "keep": 12}},
    "random": {"search": "random"},
    "orthogonal": {"criterion": "orthogonal"},
    "validation and backward": {"validation_fraction": 0.2, "n_backward": 1},
}


def _first_of_equal(columns):
    whole = columns.columns_of(scaled=False)
    _, first, which = np.unique(whole, axis=0, return_index=True, return_inverse=True)
    return first[which.ravel()]


@pytest.mark.parametrize("settings", SETTINGS)
def test_a_learner_cannot_tell(family, digits, settings):
    X, y = digits
    columns, evaluated = AnchorColumns(family, X), ArrayColumns.from_family(family, X)
    computed, stored, threads = (
        ShareBoost(rounds=2, n_jobs=jobs, **SETTINGS[settings]).fit(examples, y)
        for examples, jobs in ((columns, 1), (evaluated, 1), (columns, 2))
    )
    # Equal columns tie; products of evaluated ones break ties by rounding, one processor otherwise
    # than another. So what must agree is the columns, not their numbers.
    first = _first_of_equal(columns)
    assert_array_equal(first[computed.support_], first[stored.support_])
    assert_allclose(computed.coef_, stored.coef_, rtol=1e-4, atol=1e-6)
    assert all(len(step.feature) == 9 for step in computed.path_)
    assert [step.macs for step in computed.path_] == [step.macs for step in stored.path_]
    assert_array_equal(threads.coef_, computed.coef_)
    assert_array_equal(threads.support_, computed.support_)


def test_what_is_learned_becomes_a_classifier(family, digits, tmp_path):
    X, y = digits
    columns = AnchorColumns(family, X)
    model = ShareBoost(rounds=5).fit(columns, y)
    model.to_classifier(family).save(tmp_path / "c.safetensors")
    again = visionshare.load(tmp_path / "c.safetensors")
    assert_array_equal(again.predict(X), model.predict(columns))
    assert again.macs == model.path_[-1].macs


def test_other_families_and_parts_are_refused(family, digits):
    X = digits[0]
    gaussian = KernelAnchors("gaussian", 5).fit(X)
    backwards = family.take(np.arange(family.n_features_)[::-1])
    for wrong in (gaussian, Pixels().fit(X), family.take(np.arange(30)), backwards):
        with pytest.raises(InputError, match=r"^family: got"):
            AnchorColumns(wrong, X)
    with pytest.raises(InputError, match=r"^images: got"):
        AnchorColumns(family, X[:, 1:])


def test_all_columns_are_not_taken_where_they_would_not_fit(family, digits):
    most = 4 * 600 * family.n_features_ - 1
    columns = AnchorColumns(family, digits[0], largest_taken=most)
    for function in (columns.columns_of, columns.take):
        with pytest.raises(InputError, match=r"^ids: got None"):
            function()
    assert columns.take(np.arange(3)).shape == (600, 3)


def test_bad_residuals_and_ids_are_refused(family, digits):
    columns = AnchorColumns(family, digits[0])
    with pytest.raises(InputError, match=r"^R: got"):
        columns.correlate(np.ones((5, 2)))
    with pytest.raises(InputError, match=r"^ids: got"):
        columns.correlate(np.ones((600, 2)), np.array([columns.shape[1]]))
    with pytest.raises(InputError, match=r"^scaling: got"):
        columns.fit_scaling("ranks")
