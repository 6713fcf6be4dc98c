"""Budgets of flash: what is learned fits, in whole numbers."""

import numpy as np
import pytest

from visionshare import ImageClassifier
from visionshare.datasets import ImageSet, load_dataset
from visionshare.errors import BudgetError, InputError
from visionshare.export.targets import flash, flash_bytes
from visionshare.generators.layers.integers.numbers import Bits
from visionshare.image_classifier.budget import Budget
from visionshare.image_classifier.proposals import Data, Proposal, structures, widest
from visionshare.image_classifier.structure import flash_of
from visionshare.recipes import train_images
from visionshare.recipes.reading import parse_recipe

RASTERS = [(8, 8, 1), (28, 28, 1), (32, 32, 3)]
BITS = Bits(4, 4)
DATA = Data((9, 9, 1), 50, 2, False)


def test_sizes_are_text_or_numbers():
    assert Budget.of({"flash": "10KiB"}).flash == Budget.of({"flash": 10_240}).flash == 10_240
    assert Budget.of({"bytes": "64KiB"}).nbytes == 65_536
    for budget in ({"flash": 0}, {"flash": "ten"}, {"macs": "10KiB"}, {"flash": True}):
        with pytest.raises(InputError, match="budget"):
            Budget.of(budget)


@pytest.mark.parametrize("raster", RASTERS)
@pytest.mark.parametrize("size", [4096, 10_240])
def test_structures_fit_into_flash_and_use_it(raster, size):
    data, budget = Data(raster, 100, 10, False), Budget(flash=size)
    found = [flash_of(s, raster, 10, BITS) for s in structures(data, budget, BITS)]
    assert len(found) == 3
    assert 0.5 * size < max(found) <= size
    two, eight = (widest(data, budget, 1, Bits(bits, 4)) for bits in (2, 8))
    assert eight.layers[0].n_maps <= two.layers[0].n_maps


def test_much_flash_is_used_too():
    raster, budget, bits = (32, 32, 3), Budget.of({"flash": "48KiB"}), Bits(8, 4)
    found = widest(Data(raster, 100, 10, False), budget, 2, bits, head="hidden", n_units=32)
    assert 0.8 * 49_152 < flash_of(found, raster, 10, bits) <= 49_152


def test_digits_fit_into_three_kilobytes(tmp_path):
    training = load_dataset("digits", "train")
    model = ImageClassifier(budget={"flash": "3KiB"}, time=6, n_jobs=1)
    model.fit(training.images[:300], training.labels[:300])
    assert flash_bytes(model.classifier_) <= 3072
    assert parse_recipe(model.recipe_).quantization.max_flash == 3072
    test = load_dataset("digits", "test")
    assert model.score(test.images, test.labels) > 0.6
    scores = model.classifier_.decision_function(test.images)
    np.testing.assert_array_equal(scores, np.rint(scores))
    # Integers are exported as they are, with images to calibrate by and without.
    model.export(tmp_path / "given")
    model.export(tmp_path / "calibrated", calibrate=training.images[:20])
    programs = [(tmp_path / d / "classifier.c").read_text() for d in ("given", "calibrated")]
    assert programs[0] == programs[1]


def test_what_cannot_fit_is_refused(pictures):
    with pytest.raises(InputError, match="budget"):
        ImageClassifier(budget={"flash": 500}, n_jobs=1).fit(*pictures)
    with pytest.raises(InputError, match="features"):
        ImageClassifier("channels", budget={"flash": "10KiB"}, n_jobs=1).fit(*pictures)
    with pytest.raises(InputError, match="vectors"):
        ImageClassifier(budget={"flash": "10KiB"}, n_jobs=1).fit(np.eye(20), np.arange(20) % 2)


def _recipe(n, max_flash, raster=(9, 9, 1)):
    data = Data(raster, n, 2, False)
    structure = widest(data, Budget(flash=3000), 1, BITS)
    return Proposal(structure, bits=BITS).recipe(data, epochs=2, max_flash=max_flash)


def test_a_recipe_leaves_rounds_out_until_it_fits(pictures, monkeypatch):
    images, labels = pictures
    training = ImageSet(images, np.unique(labels, return_inverse=True)[1], ("a", "b"), "bars")
    whole = train_images(_recipe(len(images), None), training)
    size = flash_bytes(whole)
    less = train_images(_recipe(len(images), size - 100), training)
    assert flash_bytes(less) <= size - 100
    assert less.n_features < whole.n_features
    with pytest.raises(BudgetError, match="single round"):
        train_images(_recipe(len(images), 900), training)
    # Where the compiler makes more of it than was estimated.
    pytest.importorskip("ziglang", reason="visionshare[edge] is not installed")
    monkeypatch.setattr(flash, "_CODE", -2000)
    with pytest.raises(BudgetError, match="flash is"):
        train_images(_recipe(len(images), size - 100), training)


def test_members_have_no_flash():
    with pytest.raises(ValueError, match="max_flash"):
        Proposal(widest(DATA, Budget(), 1), bits=BITS, members=2).recipe(
            DATA, epochs=2, max_flash=9000
        )
