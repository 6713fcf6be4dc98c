"""Structures, what they cost, and random ones."""

from itertools import islice

import numpy as np
import pytest

from visionshare import Deslant, Templates
from visionshare.datasets import ImageSet
from visionshare.image_classifier.proposals import Data, Proposal
from visionshare.image_classifier.structure import (
    Cost,
    MapLayer,
    Structure,
    cost_of,
    random_structures,
)
from visionshare.recipes import train_images
from visionshare.recipes.pools import read_pool
from visionshare.recipes.schema import FeaturePart

LAYERS = {
    "none": (),
    "one": (MapLayer(3, 3, 2),),
    "two": (MapLayer(2, 3, 1), MapLayer(3, 2, 2)),
}


@pytest.mark.parametrize(
    ("layers", "head", "raster", "deslanted", "channels", "variant"),
    [
        ("none", "linear", (11, 10, 1), False, (), ""),
        ("one", "hidden", (11, 10, 1), True, (), ""),
        ("one", "linear", (11, 10, 3), False, ("opponent", "orientations"), "residual"),
        ("two", "low-rank", (11, 10, 1), False, (), ""),
        ("two", "hidden", (13, 12, 1), False, (), "depthwise"),
        ("two", "linear", (13, 11, 3), False, (), "strided"),
        ("two", "hidden", (11, 10, 1), True, (), "means"),
    ],
)
def test_the_cost_is_that_of_the_classifier(layers, head, raster, deslanted, channels, variant):
    units = 0 if head == "linear" else 4
    structure = Structure(LAYERS[layers], 2, 5, 2, head, units, deslanted, channels, variant)
    assert structure.fits(raster)
    shape = raster if raster[2] > 1 else raster[:2]
    pixels = np.random.default_rng(0).integers(0, 256, (40, *shape), np.uint8)
    images = ImageSet(pixels, np.arange(40) % 3, list("abc"), "noise")
    recipe = Proposal(structure).recipe(Data(raster, 40, 3, False), epochs=1)
    classifier = train_images(recipe, images)
    assert cost_of(structure, raster, 3) == Cost(classifier.macs, classifier.nbytes)
    assert str(structure).startswith("+".join(channels))


def test_colors_need_images_of_colors_and_no_slant_is_taken_out_of_channels():
    assert not Structure((), 3, 4, 2, channels=("rgb",)).fits((9, 9, 1))
    assert Structure((), 3, 4, 2, channels=("gray",)).fits((9, 9, 1))
    assert not Structure((), 3, 4, 2, deslanted=True, channels=("gray",)).fits((9, 9, 1))


def test_structures_that_images_are_too_small_for():
    # Layers of maps have variants; means need one position.
    assert not Structure((), 3, 4, 2, variant="residual").fits((9, 9, 1))
    assert Structure((), 9, 4, 2, variant="means").fits((9, 9, 1))
    assert Structure((), 8, 1, 1).fits((8, 9, 1))
    assert not Structure((), 9, 1, 1).fits((8, 9, 1))
    # A cell without a position of its own is none.
    assert Structure((), 6, 1, 3).fits((8, 9, 1))
    assert not Structure((), 6, 1, 4).fits((8, 9, 1))
    assert not Structure((MapLayer(2, 3, 3), MapLayer(2, 3, 3)), 1, 1, 1).fits((8, 9, 1))


def test_random_structures_depend_on_the_seed_alone():
    first, again, other = (list(islice(random_structures(seed), 30)) for seed in (4, 4, 5))
    assert first == again != other
    assert {len(structure.layers) for structure in first} == {0, 1, 2}
    assert {structure.head for structure in first} == {"linear", "hidden", "low-rank"}


@pytest.mark.parametrize(("n", "deslanted"), [(n, d) for n in range(3) for d in (False, True)])
def test_every_layering_has_a_pool(n, deslanted):
    maps = tuple(MapLayer(3 + i, 2, 1) for i in range(n))
    structure = Structure(maps, 4, 10, 2, deslanted=deslanted)
    family = read_pool(FeaturePart(**structure.features(2, 2000)), 0)
    expected = [Deslant()] if deslanted else []
    expected += [Templates(layer.n_maps, layer.size, pool=1, n_patches=2000) for layer in maps]
    expected.append(Templates(20, 4, grid=2, n_patches=2000))
    assert repr(family.layers) == repr(expected)
