"""Copies of one image are held out together."""

import shutil

import numpy as np
import pytest
from PIL import Image

from visionshare import ImageClassifier, Pixels, compare
from visionshare.datasets import ImageSet
from visionshare.datasets.sampling import stratified_mask
from visionshare.errors import InputError
from visionshare.image_classifier.copies import held_out_mask, parts_of

OPTIONS = {"features": Pixels(), "n_jobs": 1}


@pytest.fixture(scope="module")
def copied():
    """Return five copies of each of 40 images of noise, and labels that these do not tell."""
    rng = np.random.default_rng(0)
    images, labels = rng.integers(0, 256, (40, 8, 8), np.uint8), rng.integers(0, 2, 40)
    order = rng.permutation(200)
    return np.repeat(images, 5, axis=0)[order], np.repeat(labels, 5)[order]


def test_copies_do_not_tell_labels(copied):
    model = ImageClassifier(budget=5000, **OPTIONS).fit(*copied)
    assert model.validation_error_ >= 0.25
    assert compare(*copied, (5000,), **OPTIONS).errors[0] >= 0.25


def test_no_part_has_a_copy_of_the_other(copied):
    images, labels = copied
    parts = parts_of(ImageSet(images, labels, ("a", "b"), "noise"), 0)
    learning = {image.tobytes() for image in images[parts.learning]}
    held_out = {image.tobytes() for image in images[parts.compared]}
    assert learning
    assert held_out
    assert not learning & held_out


def test_without_copies_the_parts_are_those_of_the_labels():
    rng = np.random.default_rng(2)
    images, labels = rng.random((90, 3, 3)), rng.permutation(90) % 4
    for seed in range(3):
        expected = stratified_mask(labels, 0.25, seed)
        for given in (images, list(images), images.reshape(90, 9)):
            assert np.array_equal(held_out_mask(given, labels, 0.25, seed), expected)


def test_copies_of_files_are_known(tmp_path):
    paths = []
    for i in range(8):
        Image.fromarray(np.full((4, 4), i, np.uint8)).save(tmp_path / f"{i}.png")
        shutil.copy(tmp_path / f"{i}.png", tmp_path / f"copy {i}.png")
        paths += [tmp_path / f"{i}.png", str(tmp_path / f"copy {i}.png")]
    mask = held_out_mask(paths, np.zeros(16), 0.25, 0)
    assert mask.sum() == 4
    assert np.array_equal(mask[::2], mask[1::2])
    assert held_out_mask(["no such file"] * 2, np.zeros(2), 0.5, 0).sum() in (0, 2)
    with pytest.raises(InputError, match="y: got 3"):
        held_out_mask(paths, np.zeros(3), 0.25, 0)
