"""Gabor filters that move: gradients against differences, ranges, and a better classifier."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from visionshare import CompactClassifier, GaborBank, load
from visionshare.generators.gabor.slopes import gabor_slopes
from visionshare.generators.gabor.values import gabor_values
from visionshare.learners.fine_tuning import FineTuning, fine_tune

POOLINGS = ["sum", "mean", "max"]
SETTINGS = [
    {"zero_mean": True, "phases": True},
    {"border": "inside", "sigmas": (0.6, 1.2), "reach": 3},
    {"positions": ((0, 7), (1, 2, 6)), "phases": True},
    {"step": 1, "reach": 2},
]


def _images(n=20, shape=(10, 11), seed=0):
    return np.random.default_rng(seed).normal(size=(n, *shape))


def _family(pooling, settings, images=None):
    return GaborBank(6, pooling=pooling, random_state=2, **settings).fit(
        _images() if images is None else images
    )


def _direct(family, images, filters):
    """Return the features from their definition, in float64; the reach is that of the family."""
    height, width = images.shape[1:3]
    gray = images.astype(np.float64).reshape(len(images), height, width, -1).mean(axis=3)
    if images.dtype == np.uint8:
        gray /= 255
    reach = family._reach(np.arange(family.n_features_))
    out = np.empty((len(images), len(filters)))
    for members, axes in family._by_positions(reach):
        for f in members:
            theta, f0, sigma_z, sigma_y, phase = filters[f]
            responses = []
            for y, x in itertools.product(*axes):
                v, u = np.arange(height)[:, None] - y, np.arange(width)[None, :] - x
                z0 = u * np.cos(theta) + v * np.sin(theta)
                y0 = -u * np.sin(theta) + v * np.cos(theta)
                taps = _wave(z0, y0, f0, sigma_z, sigma_y, phase)
                if family.zero_mean:
                    taps = taps - _mean_part(filters[f], reach[f], (height, width), z0, y0)
                taps = taps * ((np.abs(v) <= reach[f]) & (np.abs(u) <= reach[f]))
                responses.append(np.abs((gray * taps).sum(axis=(1, 2))))
            out[:, f] = getattr(np, family.pooling)(responses, axis=0)
    return out


def _gaussian(z0, y0, sigma_z, sigma_y):
    return np.exp(-(z0**2) / (2 * sigma_z**2) - y0**2 / (2 * sigma_y**2))


def _wave(z0, y0, f0, sigma_z, sigma_y, phase):
    return _gaussian(z0, y0, sigma_z, sigma_y) * np.cos(2 * np.pi * f0 * z0 + phase)


def _mean_part(parameters, reach, size, z0, y0):
    theta, f0, sigma_z, sigma_y, phase = parameters
    y, z = np.arange(1 - size[0], size[0])[:, None], np.arange(1 - size[1], size[1])[None, :]
    inside = (np.abs(y) <= reach) & (np.abs(z) <= reach)
    along, across = z * np.cos(theta) + y * np.sin(theta), -z * np.sin(theta) + y * np.cos(theta)
    total = (_wave(along, across, f0, sigma_z, sigma_y, phase) * inside).sum()
    envelope = (_gaussian(along, across, sigma_z, sigma_y) * inside).sum()
    return total / envelope * _gaussian(z0, y0, sigma_z, sigma_y)


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("pooling", POOLINGS)
def test_gradients_are_those_of_differences(pooling, settings):
    images = _images()
    family = _family(pooling, settings, images)
    features = family.tunable()
    values, seen = features.forward(images)
    filters = family.filters_.astype(np.float64)
    assert_allclose(values, _direct(family, images, filters), rtol=1e-4, atol=1e-4)
    G = np.random.default_rng(1).normal(size=values.shape).astype(np.float32)
    (gradients,) = features.backward(images, values, seen, G)
    assert gradients.shape == (6, 5 if family.phases else 4)
    expected, step = np.empty((5, 6)), 1e-6
    # In θ, f₀ in units of its range, ln σ_z, ln σ_y, φ / 2.
    for k in range(5):
        sums = []
        for sign in (1, -1):
            moved = filters.copy()
            if k in (2, 3):
                moved[:, k] *= np.exp(sign * step)
            else:
                moved[:, k] += sign * step * (1, 0.4, 0, 0, 2)[k]
            sums.append((_direct(family, images, moved) * G).sum(axis=0))
        expected[k] = (sums[0] - sums[1]) / (2 * step)
    scale = np.abs(expected).max()
    assert_allclose(gradients, expected.T[:, : gradients.shape[1]], rtol=2e-3, atol=1e-4 * scale)


@pytest.mark.parametrize("zero_mean", [False, True])
def test_slopes_are_those_of_the_values(zero_mean):
    rng = np.random.default_rng(0)
    parameters = np.column_stack([rng.uniform(0.2, 1, (4, 2)), rng.uniform(1, 2, (4, 3))])
    weights, reach = rng.normal(size=(4, 9, 11)), np.array([1, 2, 3, 9])

    def total(moved):
        values = gabor_values(moved, 5, 6, reach, zero_mean).astype(np.float64)
        return (weights * values).sum(axis=(1, 2))

    slopes = gabor_slopes(parameters, weights, reach, zero_mean)
    for k in range(5):
        step = np.zeros(5)
        step[k] = 1e-2
        difference = (total(parameters + step) - total(parameters - step)) / 2e-2
        if k in (2, 3):
            difference *= parameters[:, k]
        assert_allclose(slopes[:, k], difference, rtol=0.02, atol=0.02)


@pytest.mark.parametrize("images", [
    np.random.default_rng(0).integers(0, 256, (9, 8, 8, 3)).astype(np.uint8),
    np.random.default_rng(0).normal(size=(9, 20)),
], ids=["color", "vector"])  # fmt: skip
def test_bytes_channels_and_vectors(images):
    family = _family("sum", {"phases": True}, images)
    features = family.tunable()
    values, seen = features.forward(images)
    G = np.ones_like(values)
    (gradients,) = features.backward(images, values, seen, G)
    raster = images if images.ndim > 2 else images[:, None, :]
    moved, step = family.filters_.astype(np.float64), 1e-6
    sums = []
    for sign in (1, -1):
        turned = moved.copy()
        turned[:, 0] += sign * step
        sums.append(_direct(family, raster, turned).sum(axis=0))
    assert_allclose(gradients[:, 0], (sums[0] - sums[1]) / (2 * step), rtol=1e-3, atol=1e-2)


@pytest.mark.parametrize("pooling", POOLINGS)
def test_gradients_are_the_same_on_any_number_of_threads(pooling):
    images = _images(40)
    features = _family(pooling, {"border": "inside"}, images).tunable()
    (values, seen), (other, _) = features.forward(images), features.forward(images, 2)
    assert_array_equal(values, other)
    G = np.random.default_rng(0).normal(size=values.shape)
    one, two = (features.backward(images, values, seen, G, jobs) for jobs in (1, 2))
    assert_array_equal(one[0], two[0])


def test_values_stay_without_a_step_and_ranges_hold():
    images = _images()
    family = _family("mean", {"phases": True}, images)
    features = family.tunable()
    features.moved()
    assert_allclose(features.family().transform(images), family.transform(images), rtol=1e-4)
    assert_array_equal(features.family().transform(images), features.forward(images)[0])
    parameters = features.parameters[0]
    parameters[:3] += 9
    parameters[3:] -= 9
    features.moved()
    filters = features.family().filters_
    assert_allclose(filters[:, 1], [0.45] * 3 + [0.05] * 3, rtol=1e-6)
    assert_allclose(filters[:, 2:4], [[6, 6]] * 3 + [[1, 1]] * 3, rtol=1e-6)
    # What went too far begins the next step at the end of its range.
    assert_allclose(parameters[:, 1] * 0.4, filters[:, 1], rtol=1e-6)
    assert_allclose(np.exp(parameters[:, 2:4]), filters[:, 2:4], rtol=1e-6)
    assert_array_equal(family.filters_, _family("mean", {"phases": True}, images).filters_)


def test_filters_beyond_the_ranges_begin_where_they_are():
    images = _images()
    family = GaborBank(2).fit(images).at([[0.3, 0.02, 0.4, 8.0, 1.0]])
    features = family.tunable()
    features.moved()
    assert_allclose(features.family().filters_, family.filters_, rtol=1e-6)


def test_moving_filters_makes_a_better_classifier(tmp_path):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 150)
    x = np.arange(12)
    waves = np.cos(2 * np.pi * np.array([0.12, 0.17, 0.22])[y][:, None] * x + rng.random((150, 1)))
    images = waves[:, None, :] + rng.normal(size=(150, 12, 12))
    family = GaborBank(4, pooling="mean", random_state=1).fit(images[:100])
    start = CompactClassifier(family, np.zeros((3, 4)), np.zeros(3), np.arange(3))
    still = FineTuning(epochs=15, batch=20, rate=0.03, head="linear", validation_fraction=0.0)
    moved = fine_tune(start, images[:100], y[:100], still)
    first = fine_tune(start, images[:100], y[:100], FineTuning(
        epochs=1, batch=20, rate=0.03, head="linear", validation_fraction=0.0
    ))  # fmt: skip
    assert moved.path[-1].loss < 0.8 * first.path[-1].loss
    assert np.mean(moved.predict(images[100:]) == y[100:]) > 0.6
    assert not np.allclose(moved.family.filters_, family.filters_)
    two = fine_tune(start, images[:100], y[:100], still, n_jobs=2)
    assert_array_equal(two.weights, moved.weights)
    assert_array_equal(two.family.filters_, moved.family.filters_)
    moved.save(tmp_path / "moved.safetensors")
    again = load(tmp_path / "moved.safetensors")
    assert_array_equal(again.decision_function(images), moved.decision_function(images))
