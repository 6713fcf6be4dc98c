"""Contributions and boxes of every family, against the features themselves."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from tests.generators.examples import family_examples
from visionshare import (
    Deslant,
    Features,
    GaborBank,
    Monomials,
    Network,
    PatchTemplates,
    Pixels,
    Products,
    Templates,
    Units,
)
from visionshare.generators import family_names
from visionshare.generators.contributions import whole_boxes

EXAMPLES = {label: make for name in family_names() for label, make in family_examples(name).items()}
rng = np.random.default_rng(0)
IMAGES = rng.integers(0, 256, (40, 10, 9), np.uint8)
# Maxima, and values of pixels, of what lies in the box alone.
LOCAL = {
    "patches": PatchTemplates(3, 6, 2, (2.0,), n_patches=500),
    "cells": Network([Templates(6, 3, grid=2, padding=2, n_patches=500)]),
    "padded": PatchTemplates(3, 6, 2, (2.0,), padding=4, n_patches=500),
    "maps": Network(
        [
            Templates(3, 3, pool=2, padding=1, n_patches=500),
            Templates(5, 2, grid=2, padding=2, n_patches=500),
        ]
    ),
    "pixels": Pixels(),
    "gabor": GaborBank(6, pooling="max", sigmas=(1.0, 1.2), step=1),
}


@pytest.mark.parametrize("label", LOCAL)
def test_a_feature_is_in_its_box(label):
    family = LOCAL[label].fit(IMAGES)
    narrow = 0
    for image in IMAGES[:4]:
        image = image.astype(np.float32) / 255
        values = family.transform(image[None])[0]
        for j, box in enumerate(family.boxes(image)):
            top, bottom, left, right = box.astype(int)
            alone = np.zeros_like(image)
            alone[top:bottom, left:right] = image[top:bottom, left:right]
            # What is around the box may only have made the response elsewhere less.
            assert family.transform(alone[None], np.array([j]))[0, 0] >= values[j] - 1e-4
            narrow += (bottom - top) * (right - left) < image.size
    assert narrow > 2 * family.n_features_


@pytest.mark.parametrize("label", EXAMPLES)
def test_boxes_and_parts_of_floats_are_those_of_bytes(label):
    family = EXAMPLES[label]().fit(IMAGES[:, :8, :8])
    weights = rng.normal(size=(2, family.n_features_))
    first = family.contributions(IMAGES[0, :8, :8], weights)
    same = family.contributions(IMAGES[0, :8, :8].astype(np.float32) / 255, weights)
    assert_allclose(first.values, same.values, rtol=1e-2, atol=1e-2)
    assert first.families == same.families


def test_a_shear_moves_boxes():
    leaning = np.zeros((1, 8, 8), np.uint8)
    leaning[0, np.arange(8), 7 - np.arange(8)] = 255
    family = Network([Deslant(), Features(Pixels())]).fit(leaning)
    values, boxes = family.transform(leaning)[0], family.boxes(leaning[0])
    for j in np.flatnonzero(values > 0.5):
        top, bottom, left, right = boxes[j].astype(int)
        assert leaning[0, top:bottom, left:right].max() == 255
    assert (boxes[:, 3] - boxes[:, 2] <= 3).all()


def test_factors_share_products_equally():
    image = np.array([[2.0, 3.0], [5.0, 7.0]])
    family = Monomials(Pixels(), [(0,), (1, 2), (1, 1, 3)]).fit(image[None])
    parts = family.contributions(image, np.array([[1.0, 10.0, 100.0]]))
    assert parts.numbers.tolist() == [1, 2, 3, 4]
    # 2; half of 150 and two thirds of 6300; half of 150; a third of 6300.
    assert_allclose(parts.amounts, [[2.0, 75.0 + 4200.0, 75.0, 2100.0]])
    assert parts.boxes[3].tolist() == [1, 2, 1, 2]


def test_inputs_share_products_equally():
    family = Products(scaling="none").fit(np.array([[2.0, 3.0]]))
    assert family.pairs_.tolist() == [[0, -1], [1, -1], [0, 0], [0, 1], [1, 1]]
    parts = family.contributions(np.array([2.0, 3.0]), np.array([[1.0, 0.0, 1.0, 1.0, 0.0]]))
    assert_allclose(parts.amounts, [[2.0 + 4.0 + 3.0, 3.0]])


@pytest.mark.parametrize("activation", ["relu", "square"])
def test_units_hand_on_what_they_add(activation):
    images = rng.random((30, 3, 3))
    family = Network([Features(Pixels()), Units(5, activation)]).fit(images)
    units = family.layers_[-1]
    image, weights = images[0], rng.normal(size=(2, 5))
    inputs = image.ravel()
    sums = units.directions @ inputs + units.offsets
    slopes = np.where(sums > 0, 1, 0) if activation == "relu" else sums
    parts = family.contributions(image, weights)
    for i in range(9):
        expected = weights @ (slopes * units.directions[:, i] * inputs[i])
        assert_allclose(parts.amounts[:, i], expected, atol=1e-5)
    assert_allclose(parts.rest, weights @ (slopes * units.offsets), atol=1e-5)


def test_vectors_have_one_row():
    family = Pixels().fit(np.eye(3))
    assert family.boxes(np.eye(3)[0]).tolist() == [[0, 1, i, i + 1] for i in range(3)]
    assert whole_boxes(2, (3,)).tolist() == [[0, 1, 0, 3]] * 2
