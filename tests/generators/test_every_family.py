"""Every example of every family that is installed, through the same rules."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from tests.generators.examples import family_examples
from visionshare import GaborBank
from visionshare.errors import InputError
from visionshare.generators import family_class, family_from_state, family_names
from visionshare.generators.family_file import read_family, write_family
from visionshare.testing import check_family

EXAMPLES = {
    label: (name, make) for name in family_names() for label, make in family_examples(name).items()
}
IMAGES = np.random.default_rng(0).integers(0, 256, (40, 8, 8), np.uint8)


def _fitted(label):
    return EXAMPLES[label][1]().fit(IMAGES)


@pytest.mark.parametrize("label", EXAMPLES)
def test_an_example_keeps_every_rule(label):
    check_family(EXAMPLES[label][1](), IMAGES)


# Their first layer reads pixels as that of another network does.
READ_ALIKE = {
    "network-of-few", "network-of-many", "network-depthwise", "network-residual",
    "network-strided", "network-of-units",
}  # fmt: skip


@pytest.mark.parametrize(
    "label",
    [
        pytest.param(label, marks=pytest.mark.exhaustive) if label in READ_ALIKE else label
        for label in EXAMPLES
    ],
)
def test_floats_are_what_bytes_stand_for(label):
    name, make = EXAMPLES[label]
    assert make().name == name
    assert isinstance(make(), family_class(name))
    check_family(make(), IMAGES.astype(np.float32) / 255)


@pytest.mark.parametrize("label", EXAMPLES)
def test_a_state_and_a_copy_make_the_same_family(label):
    whole = _fitted(label)
    for family in (whole, whole.take([5, 0, 3])):
        again = family_from_state(*family.to_state())
        assert type(again) is type(family)
        assert_array_equal(again.transform(IMAGES), family.transform(IMAGES))
        assert again.macs() == family.macs()
        copied = pickle.loads(pickle.dumps(family))
        assert_array_equal(copied.transform(IMAGES), family.transform(IMAGES))


@pytest.mark.parametrize("label", EXAMPLES)
def test_windows_of_a_larger_image_are_images(label):
    family = _fitted(label).take([4, 0, 2])
    image = np.random.default_rng(1).integers(0, 256, (13, 11), np.uint8)
    ys, xs = np.array([0, 2, 4]), np.array([1, 3])
    windows = np.array([[image[y : y + 8, x : x + 8] for x in xs] for y in ys])
    expected = family.transform(windows.reshape(6, 8, 8)).T.reshape(3, 3, 2)
    np.testing.assert_allclose(family.transform_windows(image, ys, xs), expected, 1e-5, 1e-5)
    weights = np.random.default_rng(1).normal(size=(2, family.n_features_)).astype(np.float32)
    sums = np.tensordot(weights, expected, 1).reshape(2, -1).T
    found = family.window_sums(image, ys, xs, weights)
    np.testing.assert_allclose(found, sums, 1e-4, 1e-4 * np.abs(sums).max())


@pytest.mark.parametrize("label", EXAMPLES)
def test_what_a_family_says_of_its_draws_is_so(label):
    family = _fitted(label)
    if not family.is_continuous:
        for asked in (lambda: family.draw(3, np.random.default_rng(0)), lambda: family.at(IMAGES)):
            with pytest.raises(InputError, match=r"^family.*continuous parameters"):
                asked()
        return
    parameters = family.draw(3, np.random.default_rng(0))
    drawn = family.at(parameters)
    assert drawn.n_features_ == 3 * family.features_per_draw
    assert np.isfinite(drawn.transform(IMAGES)).all()
    assert_array_equal(parameters, family.draw(3, np.random.default_rng(0)))


@pytest.mark.parametrize("label", EXAMPLES)
def test_no_images_have_no_features_and_teach_nothing(label):
    family = _fitted(label)
    assert family.transform(IMAGES[:0]).shape == (0, family.n_features_)
    assert family.transform_columns(IMAGES[:0]).shape == (family.n_features_, 0)
    with pytest.raises(InputError, match=r"^images: got"):
        EXAMPLES[label][1]().fit(IMAGES[:0])


@pytest.mark.parametrize("label", EXAMPLES)
def test_numbers_that_no_float32_and_no_family_has_are_refused(label):
    family = _fitted(label)
    with pytest.raises(InputError, match=r"^images: got"):
        family.transform(np.full((2, 8, 8), 1e39))
    with pytest.raises(InputError, match=r"^features: got -1"):
        family.transform(IMAGES, [0, -1])
    for outside in (-1, family.n_features_):
        with pytest.raises(InputError, match=f"^features: got {outside}"):
            family.describe(outside)


def test_parameters_may_be_numbers_of_numpy(tmp_path):
    family = GaborBank(np.int64(5), step=np.int64(2), random_state=np.uint8(3)).fit(IMAGES)
    write_family(tmp_path / "f", family)
    again = read_family(tmp_path / "f")
    assert (again.n_filters, again.step, again.random_state) == (5, 2, 3)
    assert_array_equal(again.transform(IMAGES), family.transform(IMAGES))


@pytest.mark.parametrize("label", EXAMPLES)
@pytest.mark.parametrize("key", ["family", "version", "image_shape"])
def test_a_state_without_its_head_is_refused(label, key):
    state, arrays = _fitted(label).to_state()
    del state[key]
    with pytest.raises(InputError):
        family_from_state(state, arrays)
