"""Structures as wide as the limits allow, and their recipes."""

import numpy as np
import pytest

from visionshare.datasets import ImageSet
from visionshare.image_classifier import augmenting
from visionshare.image_classifier.budget import Budget
from visionshare.image_classifier.proposals import (
    Data,
    Greedy,
    Proposal,
    are_glyphs,
    structures,
    widest,
)
from visionshare.image_classifier.structure import cost_of
from visionshare.recipes import train_images

RASTERS = [(8, 8, 1), (16, 12, 1), (28, 28, 1), (32, 32, 3), (48, 48, 1), (40, 48, 3)]


def _data(raster):
    return Data(raster, 100, 10, False)


@pytest.mark.parametrize("raster", RASTERS)
@pytest.mark.parametrize("budget", [Budget(20_000), Budget(1_000_000), Budget(None, 30_000)])
def test_structures_fit_images_and_budget(raster, budget):
    for structure in structures(_data(raster), budget):
        assert structure.fits(raster)
        cost = cost_of(structure, raster, 10)
        assert budget.macs is None or cost.macs <= budget.macs
        assert budget.nbytes is None or cost.nbytes <= budget.nbytes


@pytest.mark.parametrize("raster", RASTERS)
def test_a_usual_budget_has_three_layers(raster):
    assert [len(s.layers) for s in structures(_data(raster), Budget())][:2] == [2, 1]


def test_more_is_wider():
    data = _data((28, 28, 1))
    some, more = (widest(data, Budget(macs), 2) for macs in (50_000, 500_000))
    assert some.layers[0].n_maps < more.layers[0].n_maps
    assert str(widest(data, Budget(200_000), 2)).startswith("7 maps 3x3/2, 14 maps 3x3/2, 42 temp")
    assert widest(data, Budget(10), 2) is None
    assert widest(_data((3, 3, 1)), Budget(), 0) is None


@pytest.mark.parametrize("head", ["linear", "hidden"])
def test_means_keep_within_bytes(pictures, head):
    """Also the bytes that say of each feature which member has it."""
    images, names = pictures
    training = ImageSet(images, np.unique(names, return_inverse=True)[1], ("a", "b"), "bars")
    data, budget = Data.of(training), Budget(None, 12_000)
    units = {} if head == "linear" else {"head": head, "n_units": 4}
    structure = widest(data, budget, 1, members=3, **units)
    mean = train_images(Proposal(structure, members=3).recipe(data, epochs=1), training)
    cost = cost_of(structure, data.raster, 2, members=3)
    assert 0.95 * cost.nbytes < mean.nbytes <= cost.nbytes <= budget.nbytes
    assert mean.macs == cost.macs


def test_recipes_say_what_is_trained():
    data = Data((28, 28, 1), 5000, 10, True)
    structure = widest(data, Budget(100_000), 2)
    copies, words = augmenting.deformed(data)
    proposal = Proposal(structure, copies, words, members=2)
    recipe = proposal.recipe(data, epochs=7, seed=3, class_weight="balanced")
    assert (recipe.seed, recipe.members, recipe.fine_tuning.epochs) == (3, 2, 7)
    assert recipe.deformations.build() == copies
    assert recipe.fine_tuning.class_weight == recipe.learner.class_weight == "balanced"
    greedy = Proposal(Greedy("lbp", 9, {"grid": 2})).recipe(data, epochs=7)
    assert greedy.fine_tuning is None
    assert (greedy.features.pool, greedy.learner.rounds) == ("lbp", 9)


def test_few_images_have_small_steps_and_many_epochs():
    few, many = Data((8, 8, 1), 100, 10, True), Data((8, 8, 1), 50_000, 10, True)
    assert few.batch < many.batch
    assert few.epochs > many.epochs >= 30


def test_augmentation_is_in_proportion_to_the_images():
    small, large = (Data((side, side, 1), 100, 2, True) for side in (8, 48))
    assert augmenting.shifted(small)[0].shift == 1
    assert augmenting.shifted(large)[0].shift == 4
    assert augmenting.deformed(large)[0].alpha > 0
    assert augmenting.deformed(small)[0].alpha == 0
    copies, words = augmenting.mirrored(*augmenting.shifted(large))
    assert (copies.flip, words) == (0.5, "shifts, mirrors")
    assert augmenting.colored(copies, words)[0].recolors


def test_glyphs_are_known():
    rng = np.random.default_rng(0)
    noise = rng.integers(0, 256, (20, 12, 12), np.uint8)
    ink = np.pad(noise[:, 2:-2, 2:-2], ((0, 0), (2, 2), (2, 2)))
    assert are_glyphs(ink)
    assert are_glyphs(255 - ink)
    assert not are_glyphs(noise)
    assert not are_glyphs(np.zeros((5, 8, 8, 3), np.uint8))
