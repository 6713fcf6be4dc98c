"""No family holds much more than its images and its result, however many images there are."""

import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from visionshare import (
    Channels,
    Deslant,
    Features,
    GaborBank,
    Network,
    PatchTemplates,
    Pixels,
    Templates,
)
from visionshare.generators.fourier import RandomFourier
from visionshare.generators.inputs import fit_scaling, rows_of
from visionshare.generators.lazy_images import WORKING_BYTES, ComputedImages, image_batches
from visionshare.generators.lbp import LocalBinaryPatterns
from visionshare.generators.patch_sampling import drawn_patches

MANY = 2000
# Of maps, or of floats of all images, there would be some hundred MB.
FAMILIES = {
    "channels": Network(
        [Channels(("gray", "orientations"), n_orientations=4), Features(LocalBinaryPatterns())]
    ),
    "maps": Network([Templates(8, 3, n_patches=1000), Features(LocalBinaryPatterns())]),
    "templates on maps": Network(
        [
            Templates(2, 3, pool=2, n_patches=1000),
            Features(PatchTemplates(3, 2, 1, (9.0,), n_patches=1000)),
        ]
    ),
    "deslanted": Network([Deslant(), Features(LocalBinaryPatterns())]),
    "gabor": GaborBank(n_filters=2, step=32),
    "fourier": RandomFourier(n_pairs=1),
}


def peak_of(function):
    """Return what NumPy held at most while a function ran, in bytes, and what it returned."""
    tracemalloc.start()
    try:
        result = function()
        return tracemalloc.get_traced_memory()[1], result
    finally:
        tracemalloc.stop()


@pytest.fixture(scope="module")
def images():
    return np.random.default_rng(0).integers(0, 256, (MANY, 64, 64), np.uint8)


@pytest.mark.parametrize("name", FAMILIES)
def test_fitting_and_columns_hold_a_batch_at_a_time(name, images):
    FAMILIES[name].fit(images[:40]).transform_columns(images[:2])
    peak, family = peak_of(lambda: FAMILIES[name].fit(images))
    assert peak < 1.5 * WORKING_BYTES
    peak, columns = peak_of(lambda: family.transform_columns(images))
    assert peak - columns.nbytes < 1.5 * WORKING_BYTES
    assert_array_equal(columns[:, -3:], family.transform_columns(images[-3:]))


def test_filters_of_large_images_are_made_a_few_at_a_time():
    images = np.random.default_rng(0).integers(0, 256, (2, 256, 256), np.uint8)
    family = GaborBank(n_filters=64, step=128, sigmas=(0.7, 1.0)).fit(images)
    peak, columns = peak_of(lambda: family.transform_columns(images))
    assert peak < 1.5 * WORKING_BYTES
    for few in (np.array([3]), np.array([63, 2])):
        assert_array_equal(family.transform_columns(images, few), columns[few])


def test_batches_cover_all_images_once():
    for n, size in ((0, 1), (1, 1), (100, 1 << 20), (100, 1 << 30)):
        batches = list(image_batches(n, size, 64 << 20))
        assert [i for batch in batches for i in range(batch.start, batch.stop)] == list(range(n))
        assert all(batch.stop - batch.start <= max(16, (64 << 20) // size) for batch in batches)


def test_computed_images_are_an_array_where_one_is_asked_for():
    asked = []

    def half(some):
        asked.append(len(some))
        return some / np.float32(2)

    images = np.random.default_rng(0).integers(0, 256, (50, 3, 4), np.uint8)
    computed = ComputedImages(images, half, (3, 4), np.float32)
    assert (computed.shape, computed.ndim, len(computed)) == ((50, 3, 4), 3, 50)
    assert_array_equal(computed[[3, 7]], images[[3, 7]] / np.float32(2))
    assert asked == [2]
    assert_array_equal(np.asarray(computed), images / np.float32(2))
    assert computed.raster()[:2].shape == (2, 3, 4, 1)
    assert_array_equal(np.asarray(computed, np.float64), images / 2)


@pytest.mark.parametrize("family", [Pixels(), PatchTemplates(3, 5, 2, (2.0,), n_patches=3000)])
def test_families_learn_the_same_from_computed_images(family):
    images = np.random.default_rng(0).random((90, 9, 9), np.float32)
    computed = ComputedImages(images, lambda some: some, (9, 9), np.float32)
    expected = family.fit(images).to_state()[1]
    for name, array in family.fit(computed).to_state()[1].items():
        assert_array_equal(array, expected[name])


def test_patches_are_those_of_the_padded_images():
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (30, 5, 6, 2), np.uint8)
    which = np.sort(rng.integers(30, size=200))
    ys, xs = rng.integers(4, size=200), rng.integers(7, size=200)
    padded = np.pad(images, ((0, 0), (1, 1), (2, 2), (0, 0))).astype(np.float32)
    expected = np.stack([
        padded[i, y : y + 4, x : x + 4] * np.float32(1 / 255)
        for i, y, x in zip(which, ys, xs, strict=True)
    ])  # fmt: skip
    for budget in (1, 1000, 1 << 20):
        patches = drawn_patches(images, which, (ys, xs), 4, (1, 2), budget)
        assert_array_equal(patches, expected)


def test_scaling_is_that_of_all_inputs_at_once():
    X = np.random.default_rng(0).integers(0, 256, (2000, 3000), np.uint8)
    X[:, 7] = 3
    values = rows_of(X)
    offset, scale = fit_scaling(X, "unit_variance")
    assert_array_equal(offset, values.mean(axis=0).astype(np.float32))
    deviation = values.std(axis=0)
    deviation[7] = np.inf
    assert_array_equal(scale, (1 / deviation).astype(np.float32))
