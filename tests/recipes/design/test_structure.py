"""Structures, what they cost, their proposals, and recipes of them."""

import numpy as np
import pytest

from visionshare import Deslant, Templates
from visionshare.datasets import ImageSet
from visionshare.errors import InputError, RecipeError
from visionshare.recipes import Budget, load_recipe
from visionshare.recipes.design.cost import Cost, cost_of
from visionshare.recipes.design.proposals import Proposals, draw_structure
from visionshare.recipes.design.settings import Design
from visionshare.recipes.design.structure import MapLayer, Structure
from visionshare.recipes.design.writing import check_base, recipe_of, toml_text
from visionshare.recipes.run import Run
from visionshare.recipes.stages.images import RunImages
from visionshare.recipes.stages.members import choose_features
from visionshare.recipes.stages.tuning import fine_tuned

LAYERS = {
    "none": (),
    "one": (MapLayer(3, 3, 2),),
    "two": (MapLayer(2, 3, 1), MapLayer(3, 2, 2)),
}
FEW = Design(templates_per_round=1, n_patches=2000)


@pytest.mark.parametrize(
    ("layers", "head", "channels", "deslanted"),
    [
        ("none", "linear", 1, False),
        ("none", "products", 3, False),
        ("one", "hidden", 1, True),
        ("one", "linear", 3, False),
        ("two", "low-rank", 1, False),
        ("two", "products", 1, True),
    ],
)
def test_the_cost_is_that_of_the_classifier(layers, head, channels, deslanted, tmp_path):
    units = 4 if head in ("hidden", "low-rank") else 0
    structure = Structure(LAYERS[layers], 2, 5, 2, head, units, deslanted)
    raster = (11, 10, channels)
    most = 9 if layers == "two" else None
    rng = np.random.default_rng(0)
    shape = raster if channels > 1 else raster[:2]
    pixels = rng.integers(0, 256, (40, *shape), np.uint8)
    images = ImageSet(pixels, np.arange(40) % 3, list("abc"), "noise")
    settings = ["fine_tuning.epochs=2", "store.where=memory"]
    settings += [] if most is None else [f"fine_tuning.max_products={most}"]
    recipe = recipe_of(load_recipe("digits", settings), structure, FEW)
    run, of_run = Run(recipe, tmp_path), RunImages(images, images, 40)
    classifier = fine_tuned(run, choose_features(run, of_run), of_run)

    cost = cost_of(structure, raster, 3, most)
    assert cost == Cost(classifier.macs, classifier.n_parameters, classifier.nbytes)


def test_the_cost_with_channels_is_that_of_the_classifier(tmp_path):
    names = ("opponent", "orientations")
    structure = Structure(LAYERS["one"], 2, 5, 2, "linear", 0, False, names)
    pixels = np.random.default_rng(0).integers(0, 256, (40, 11, 10, 3), np.uint8)
    images = ImageSet(pixels, np.arange(40) % 3, list("abc"), "noise")
    settings = ["fine_tuning.epochs=1", "store.where=memory"]
    recipe = recipe_of(load_recipe("digits", settings), structure, FEW)
    run, of_run = Run(recipe, tmp_path), RunImages(images, images, 40)
    classifier = fine_tuned(run, choose_features(run, of_run), of_run)

    cost = cost_of(structure, (11, 10, 3), 3)
    assert cost == Cost(classifier.macs, classifier.n_parameters, classifier.nbytes)
    assert str(structure).startswith("opponent+orientations, ")


def test_colors_need_images_of_colors_and_no_slant_is_taken_out_of_channels():
    assert not Structure((), 3, 4, 2, "linear", 0, False, ("rgb",)).fits((9, 9, 1))
    assert Structure((), 3, 4, 2, "linear", 0, False, ("gray",)).fits((9, 9, 1))
    assert not Structure((), 3, 4, 2, "linear", 0, True, ("gray",)).fits((9, 9, 1))
    with pytest.raises(InputError, match="channels"):
        Design(channels=(("depth",),))


def test_structures_that_images_are_too_small_for():
    assert Structure((), 8, 1, 1, "linear", 0, False).fits((8, 9, 1))
    assert not Structure((), 9, 1, 1, "linear", 0, False).fits((8, 9, 1))
    # A cell without a position of its own is none.
    assert Structure((), 6, 1, 3, "linear", 0, False).fits((8, 9, 1))
    assert not Structure((), 6, 1, 4, "linear", 0, False).fits((8, 9, 1))
    assert not Structure((MapLayer(2, 3, 3), MapLayer(2, 3, 3)), 1, 1, 1, "linear", 0, False).fits(
        (8, 9, 1)
    )


@pytest.mark.parametrize(
    ("raster", "macs"), [((8, 8, 1), 60_000), ((28, 28, 1), 60_000), ((32, 20, 3), 400_000)]
)
def test_proposals_fit_images_and_budget_and_depend_on_the_seed_alone(raster, macs):
    design, budget = Design(deslanted=(False, True)), Budget(macs=macs, parameters=4000)
    proposals = Proposals(design, budget, raster, 10, None, 4)
    first = [proposals[number] for number in range(40)]
    again = Proposals(design, budget, raster, 10, None, 4)
    assert [again[number] for number in reversed(range(40))] == first[::-1]
    assert len({drawn.structure for drawn in first}) == 40
    for structure, cost in first:
        assert structure.fits(raster)
        assert structure.n_features <= 600
        assert cost == cost_of(structure, raster, 10)
        assert 0.25 <= max(cost.macs / macs, cost.parameters / 4000) <= 1
    other = Proposals(design, budget, raster, 10, None, 5)
    assert [other[number] for number in range(40)] != first


def test_a_space_ends():
    design = Design(
        n_layers=(0,), patch_sizes=(3,), n_templates=(4, 8), grids=(2,), heads=("linear",)
    )
    proposals = Proposals(design, Budget(), (8, 8, 1), 10)
    assert [proposals.has(number) for number in range(4)] == [True, True, False, False]
    with pytest.raises(IndexError):
        proposals[2]


def test_budgets_that_nothing_fits_are_refused():
    with pytest.raises(InputError, match=r"^macs: got 10; accepted: at least "):
        Proposals(Design(), Budget(macs=10), (8, 8, 1), 10).check()
    with pytest.raises(InputError, match=r"^design: .* images of 3×3 pixels"):
        Proposals(Design(patch_sizes=(5,)), Budget(), (3, 3, 1), 10).check()
    one = {"n_layers": (0,), "patch_sizes": (3,), "grids": (2,), "heads": ("linear",)}
    # Few templates are below a quarter of the budget, and many above it.
    few_or_many = Design(**one, n_templates=(1, 900), max_features=5000)
    with pytest.raises(InputError, match=r"^budget: got 'macs 40000'.*least_use"):
        Proposals(few_or_many, Budget(macs=40_000), (8, 8, 1), 10).check()
    for limit in (0, -1, 1.5, True):
        with pytest.raises(InputError, match=r"^parameters: "):
            Budget(parameters=limit)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("n_layers=[3]", r"design\.n_layers: got 3; accepted: whole numbers from 0 to 2"),
        ("n_maps=[]", r"design\.n_maps: got \(\); accepted: a list of whole numbers"),
        ("pools=[0]", r"design\.pools: got 0"),
        ("heads=['convex']", r"design\.heads: got 'convex'; accepted: one or more of 'linear'"),
        ("grids=2", r"design\.grids"),
        ("grids=['two']", r"design\.grids"),
        ("deslanted=[1]", r"design\.deslanted"),
        ("held_out=1.0", r"design\.held_out: got 1\.0"),
        ("reduction=1", r"design\.reduction: got 1"),
        ("n_rungs=0", r"design\.n_rungs: got 0"),
        ("n_map=[3]", r"unknown key 'design\.n_map'. Did you mean 'n_maps'"),
    ],
)
def test_wrong_settings_name_the_key(setting, message):
    with pytest.raises(RecipeError, match=message):
        load_recipe("digits", [f"design.{setting}"])


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("digits-grfl", [], r"needs learner\.kind = 'shareboost' \(got 'grfl'\)"),
        ("digits", ["sparsify.n=3"], "not with sparsify"),
        ("digits", ["members=2"], "not with members"),
        ("digits-early", [], "not with early_exit"),
        ("digits", ["sources.classes=['1','2']"], "not with sources"),
        ("digits", ["fine_tuning.max_features=9"], r"not with fine_tuning\.max_features"),
        ("digits", ["teacher.members=2", "fine_tuning.epochs=3"], "not with teacher"),
    ],
)
def test_recipes_whose_structure_cannot_be_replaced(name, settings, message):
    with pytest.raises(RecipeError, match=message):
        check_base(load_recipe(name, settings))


def test_recipes_of_structures_are_read_as_they_were_written(tmp_path):
    settings = [
        'description="a \\"quoted\\" \\\\ text\\u007f\\n"', "seed=7", "learner.search='random'",
        "learner.search_options={n=5}", "data.classes=['1','2','=']", "learner.alpha=1e-5",
        "design.n_maps=[3]", "fine_tuning={epochs=7, averaging=0.9}", "store.memory=12345",
    ]  # fmt: skip
    base, rng = load_recipe("digits", settings), np.random.default_rng(0)
    path = tmp_path / "recipe.toml"
    heads = set()
    for _ in range(30):
        structure = draw_structure(Design(deslanted=(False, True)), rng)
        recipe = recipe_of(base, structure, FEW)
        path.write_text(toml_text(recipe, ["One.", "Two."]), encoding="utf-8")
        assert load_recipe(path) == recipe
        assert recipe.design is None
        assert (recipe.seed, recipe.fine_tuning.epochs) == (7, 7)
        assert recipe.data.classes == ["1", "2", "="]
        assert recipe.fine_tuning.head == structure.head
        assert recipe.learner.rounds == structure.n_templates
        heads.add(structure.head)
    assert heads == {"linear", "hidden", "low-rank"}


def test_a_recipe_that_is_not_read_back_is_not_written():
    recipe = load_recipe("digits").model_copy(update={"description": "\udcff"})
    with pytest.raises(InputError, match="Unicode"):
        toml_text(recipe)


def test_a_recipe_chooses_templates_among_more():
    recipe = recipe_of(load_recipe("digits"), Structure((), 3, 10, 2, "linear", 0, False), Design())
    assert recipe.features.parameters["layers"][-1]["n_templates"] == 20
    assert recipe.fine_tuning.search_images == 2000
    few = load_recipe("digits", ["fine_tuning={search_images=99}"])
    structure = Structure((), 3, 10, 2, "linear", 0, False)
    assert recipe_of(few, structure, Design()).fine_tuning.search_images == 99


@pytest.mark.parametrize(("n", "deslanted"), [(n, d) for n in range(3) for d in (False, True)])
def test_every_layering_has_a_pool(n, deslanted):
    from visionshare.recipes.pools import read_pool

    maps = tuple(MapLayer(3 + i, 2, 1) for i in range(n))
    structure = Structure(maps, 4, 10, 2, "linear", 0, deslanted)
    family = read_pool(recipe_of(load_recipe("digits"), structure, FEW).features, 0)
    expected = [Deslant()] if deslanted else []
    expected += [Templates(layer.n_maps, layer.size, pool=1, n_patches=2000) for layer in maps]
    expected.append(Templates(10, 4, grid=2, n_patches=2000))
    assert repr(family.layers) == repr(expected)


def test_draws_of_channels_fit_the_images():
    design = Design(n_layers=(0,), channels=((), ("opponent",), ("gray", "orientations")))
    gray = Proposals(design, Budget(), (12, 12, 1), 3)
    assert {gray[i].structure.channels for i in range(20)} == {(), ("gray", "orientations")}
    color = Proposals(design, Budget(), (12, 12, 3), 3)
    assert len({color[i].structure.channels for i in range(20)}) == 3
