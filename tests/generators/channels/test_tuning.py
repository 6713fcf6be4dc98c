"""Features on channels that move."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from visionshare import ChannelMaps, LearnedMaps, PatchTemplates, Pixels
from visionshare.errors import InputError

IMAGES = np.random.default_rng(0).integers(0, 256, (40, 11, 9, 3), np.uint8)
PATCHES = PatchTemplates(2, 6, 2, (2.0,), n_patches=500)


@pytest.mark.parametrize(
    "inside", [PATCHES, LearnedMaps(PATCHES, 3, 2, 1, n_patches=300)], ids=["patches", "maps"]
)
def test_what_is_inside_moves_as_it_does_alone(inside):
    family = ChannelMaps(inside, n_orientations=3, normalization="local", window=5).fit(IMAGES)
    family = family.take(np.array([4, 0, 17]))
    channels = family.inner_images(IMAGES)
    features, alone = family.tunable(), family.part_.tunable()
    values, seen = features.forward(IMAGES)
    expected, expected_seen = alone.forward(channels)
    assert_array_equal(values, expected)
    assert_array_equal(values, family.transform(IMAGES))
    G = np.random.default_rng(1).normal(size=values.shape).astype(np.float32)
    found = features.backward(IMAGES, values, seen, G)
    wanted = alone.backward(channels, expected, expected_seen, G)
    for parameter, other, gradient, same in zip(
        features.parameters, alone.parameters, found, wanted, strict=True
    ):
        assert_array_equal(gradient, same)
        for moving in (parameter, other):
            moving -= 0.1 * gradient / np.abs(gradient).max()
    features.moved()
    alone.moved()
    moved = features.family()
    assert isinstance(moved, ChannelMaps)
    assert_array_equal(moved.transform(IMAGES), alone.family().transform(channels))
    assert_array_equal(moved.transform(IMAGES), features.forward(IMAGES)[0])
    assert moved.macs() == family.macs()


def test_families_that_cannot_move():
    with pytest.raises(InputError, match=r"^family: got 'pixels'"):
        ChannelMaps(Pixels()).check_tunable()
    with pytest.raises(InputError, match=r"^family: got 'channels'.*fine-tuning"):
        LearnedMaps(ChannelMaps(PATCHES)).check_tunable()
