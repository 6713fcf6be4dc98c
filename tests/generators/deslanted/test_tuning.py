"""Features of deslanted images that move."""

import numpy as np
import pytest

from visionshare import Deslanted, PatchTemplates, Pixels
from visionshare.errors import InputError
from visionshare.generators.deslanted.family import deslanted


@pytest.fixture(scope="module")
def images():
    return np.random.default_rng(0).integers(0, 256, (40, 11, 9, 2), np.uint8)


@pytest.fixture(scope="module")
def family(images):
    pool = PatchTemplates(3, 6, grid=3, widths=(2.0, 4.0), cut=0.4, n_patches=500).fit(images)
    return pool.take(np.array([40, 0, 7, 17, 45, 99, 3]))


def test_features_of_deslanted_images_move_as_others_do(family, images):
    straight = deslanted(images)
    features, alone = Deslanted.of(family).tunable(), family.tunable()
    values, maxima = features.forward(images)
    expected, expected_maxima = alone.forward(straight)
    np.testing.assert_array_equal(values, expected)
    G = np.random.default_rng(1).normal(size=values.shape).astype(np.float32)
    gradients = features.backward(images, values, maxima, G)
    expected_gradients = alone.backward(straight, values, expected_maxima, G)
    for parameter, other, gradient in zip(
        features.parameters, alone.parameters, expected_gradients, strict=True
    ):
        np.testing.assert_array_equal(gradients.pop(0), gradient)
        for moving in (parameter, other):
            moving -= 0.1 * gradient / np.abs(gradient).max()
    features.moved()
    alone.moved()
    moved = features.family()
    np.testing.assert_array_equal(moved.transform(images), alone.family().transform(straight))
    np.testing.assert_array_equal(moved.transform(images), features.forward(images)[0])
    assert moved.macs() == Deslanted.of(family).macs()


def test_families_that_cannot_move():
    with pytest.raises(InputError, match=r"^family.*'pixels'.*fine-tuning"):
        Pixels().fit(np.zeros((2, 3, 3))).tunable()
    straight = Deslanted(Pixels())
    with pytest.raises(InputError, match=r"^family: got 'pixels'"):
        straight.check_tunable()
