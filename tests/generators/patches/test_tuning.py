"""Templates and masks that move."""

import numpy as np
import pytest

from visionshare import PatchTemplates
from visionshare.generators.patches.tuning import TunableTemplates


@pytest.fixture(scope="module")
def images():
    return np.random.default_rng(0).integers(0, 256, (40, 11, 9, 2), np.uint8)


@pytest.fixture(scope="module")
def family(images):
    pool = PatchTemplates(3, 6, grid=3, widths=(2.0, 4.0), cut=0.4, n_patches=500).fit(images)
    # Templates 0 and 2 serve several features each.
    return pool.take(np.array([40, 0, 7, 17, 45, 99, 3]))


def responses(family, image):
    """Return the masked responses (features, rows, cols) of one image, position by position."""
    q, (pad_y, pad_x) = family.patch_size, family.pads_
    padded = np.pad(image / 255.0, ((pad_y, pad_y), (pad_x, pad_x), (0, 0)))
    rows, cols = family.positions_
    out = np.zeros((family.n_features_, rows, cols))
    for f, (t, a, b) in enumerate(family.layout_):
        for y in range(rows):
            for x in range(cols):
                response = np.sum(padded[y : y + q, x : x + q] * family.templates_[t])
                out[f, y, x] = response * family.row_masks_[a, y] * family.col_masks_[b, x]
    return out


def test_positions_are_where_the_maxima_are(family, images):
    features = TunableTemplates(family)
    values, positions = features.forward(images)
    assert np.array_equal(values, family.transform(images))
    cols = family.positions_[1]
    for i in range(12):
        masked = responses(family, images[i])
        for f in range(family.n_features_):
            if positions[i, f] < 0:
                assert values[i, f] == 0
                assert masked[f].max() <= 1e-6
            else:
                maximum = masked[f, positions[i, f] // cols, positions[i, f] % cols]
                np.testing.assert_allclose(maximum, masked[f].max(), rtol=1e-5)
                np.testing.assert_allclose(values[i, f], masked[f].max(), rtol=1e-5)
    assert (positions >= 0).any()


def test_no_position_where_a_feature_is_zero(family):
    dark = np.zeros((3, 11, 9, 2), np.uint8)
    features = TunableTemplates(family)
    values, positions = features.forward(dark)
    assert not values.any()
    assert (positions == -1).all()
    assert not any(
        g.any() for g in features.backward(dark, values, positions, np.ones_like(values))
    )


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
@pytest.mark.parametrize("number", [0, 1, 2])
def test_gradients_are_those_of_differences(family, images, dtype, number):
    typed = images if dtype == np.uint8 else (images / np.float32(255)).astype(dtype)
    features = TunableTemplates(family)
    # Of one sign, and along the gradient and a random part: what cancels would be small beside
    # what kinks add to differences.
    G = np.random.default_rng(1).random(size=(len(typed), family.n_features_))
    gradient = features.backward(typed, *features.forward(typed), G)[number]
    random = np.random.default_rng(2).normal(size=gradient.shape)
    direction = gradient / np.linalg.norm(gradient) + random / np.linalg.norm(random)
    start, step = features.parameters[number].copy(), 1e-3

    def value(by):
        features.parameters[number][...] = start + by * direction
        features.moved()
        return float(np.sum(G * features.forward(typed)[0].astype(np.float64)))

    slope = (value(step) - value(-step)) / (2 * step)
    # Where two positions tie a maximum has no derivative; a few such images move the slope.
    np.testing.assert_allclose(slope, np.sum(gradient * direction), rtol=0.02)


def test_threads_change_nothing(family, images):
    features = TunableTemplates(family)
    G = np.random.default_rng(1).normal(size=(len(images), family.n_features_))
    one, two = (features.forward(images, n) for n in (1, 2))
    assert np.array_equal(one[0], two[0])
    assert np.array_equal(one[1], two[1])
    for a, b in zip(*(features.backward(images, *one, G, n) for n in (1, 2)), strict=True):
        assert np.array_equal(a, b)


def test_moved_features_are_a_family(family, images):
    features = TunableTemplates(family)
    np.testing.assert_allclose(features.family().transform(images), family.transform(images))
    features.parameters[0] *= 2
    features.parameters[1] += np.log(3)
    features.moved()
    values = features.forward(images)[0]
    np.testing.assert_allclose(values, 6 * family.transform(images), rtol=1e-5)
    assert np.array_equal(features.family().transform(images), values)
    assert features.family().macs() == family.macs()
    # The family that was given stays as it was, and so does one that was taken.
    taken = features.family()
    features.parameters[0] *= 2
    features.moved()
    assert np.array_equal(taken.transform(images), values)
    assert not np.array_equal(family.templates_, taken.templates_)
