"""Unions of families: every rule, the parts' own values, groups, nesting and hostile files."""

import json

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

import visionshare
from visionshare import (
    GaborBank,
    Monomials,
    PatchTemplates,
    Pixels,
    Products,
    RandomFourier,
    ShareBoost,
    UnionOfFamilies,
)
from visionshare.columns import ArrayColumns
from visionshare.errors import ClassifierFileError, DataError, InputError
from visionshare.files.tensors import write_tensor_file
from visionshare.generators import family_from_state
from visionshare.generators.family_file import FORMAT, read_family
from visionshare.store import create_store
from visionshare.testing import check_columns, check_family

IMAGES = np.random.default_rng(0).integers(0, 256, (40, 6, 5), np.uint8)
PATCHES = PatchTemplates(3, 5, 2, (2.0,), n_patches=800)
UNIONS = {
    "one": UnionOfFamilies([Pixels()]),
    "two": UnionOfFamilies((PATCHES, GaborBank(7, step=3))),
    "groups": UnionOfFamilies([Pixels(), RandomFourier(4), Products(), RandomFourier(3)]),
    "nested": UnionOfFamilies([UnionOfFamilies([Pixels(), UnionOfFamilies([PATCHES])]), PATCHES]),
}


@pytest.mark.parametrize("kind", UNIONS)
@pytest.mark.parametrize("shape", [(40, 6, 5), (40, 30)])
def test_every_rule_of_a_family(kind, shape):
    check_family(UNIONS[kind], IMAGES.reshape(shape))


def test_values_are_those_of_the_parts():
    union = UNIONS["groups"].fit(IMAGES)
    parts = [clone(family).fit(IMAGES) for family in UNIONS["groups"].families]
    assert_array_equal(union.transform(IMAGES), np.hstack([p.transform(IMAGES) for p in parts]))
    assert union.macs() == sum(p.macs() for p in parts)
    assert union.describe(33)["function"] == parts[1].describe(3)["function"] == "sin"
    one = union.take(np.array([33, 2, 32, 33]))
    assert len(one.parts_) == 2
    assert_array_equal(one.transform(IMAGES), union.transform(IMAGES)[:, [33, 2, 32, 33]])
    assert_array_equal(one.take([1]).transform(IMAGES), IMAGES[:, 0, 2, None] * np.float32(1 / 255))
    assert union.take([]).n_features_ == union.take([]).take([]).macs() == 0


def test_sums_of_parts_in_any_order():
    union = UnionOfFamilies([Pixels(), PATCHES, Monomials(Pixels(), [(0, 3), (1,)])]).fit(IMAGES)
    mixed = union.take(np.random.default_rng(2).permutation(union.n_features_))
    weights = np.random.default_rng(3).normal(size=(4, mixed.n_features_)).astype(np.float32)
    for family in (mixed, union):
        expected = family.transform(IMAGES).astype(np.float64) @ weights.T
        assert_allclose(family.weighted_sums(IMAGES, weights, 2), expected, rtol=1e-4, atol=1e-4)


def test_groups_of_different_parts_stay_apart():
    assert UNIONS["two"].fit(IMAGES).groups is None
    union = UNIONS["groups"].fit(IMAGES)
    groups = union.groups
    assert groups[:30].tolist() == list(range(30))
    assert groups[30:38].tolist() == [30, 30, 31, 31, 32, 32, 33, 33]
    assert groups[-6:].tolist() == (groups.max() - np.array([2, 2, 1, 1, 0, 0])).tolist()
    taken = union.take([37, 0, 36, 30]).groups
    assert taken[0] == taken[2]
    assert len(set(taken.tolist())) == 3


def test_a_copy_of_each_family_is_fitted():
    pixels = Pixels()
    union = UnionOfFamilies([pixels])
    assert clone(union).families[0] is not pixels
    union.fit(IMAGES)
    assert union.families[0] is pixels
    assert not hasattr(pixels, "n_features_")


def test_a_store_and_a_classifier_hold_a_union(tmp_path):
    y = (IMAGES[:, 2, 2] > 127).astype(int)
    family = UNIONS["groups"].fit(IMAGES)
    columns = create_store(tmp_path / "s", family, IMAGES, "float32", memory="20kB")
    check_columns(columns, family.transform_columns(IMAGES).T)
    model = ShareBoost(rounds=4).fit(columns, y)
    again = ShareBoost(rounds=4).fit(ArrayColumns.from_family(family, IMAGES), y)
    assert model.support_.tolist() == again.support_.tolist()
    classifier = model.to_classifier(family)
    classifier.save(tmp_path / "c.safetensors")
    loaded = visionshare.load(tmp_path / "c.safetensors")
    assert_array_equal(loaded.decision_function(IMAGES), classifier.decision_function(IMAGES))
    assert loaded.macs == classifier.macs == columns.macs(model.support_) + model.coef_.size


@pytest.mark.parametrize(
    "families",
    [(), None, Pixels(), [Pixels], [Pixels(), 3], [UnionOfFamilies()], [UnionOfFamilies(3)]],
    ids=repr,
)
def test_bad_families_are_named(families):
    with pytest.raises(InputError, match=r"^families: got"):
        UnionOfFamilies(families).fit(IMAGES)


def test_fitted_families_of_other_images_make_no_union():
    for families in ([], [Pixels().fit(IMAGES), Pixels().fit(IMAGES[:, 1:])]):
        with pytest.raises(InputError, match=r"^families: got"):
            UnionOfFamilies.of(families)


def _inside(depth):
    family = Pixels()
    for _ in range(depth):
        family = UnionOfFamilies([family])
    return family


def test_a_wrong_parameter_of_a_part_and_too_many_levels():
    with pytest.raises(InputError, match=r"^grid: got"):
        UnionOfFamilies([Pixels(), PatchTemplates(grid=0)]).check_parameters()
    assert _inside(8).fit(IMAGES).n_features_ == 30
    with pytest.raises(InputError, match="levels"):
        _inside(9).check_parameters()
    endless = UnionOfFamilies([])
    endless.families.append(endless)
    with pytest.raises(InputError, match="levels"):
        endless.check_parameters()


@pytest.mark.parametrize(
    "change",
    [
        {"version": 2}, {"parts": None}, {"parts": {}}, {"parts": [3, 4]}, {"parts": []},
        {"parts": [{"family": "pixels"}]}, {"image_shape": [6, 4]}, {"part": None},
        {"part": np.zeros(4, np.int64)}, {"part": np.full(4, 9)}, {"part": np.full(4, -1)},
        {"part": np.zeros(4, np.float32)}, {"0.ids": None}, {"0.ids": np.array([99, 1])},
        {"parts": [{"parts": 3}]},
    ],
    ids=str,
)  # fmt: skip
def test_hostile_states_are_refused(change):
    state, arrays = UNIONS["groups"].fit(IMAGES).take([0, 3, 31, 30]).to_state()
    for key, value in change.items():
        (arrays if key in arrays else state)[key] = value
    with pytest.raises(InputError):
        family_from_state(state, arrays)


@pytest.mark.parametrize("depth", [10, 100, 100_000])
def test_families_deep_inside_each_other_are_refused(depth, tmp_path):
    state, arrays = Pixels().fit(IMAGES).to_state()
    part = np.zeros(30, np.int64)
    for level in range(depth):
        state = {"family": "union", "version": 1, "image_shape": [6, 5], "parts": [state]}
        if level < 100:
            arrays = {f"0.{name}": a for name, a in arrays.items()} | {"part": part}
    with pytest.raises(InputError, match="levels"):
        family_from_state(state, arrays)
    if depth == 100:
        values = {"family": state, "classes": [0, 1], "temperature": 1.0, "path": []}
        path = tmp_path / "c.safetensors"
        tensors = {f"family.{name}": a for name, a in arrays.items()}
        tensors |= {"weights": np.zeros((2, 30), np.float32), "intercept": np.zeros(2, np.float32)}
        write_tensor_file(path, "visionshare-classifier", 1, {**values, "metadata": {}}, tensors)
        with pytest.raises(ClassifierFileError, match="levels"):
            visionshare.load(path)
    # Python itself would go through a deep state to free or show it.
    while state.get("parts"):
        state = state.pop("parts")[0]


def test_a_parameter_deep_inside_itself_is_refused(tmp_path):
    family = UnionOfFamilies((RandomFourier(n_pairs=2), Pixels())).fit(IMAGES)
    state, arrays = family.to_state()
    value = 1.0
    for _ in range(400):
        value = [value]
    state["parts"][0]["parameters"]["bandwidths"] = value
    path = tmp_path / "a.safetensors"
    write_tensor_file(path, FORMAT, 1, {"family": state}, arrays)
    with pytest.raises(DataError, match="invalid"):
        read_family(path)


def test_states_are_plain():
    state, arrays = UNIONS["nested"].fit(IMAGES).to_state()
    assert json.loads(json.dumps(state)) == state
    assert {"part", "0.part", "0.0.ids", "0.1.0.templates", "1.layout"} <= set(arrays)
