"""Gradients of maps, against loops and differences."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from visionshare import Deslanted, LearnedMaps, PatchTemplates, Pixels
from visionshare.errors import InputError

IMAGES = np.random.default_rng(0).integers(0, 256, (40, 13, 11, 2), np.uint8)


def layers(images, depth, padding=1, masks="cells"):
    """Return a few features of patches on maps, or on maps of maps."""
    family = PatchTemplates(2, 6, 2, (2.0,), 0.3, masks=masks, padding=padding, n_patches=500)
    for level in range(depth):
        pool = 2 if level + 1 == depth else 1
        family = LearnedMaps(family, 3 + level, 3, pool, padding, n_patches=400)
    family = family.fit(images)
    return family.take(np.array([3, 22, 0, 17, 9]))


def gradients(family, images, n_jobs=1):
    """Return the tunable features, derivatives in them, and the gradients in all parameters."""
    features = family.tunable()
    values, seen = features.forward(images, n_jobs)
    G = np.random.default_rng(1).normal(size=values.shape)
    return features, G, features.backward(images, values, seen, G, n_jobs)


def test_features_that_move_are_the_same_features():
    family = layers(IMAGES, 2)
    features = family.tunable()
    values, _ = features.forward(IMAGES)
    assert_array_equal(values, family.transform(IMAGES))
    features.parameters[0] *= 1.5
    features.parameters[1] += 0.1
    features.parameters[-1] *= 0.5
    features.moved()
    moved = features.family()
    assert_array_equal(moved.transform(IMAGES), features.forward(IMAGES)[0])
    assert not np.allclose(moved.transform(IMAGES), values)
    assert moved.macs() == family.macs()
    assert_array_equal(family.transform(IMAGES), values)
    # What was taken stays as it is.
    before = moved.transform(IMAGES)
    features.parameters[0] *= 2
    features.parameters[1] += 1
    features.moved()
    assert_array_equal(moved.transform(IMAGES), before)


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
@pytest.mark.parametrize(("depth", "masks"), [(1, "cells"), (1, "gaussian"), (2, "cells")])
def test_gradients_are_those_of_differences(depth, masks, dtype):
    images = IMAGES if dtype == np.uint8 else (IMAGES / np.float32(255)).astype(dtype)
    family = layers(images, depth, masks=masks)
    features, G, found = gradients(family, images)
    assert len(found) == 2 * depth + (1 if masks == "cells" else 3)
    for number, gradient in enumerate(found):
        parameter = features.parameters[number]
        assert gradient.shape == parameter.shape
        direction = np.random.default_rng(2).normal(size=gradient.shape)
        start, step = parameter.copy(), 2e-3

        def value(by, parameter=parameter, start=start, direction=direction):
            parameter[...] = start + by * direction
            features.moved()
            return float(np.sum(G * features.forward(images)[0].astype(np.float64)))

        slope = (value(step) - value(-step)) / (2 * step)
        parameter[...] = start
        # Where another position becomes the maximum there is no derivative.
        scale = np.abs(gradient * direction).sum()
        assert_allclose(slope, np.sum(gradient * direction), rtol=0.03, atol=0.01 * scale)


def gradients_by_loops(family, images, G):
    """Return the gradients in templates, biases and pixels of Σ G · maps, cell by cell."""
    pad, q, pool = family.padding, family.size, family.pool
    x = np.pad(images.astype(np.float64), ((0, 0), (pad, pad), (pad, pad), (0, 0)))
    maps, places = family.maps_and_places(images)
    unit = 1 / 255 if images.dtype == np.uint8 else 1
    templates, biases = np.zeros(family.templates_.shape), np.zeros(family.n_maps)
    pixels = np.zeros(x.shape)
    for i, row, col, m in np.ndindex(maps.shape):
        if maps[i, row, col, m] > 0:
            dy, dx = divmod(int(places[i, row, col, m]), pool)
            window = np.s_[i, row * pool + dy :, col * pool + dx :]
            g = G[i, row, col, m]
            templates[m] += g * unit * x[window][:q, :q]
            biases[m] += g
            pixels[window][:q, :q] += g * family.templates_[m]
    inside = slice(pad, None if pad == 0 else -pad)
    return templates, biases, pixels[:, inside, inside]


@pytest.mark.parametrize(("pool", "padding"), [(1, 0), (2, 2), (3, 1)])
def test_kernels_add_gradients_where_maxima_are(pool, padding):
    from visionshare.generators.maps.tuning_kernels import image_gradients, template_gradients

    family = LearnedMaps(Pixels(), 3, 4, pool, padding, n_patches=300).fit(IMAGES)
    draw = np.random.default_rng(3)
    family.biases_[:] = draw.normal(size=3) / 10
    for images in (IMAGES[:9], (IMAGES[:9] / 255).astype(np.float32)):
        places = family.maps_and_places(images)[1]
        G = draw.normal(size=places.shape).astype(np.float32)
        G[draw.random(G.shape) < 0.3] = 0
        expected = gradients_by_loops(family, images, G)
        flat = family.templates_.reshape(3, 4, -1)
        templates, lines = np.zeros_like(flat), images.reshape(9, 13, -1)
        biases, pixels = np.zeros(3, np.float32), np.empty(lines.shape, np.float32)
        template_gradients(lines, places, G, padding, pool, templates, biases)
        image_gradients(places, G, flat, padding, pool, pixels)
        templates, pixels = templates.reshape(expected[0].shape), pixels.reshape(images.shape)
        for found, wanted in zip((templates, biases, pixels), expected, strict=True):
            assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("size", [1, 4, 7])
def test_gradients_of_many_channels(size):
    """More rows and vectors than are summed at once."""
    from visionshare.generators.maps.tuning_kernels import image_gradients, template_gradients

    draw = np.random.default_rng(4)
    images = draw.random((5, 9, 10, 19), np.float32)
    family = LearnedMaps(Pixels(), 18, size, 2, 1, n_patches=300).fit(images)
    places = family.maps_and_places(images)[1]
    G = draw.normal(size=places.shape).astype(np.float32)
    expected = gradients_by_loops(family, images, G)
    flat = family.templates_.reshape(18, size, -1)
    templates, biases = np.zeros_like(flat), np.zeros(18, np.float32)
    lines = images.reshape(5, 9, -1)
    pixels = np.empty_like(lines)
    template_gradients(lines, places, G, 1, 2, templates, biases)
    image_gradients(places, G, flat, 1, 2, pixels)
    for found, wanted in zip((templates, biases, pixels), expected, strict=True):
        assert_allclose(found.reshape(wanted.shape), wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("depth", [0, 1, 2])
def test_gradients_in_images_are_those_of_differences(depth):
    images = (IMAGES[:12] / 255).astype(np.float32)
    features = layers(images, depth).tunable()
    values, seen = features.forward(images)
    G = np.random.default_rng(1).normal(size=values.shape)
    found = features.image_gradients(images, values, seen, G)
    assert found.shape == images.shape
    direction = np.random.default_rng(2).normal(size=images.shape)
    step = 1e-3

    def value(by):
        moved = (images + by * direction).astype(np.float32)
        return float(np.sum(G * features.forward(moved)[0].astype(np.float64)))

    slope = (value(step) - value(-step)) / (2 * step)
    scale = np.abs(found * direction).sum()
    assert_allclose(slope, np.sum(found * direction), rtol=0.03, atol=0.01 * scale)
    assert_array_equal(features.image_gradients(images, values, seen, G, n_jobs=2), found)


def test_threads_change_nothing():
    images = np.concatenate([IMAGES] * 4)
    family = layers(images, 2)
    for one, two in zip(
        gradients(family, images)[2], gradients(family, images, n_jobs=2)[2], strict=True
    ):
        assert_array_equal(one, two)


def test_families_that_do_not_know_their_gradients_on_maps():
    patches = PatchTemplates(2, 6, 2, n_patches=500)
    for inside in (Pixels(), Deslanted(patches)):
        with pytest.raises(InputError, match=r"^family: got '(pixels|deslanted)'.*fine-tuning"):
            LearnedMaps(inside).check_tunable()
    Deslanted(LearnedMaps(patches)).check_tunable()
