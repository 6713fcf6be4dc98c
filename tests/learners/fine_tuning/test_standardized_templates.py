"""Templates of zero mean with gains: the same start, gradients, and what fine-tuning leaves."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from visionshare import CompactClassifier, Network, Templates
from visionshare.learners import FineTuning, fine_tune
from visionshare.learners.fine_tuning.standardized_templates import StandardizedTemplates


@pytest.fixture(scope="module")
def images() -> np.ndarray:
    return np.random.default_rng(0).random((40, 14, 14), np.float32)


@pytest.fixture(scope="module")
def family(images: np.ndarray) -> Network:
    layers = [Templates(3, 3, pool=2, n_patches=800), Templates(5, 3, grid=2, n_patches=800)]
    return Network(layers).fit(images)


def test_features_of_templates_of_zero_mean_stay_the_same(family, images):
    parts = [layer.templates for layer in family.layers_]
    for templates in parts:
        templates -= templates.mean(axis=(1, 2, 3), keepdims=True)
    features = StandardizedTemplates(family.tunable())
    assert_allclose(features.forward(images)[0], family.transform(images), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("position", range(5))
def test_gradients_are_those_of_finite_differences(family, images, position):
    features = StandardizedTemplates(family.tunable())
    rng = np.random.default_rng(position)
    for parameter in features.parameters:
        parameter += 0.2 * rng.standard_normal(parameter.shape).astype(np.float32)
    features.moved()
    values, seen = features.forward(images)
    G = rng.standard_normal(values.shape).astype(np.float32)
    gradient = features.backward(images, values, seen, G)[position]
    direction = rng.standard_normal(gradient.shape).astype(np.float32)
    sums, step = [], 2e-4
    for sign in (1, -1):
        features.parameters[position] += np.float32(sign * step) * direction
        features.moved()
        sums.append(float(np.sum(features.forward(images)[0].astype(np.float64) * G)))
        features.parameters[position] -= np.float32(sign * step) * direction
    found = float(np.sum(gradient * direction))
    assert_allclose((sums[0] - sums[1]) / (2 * step), found, rtol=0.05)


def test_templates_of_a_fine_tuned_classifier_have_zero_mean(family, images):
    y = np.arange(40) % 2
    n = family.n_features_
    before = CompactClassifier(family, np.zeros((2, n)), np.zeros(2), np.array([0, 1]))
    settings = FineTuning(2, 16, 1e-2, head="linear", weight_standardization=True)
    after = fine_tune(before, images, y, settings)
    for layer, first in zip(after.family.layers_, family.layers_, strict=True):
        assert_allclose(layer.templates.mean(axis=(1, 2, 3)), 0, atol=1e-6)
        assert not np.allclose(layer.templates, first.templates)
    assert after.macs == before.macs
