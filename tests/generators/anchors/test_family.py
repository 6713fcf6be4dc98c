"""Anchors: plain twins of both kinds, what is learned, and use in a classifier."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA

import visionshare
from visionshare import KernelAnchors, ShareBoost
from visionshare.columns import ArrayColumns
from visionshare.errors import InputError
from visionshare.testing import check_family

rng = np.random.default_rng(0)
INPUTS = {
    "numbers": rng.normal(size=(40, 7)),
    "gray": rng.integers(0, 256, (30, 5, 6), np.uint8),
    "color": rng.random((30, 4, 4, 3), np.float32),
    "constant and one-hot": np.column_stack([np.eye(3)[rng.integers(3, size=30)], np.ones(30)]),
    "all the same": np.ones((10, 3)),
}
KINDS = ["linear", "tapered", "gaussian"]


@pytest.mark.parametrize("n_components", [None, 2])
@pytest.mark.parametrize("inputs", INPUTS)
@pytest.mark.parametrize("kind", KINDS)
def test_every_rule_of_a_family(kind, inputs, n_components):
    check_family(KernelAnchors(kind, 6, 3, n_components), INPUTS[inputs])
    check_family(KernelAnchors(kind, 6, 3, n_components, "sample", "none"), INPUTS[inputs])


def _twin(family, images):
    """Return features by the formula, one at a time."""
    x = images.reshape(len(images), -1) / (255.0 if images.dtype == np.uint8 else 1.0)
    v = (x - family.input_offset_) * family.input_scale_
    if family.components_ is not None:
        v = (v - family.mean_) @ family.components_.T.astype(np.float64)
    v = v.astype(np.float32).astype(np.float64)
    out = []
    for anchor, radius in zip(family.pairs_, family.radii_, strict=True):
        square = np.sum((v - family.anchors_[anchor]) ** 2, axis=1)
        if family.kind == "gaussian":
            out.append(np.exp(-square / (2 * np.float64(radius) ** 2)))
            continue
        inside = np.sqrt(square) < radius
        if family.kind == "tapered":
            limited = radius < np.finfo(np.float32).max
            inside = inside * (1 - square / np.float64(radius) ** 2 if limited else 1)
        out += [*(inside[:, None] * v).T, inside]
    return np.array(out).T


@pytest.mark.parametrize("n_components", [None, 4])
@pytest.mark.parametrize("inputs", ["numbers", "gray"])
@pytest.mark.parametrize("kind", KINDS)
def test_features_are_the_definition(kind, inputs, n_components):
    X = INPUTS[inputs]
    family = KernelAnchors(kind, 5, 4, n_components, random_state=3).fit(X[:25])
    assert_allclose(family.transform(X), _twin(family, X), rtol=2e-5, atol=2e-6)


def test_inputs_are_scaled_and_projected():
    X = INPUTS["gray"]
    family = KernelAnchors(n_anchors=4, n_components=5).fit(X)
    rows = X.reshape(len(X), -1) / 255
    scaled = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    vectors = family.vectors(X)
    assert vectors.dtype == np.float32
    assert_allclose(vectors, PCA(5, svd_solver="full").fit_transform(scaled), atol=1e-4)
    plain = KernelAnchors(n_anchors=4, scaling="none").fit(X).vectors(X)
    assert_array_equal(plain, rows.astype(np.float32))


def test_radii_hold_equal_shares_of_the_training_examples():
    X = np.random.default_rng(1).normal(size=(50, 3))
    family = KernelAnchors(n_anchors=6, n_radii=4).fit(X)
    inside = family.transform(X)[:, 3::4].sum(axis=0).reshape(6, 4)
    assert_array_equal(inside, np.tile([13, 25, 38, 50], (6, 1)))
    # The last radius has no limit: an example far out still gets the plain linear function.
    far = family.transform(np.full((1, 3), 1e6)).reshape(6, 4, 4)
    assert (far[:, :3] == 0).all()
    assert_array_equal(far[:, 3, 3], np.ones(6))
    assert family.describe(0)["radius"] < family.describe(4)["radius"]
    assert family.describe(12)["radius"] is None


def test_ties_are_inside_together():
    X = np.repeat(np.array([[0.0], [1.0], [2.0], [4.0]]), 5, axis=0)
    family = KernelAnchors(n_anchors=4, n_radii=8, scaling="none").fit(X)
    inside = family.transform(X)[:, 1::2].sum(axis=0).reshape(4, 8)
    assert_array_equal(inside[0], [5, 5, 10, 10, 15, 15, 20, 20])
    # From 1 both neighbors are at the same distance.
    assert_array_equal(inside[1], [5, 5, 15, 15, 15, 15, 20, 20])


def test_widths_are_quantiles_of_all_distances():
    X = np.random.default_rng(2).normal(size=(30, 2)).astype(np.float32)
    family = KernelAnchors("gaussian", 4, 3, centers="sample", scaling="none").fit(X)
    distances = np.linalg.norm(X[:, None] - family.anchors_[None], axis=2).astype(np.float64)
    assert np.sum(distances == 0) == 4
    quantiles = np.quantile(distances[distances > 0], [1 / 3, 2 / 3, 1])
    assert_allclose(family.radii_, np.tile(quantiles, 4), rtol=1e-5)
    assert family.groups is None
    assert_allclose(family.describe(1)["width"], quantiles[1], rtol=1e-5)


def test_few_different_examples_are_all_anchors():
    X = np.repeat(np.random.default_rng(3).normal(size=(7, 3)), 4, axis=0)
    for centers in ("kmeans", "sample"):
        family = KernelAnchors(n_anchors=20, n_radii=2, centers=centers, scaling="none").fit(X)
        assert family.n_anchors_ == 7
        assert_array_equal(family.anchors_, np.unique(X.astype(np.float32), axis=0))
    assert KernelAnchors(n_anchors=5, centers="kmeans").fit(X).n_anchors_ == 5


def test_anchors_depend_on_the_seed_alone():
    X = np.random.default_rng(4).normal(size=(60, 3))
    for centers in ("kmeans", "sample"):
        first, again, other = (
            KernelAnchors(n_anchors=5, centers=centers, random_state=s).fit(X) for s in (1, 1, 2)
        )
        assert_array_equal(first.anchors_, again.anchors_)
        assert not np.array_equal(first.anchors_, other.anchors_)
    sampled = KernelAnchors(n_anchors=5, centers="sample", scaling="none").fit(X)
    assert (sampled.anchors_[:, None] == X.astype(np.float32)).all(axis=2).any(axis=1).all()


def test_cost_counts_what_is_shared_once():
    X = INPUTS["gray"]
    family = KernelAnchors(n_anchors=4, n_radii=2, n_components=5).fit(X)
    p, q = 30, 5
    assert family.macs() == p + p * q + 4 * q
    group = np.flatnonzero(family.groups == 3)
    assert family.macs(group) == family.macs(group[:1]) == p + p * q + q
    assert family.macs(np.arange(2 * (q + 1))) == p + p * q + q
    assert KernelAnchors(n_anchors=4, scaling="none").fit(X).macs() == 4 * p
    assert family.macs(np.empty(0, np.int64)) == 0


def test_a_restriction_keeps_what_it_needs():
    X = INPUTS["numbers"]
    family = KernelAnchors(n_anchors=6, n_radii=3).fit(X)
    chosen = family.take(np.array([8 * 7 + 2, 8 * 7 + 7, 3]))
    assert chosen.anchors_.shape == (2, 7)
    assert len(chosen.radii_) == 2
    assert_array_equal(chosen.groups, [1, 1, 0])
    assert [chosen.describe(j)["input"] for j in range(3)] == [2, None, 3]
    assert_allclose(chosen.describe(0)["anchor"], family.describe(8 * 7)["anchor"])


def test_an_anchor_is_shown_in_the_units_of_the_inputs():
    X = INPUTS["constant and one-hot"]
    family = KernelAnchors(n_anchors=2, centers="sample").fit(X)
    shown = family.describe(0)["anchor"]
    assert np.abs(X - shown).sum(axis=1).min() < 1e-5
    whole = KernelAnchors(n_anchors=2, n_components=3, centers="sample").fit(X)
    assert np.abs(X - whole.describe(0)["anchor"]).sum(axis=1).min() < 1e-5


@pytest.mark.parametrize("kind", KINDS)
def test_pairs_enter_together_and_make_a_classifier(kind, tmp_path):
    digits = load_digits()
    X, y = digits.images.astype(np.uint8) * 15, digits.target
    family = KernelAnchors(kind, 40, 3, 10, scaling="none").fit(X[:1200])
    columns = ArrayColumns.from_family(family, X[:1200])
    model = ShareBoost(rounds=60 if kind == "gaussian" else 6).fit(columns, y[:1200])
    width = 1 if kind == "gaussian" else 11
    assert all(len(step.feature) == width for step in model.path_)
    model.to_classifier(family).save(tmp_path / "c.safetensors")
    again = visionshare.load(tmp_path / "c.safetensors")
    assert_array_equal(again.predict(X[1200:]), model.predict(family.transform(X[1200:])))
    assert np.mean(again.predict(X[1200:]) == y[1200:]) > 0.87
    one = np.concatenate([again.predict(image[None]) for image in X[1200:1230]])
    assert_array_equal(one, again.predict(X[1200:1230]))


@pytest.mark.parametrize(
    "parameters",
    [
        {"kind": "cubic"}, {"n_anchors": 0}, {"n_anchors": 2.5}, {"n_radii": 0}, {"n_radii": 256},
        {"n_components": 0}, {"n_components": True}, {"n_components": 8}, {"centers": "grid"},
        {"scaling": "max"}, {"n_anchors": 1 << 25}, {"random_state": "a"},
    ],
)  # fmt: skip
def test_bad_parameters_are_named(parameters):
    (name,) = parameters
    with pytest.raises(InputError, match=f"^{name}: got"):
        KernelAnchors(**parameters).fit(INPUTS["numbers"])


def test_what_is_no_image_and_other_dtypes_are_refused():
    family = KernelAnchors(n_anchors=3).fit(INPUTS["numbers"])
    with pytest.raises(InputError, match=r"^images: got"):
        family.transform(5)
    assert family.transform(np.empty((0, 7))).shape == (0, family.n_features_)
    with pytest.raises(InputError, match=r"^dtype: got"):
        family.transform_columns(INPUTS["numbers"], dtype="int8")


ARRAYS = ["offset", "scale", "anchors", "pairs", "radii", "ids", "components", "mean"]


@pytest.mark.parametrize("name", ARRAYS)
def test_foreign_arrays_are_refused(name):
    family = KernelAnchors(n_anchors=4, n_components=3).fit(INPUTS["numbers"])
    state, arrays = family.to_state()
    stored = arrays[name]
    wrong = [stored.astype(np.float64), stored[None], stored * np.float32(np.nan)]
    wrong += [stored + 10_000, stored - 10_000] if name in ("pairs", "ids") else [stored[..., :-1]]
    wrong += [-stored] if name == "radii" else []
    for array in wrong:
        with pytest.raises(InputError):
            KernelAnchors.from_state(state, {**arrays, name: array})
    with pytest.raises(InputError):
        KernelAnchors.from_state(state, {n: a for n, a in arrays.items() if n != name})


@pytest.mark.parametrize(
    "change",
    [
        {"n_components": 4}, {"n_components": None}, {"kind": "gaussian"}, {"kind": ["linear"]},
        {"n_anchors": "many"}, {"n_components": [3]},
    ],
)  # fmt: skip
def test_foreign_parameters_are_refused(change):
    family = KernelAnchors(n_anchors=4, n_components=3).fit(INPUTS["numbers"])
    state, arrays = family.to_state()
    with pytest.raises(InputError):
        KernelAnchors.from_state({**state, "parameters": {**state["parameters"], **change}}, arrays)
    del state["parameters"]["kind"]
    with pytest.raises(InputError, match=r"^parameters: got"):
        KernelAnchors.from_state(state, arrays)
