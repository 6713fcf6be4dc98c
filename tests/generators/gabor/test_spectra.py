"""Responses by way of the frequency domain: those of products of matrices, at any batch."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from visionshare import GaborBank
from visionshare.generators.gabor.spectra import prefers_spectra
from visionshare.generators.gabor.tuning import tunable
from visionshare.testing import check_family

rng = np.random.default_rng(0)
IMAGES = rng.integers(0, 256, (5, 50, 61), np.uint8)


def by_products(family, images):
    """Return features (n_images, n_features_) that never see the frequency domain."""
    out = np.empty((family.n_features_, len(images)), np.float32)
    ids = np.arange(family.n_features_)
    for filters, axes in family._by_positions(family._reach(ids)):
        family._by_products(images[..., None], ids[filters], axes, 1, out, filters)
    return out.T


@pytest.mark.parametrize("pooling", ["sum", "mean", "max"])
@pytest.mark.parametrize("step", [1, 2, 3])
@pytest.mark.parametrize("border", ["cut", "inside"])
def test_responses_are_those_of_products(pooling, step, border):
    options = {"border": border, "zero_mean": border == "inside", "phases": True}
    family = GaborBank(12, pooling=pooling, step=step, **options).fit(IMAGES)
    ids = np.arange(12)
    reach = family._reach(ids)
    axes = next(axes for _, axes in family._by_positions(reach))
    assert prefers_spectra(axes, 61, reach).any()
    expected = by_products(family, IMAGES)
    assert_allclose(family.transform(IMAGES), expected, rtol=0, atol=1e-5 * expected.max())


def test_filters_that_reach_beyond_the_image():
    family = GaborBank(6, sigmas=(30.0, 40.0), step=1).fit(IMAGES)
    expected = by_products(family, IMAGES)
    assert_allclose(family.transform(IMAGES), expected, rtol=0, atol=1e-5 * expected.max())


def test_lines_have_spectra_too():
    lines = rng.random((6, 5000))
    family = GaborBank(7, step=3).fit(lines)
    expected = by_products(family, lines.astype(np.float32)[:, None])
    assert_allclose(family.transform(lines), expected, rtol=0, atol=1e-5 * expected.max())


def test_bits_depend_on_nothing_else():
    family = GaborBank(20, step=2).fit(IMAGES)
    whole = family.transform_columns(IMAGES)
    some = np.array([17, 3, 4])
    assert_array_equal(family.transform_columns(IMAGES[2:4], some, n_jobs=2), whole[some, 2:4])
    assert_array_equal(family.take(some).transform(IMAGES[4:]).T, whole[some, 4:])


def test_every_rule_of_a_family():
    check_family(GaborBank(9, pooling="mean", step=2), rng.random((6, 48, 50, 3), np.float32))


@pytest.mark.parametrize("pooling", ["sum", "mean", "max"])
@pytest.mark.parametrize("border", ["cut", "inside"])
def test_gradients_are_those_of_products(pooling, border, monkeypatch):
    options = {"border": border, "zero_mean": border == "inside", "phases": True}
    family = GaborBank(5, pooling=pooling, step=2, **options).fit(IMAGES)
    features = tunable(family)
    values, seen = features.forward(IMAGES)
    G = rng.normal(size=values.shape)
    (found,) = features.backward(IMAGES, values, seen, G)
    monkeypatch.setattr("visionshare.generators.gabor.spectra._WORTH_IT", 1 << 62)
    (expected,) = features.backward(IMAGES, values, seen, G)
    assert_allclose(found, expected, rtol=1e-3, atol=1e-3 * np.abs(expected).max())
