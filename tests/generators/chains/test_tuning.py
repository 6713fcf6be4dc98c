"""Gradients of chains, against differences and loops."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from visionshare import Chains, LearnedMaps

IMAGES = np.random.default_rng(0).integers(0, 256, (40, 15, 13, 2), np.uint8)
FLOATS = (IMAGES / 255).astype(np.float32)
IDS = np.array([3, 22, 0, 17, 9, 2, 31])


def chains(images, layers, grid=2):
    """Return a few features of chains whose biases are not zero."""
    sizes, pools = ((3, 2), (2, 2)) if layers == 2 else ((3, 2, 2), (1, 2, 1))
    family = Chains(9, sizes, pools, n_first=3, n_second=5, grid=grid, n_patches=800)
    family = family.fit(images).take(IDS)
    draw = np.random.default_rng(5)
    return family.of([
        own.of(own.templates, draw.normal(size=len(own.biases)) / 10) for own in family.layers_
    ])  # fmt: skip


def gradients(family, images, n_jobs=1):
    """Return the tunable features, derivatives in them, and the gradients in all parameters."""
    features = family.tunable()
    values, seen = features.forward(images, n_jobs)
    # All of one sign: gradients that cancel would be small beside what kinks add to differences.
    G = np.random.default_rng(1).random(size=values.shape)
    return features, G, features.backward(images, values, seen, G, n_jobs)


@pytest.mark.parametrize("layers", [2, 3])
def test_features_that_move_are_the_same_features(layers):
    family = chains(IMAGES, layers)
    features = family.tunable()
    values, _ = features.forward(IMAGES)
    assert_allclose(values, family.transform(IMAGES), rtol=1e-5)
    for templates, biases in zip(features.parameters[::2], features.parameters[1::2], strict=True):
        templates *= 1.2
        biases += 0.1
    features.moved()
    moved = features.family()
    assert_array_equal(moved.transform(IMAGES), features.forward(IMAGES)[0])
    assert not np.allclose(moved.transform(IMAGES), values)
    assert moved.macs() == family.macs()
    assert_allclose(family.transform(IMAGES), values, rtol=1e-5)
    # What was taken stays as it is.
    before = moved.transform(IMAGES)
    for parameter in features.parameters:
        parameter *= 2
    features.moved()
    assert_array_equal(moved.transform(IMAGES), before)


@pytest.mark.parametrize("images", [IMAGES, FLOATS], ids=["bytes", "floats"])
@pytest.mark.parametrize("layers", [2, 3])
def test_gradients_are_those_of_differences(layers, images):
    features, G, found = gradients(chains(images, layers), images)
    assert len(found) == 2 * layers
    for number, gradient in enumerate(found):
        parameter = features.parameters[number]
        assert gradient.shape == parameter.shape
        direction = np.random.default_rng(2).normal(size=gradient.shape)
        start, step = parameter.copy(), 3e-4

        def value(by, parameter=parameter, start=start, direction=direction):
            parameter[...] = start + by * direction
            features.moved()
            return float(np.sum(G * features.forward(images)[0].astype(np.float64)))

        slope = (value(step) - value(-step)) / (2 * step)
        parameter[...] = start
        # Where another position becomes the maximum there is no derivative.
        scale = np.abs(gradient * direction).sum()
        assert_allclose(slope, np.sum(gradient * direction), rtol=0.02, atol=0.01 * scale)


@pytest.mark.parametrize("layers", [2, 3])
def test_gradients_in_images_are_those_of_differences(layers):
    images = FLOATS[:12]
    features = chains(images, layers).tunable()
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
    assert_allclose(slope, np.sum(found * direction), rtol=0.02, atol=0.01 * scale)
    assert_array_equal(features.image_gradients(images, values, seen, G, n_jobs=2), found)


def gradients_by_loops(family, images, G):
    """Return the gradients in all templates and biases, through the maximum of every feature."""
    x = images.astype(np.float64) / 255
    templates = [np.zeros(own.templates.shape) for own in family.layers_]
    biases = [np.zeros(len(own.biases)) for own in family.layers_]

    def follow(i, level, number, y, x_, g):
        """Add the gradient of the response at a position of one map, and of those below it."""
        own = family.layers_[level]
        q = own.templates.shape[1]
        biases[level][number] += g
        for dy, dx in np.ndindex(q, q):
            if level == 0:
                templates[0][number, dy, dx] += g * x[i, y + dy, x_ + dx]
            else:
                below, at = largest(i, level - 1, own.parents[number], y + dy, x_ + dx)
                templates[level][number, dy, dx, 0] += g * max(below, 0)
                if below > 0:
                    part = g * float(own.templates[number, dy, dx, 0])
                    follow(i, level - 1, own.parents[number], *at, part)

    def largest(i, level, number, row, col):
        """Return a map's value in a cell, and the position of its maximum."""
        pool = family.layers_[level].pool
        at = [(row * pool + dy, col * pool + dx) for dy, dx in np.ndindex(pool, pool)]
        values = [response(i, level, number, *place) for place in at]
        return max(values), at[int(np.argmax(values))]

    def response(i, level, number, y, x_):
        own = family.layers_[level]
        q = own.templates.shape[1]
        if level == 0:
            seen = x[i, y : y + q, x_ : x_ + q]
        else:
            seen = np.array([
                [max(0, largest(i, level - 1, own.parents[number], y + dy, x_ + dx)[0])]
                for dy, dx in np.ndindex(q, q)
            ]).reshape(q, q, 1)  # fmt: skip
        return float(np.sum(seen * own.templates[number]) + own.biases[number])

    positions = family.values_and_positions(images)[1]
    width = family.map_shapes[-1][1] * family.layers_[-1].pool
    for i, f in np.ndindex(positions.shape):
        if positions[i, f] >= 0:
            y, x_ = divmod(int(positions[i, f]), width)
            follow(i, len(family.layers_) - 1, family.layout_[f, 0], y, x_, G[i, f])
    return [part for pair in zip(templates, biases, strict=True) for part in pair]


@pytest.mark.parametrize("layers", [2, 3])
def test_gradients_are_those_of_loops(layers):
    family, images = chains(IMAGES, layers), IMAGES[:3]
    features, G, found = gradients(family, images)
    G = G.astype(np.float32)
    for number, (gradient, wanted) in enumerate(
        zip(found, gradients_by_loops(features.family(), images, G), strict=True)
    ):
        if number % 2 == 0:
            own = family.layers_[number // 2].templates
            wanted = wanted * np.sqrt(np.mean(np.square(own), axis=(1, 2, 3), keepdims=True))
        assert_allclose(gradient, wanted, rtol=1e-3, atol=1e-4)


def test_a_feature_that_is_there_twice_moves_with_both():
    family = chains(IMAGES, 2).take([1, 0, 1])
    features = family.tunable()
    values, seen = features.forward(IMAGES)
    G = np.random.default_rng(1).normal(size=values.shape)
    found = features.backward(IMAGES, values, seen, G)
    once = family.take([0, 1]).tunable()
    values, seen = once.forward(IMAGES)
    both = np.stack([G[:, 0] + G[:, 2], G[:, 1]], axis=1)
    for one, two in zip(once.backward(IMAGES, values, seen, both), found, strict=True):
        assert_allclose(one, two, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("layers", [2, 3])
def test_threads_change_nothing(layers):
    images = np.concatenate([IMAGES] * 4)
    family = chains(images, layers)
    for one, two in zip(
        gradients(family, images)[2], gradients(family, images, n_jobs=2)[2], strict=True
    ):
        assert_array_equal(one, two)


def test_chains_on_maps_move_with_the_maps():
    inside = Chains(6, (2, 2), (1, 1), n_first=2, n_patches=500)
    family = LearnedMaps(inside, 3, 3, n_patches=500).fit(IMAGES).take(IDS[:3] % 24)
    features, G, found = gradients(family, IMAGES)
    assert len(found) == 6
    # Along the gradient: across it the slope would be small beside what kinks add to differences.
    parameter, direction = features.parameters[0], found[0] / np.linalg.norm(found[0])
    start, step = parameter.copy(), 1e-3
    values = []
    for by in (step, -step):
        parameter[...] = start + by * direction
        features.moved()
        values.append(float(np.sum(G * features.forward(IMAGES)[0])))
    expected = np.sum(found[0] * direction)
    assert_allclose((values[0] - values[1]) / (2 * step), expected, rtol=0.03)
