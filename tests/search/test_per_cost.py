"""Scores for each unit of a cost against costs counted one by one, in every search."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from visionshare import (
    Deslant,
    Features,
    GaborBank,
    KernelAnchors,
    Network,
    PatchTemplates,
    Pixels,
    Products,
    RandomFourier,
    ShareBoost,
    UnionOfFamilies,
)
from visionshare.columns import ArrayColumns
from visionshare.errors import InputError
from visionshare.generators.anchors import AnchorColumns
from visionshare.generators.draws import Draws
from visionshare.generators.stumps import StumpColumns
from visionshare.recipes import load_recipe, train
from visionshare.search import make_criterion, make_search
from visionshare.search.per_cost import COSTS, PerCost
from visionshare.store import DrawnColumns, create_store

PATCHES = PatchTemplates(3, 6, 2, (1.5, 3.0), n_patches=800)
FAMILIES = {
    "patches": PATCHES,
    "products": Products(),
    "pairs": RandomFourier(12),
    "deslanted": Network([Deslant(), Features(PATCHES)]),
    "union": UnionOfFamilies([PATCHES, RandomFourier(9), Pixels(), GaborBank(8, step=3)]),
}
SEARCHES = {"exhaustive": {}, "random": {"n": 13}, "screened": {"fraction": 0.5, "keep": 11}}


@pytest.fixture(scope="module")
def images():
    # A multiple of the 16 spans of a screen: a screen of all examples leaves none out.
    images = np.random.default_rng(0).random((176, 6, 5))
    images[::3, 1:3] += 0.4 * np.sin(np.arange(5))
    images[1::3, :, 2] += 0.5
    return images.astype(np.float32)


@pytest.fixture(scope="module")
def y():
    return np.arange(176) % 3


class _Recorder:
    """A criterion that keeps what it was asked and what it answered."""

    def __init__(self, name):
        self.inner, self.seen = make_criterion(name), []

    def score(self, pool, state, numbers):
        scores = self.inner.score(pool, state, numbers)
        assert state.active.n == len(state.support)
        # The learner writes the next round's residual into the same array.
        state = replace(state, residual=state.residual.copy())
        asked = np.arange(pool.size) if numbers is None else numbers
        self.seen.append((pool, state, asked, scores))
        return scores


def _cost(family, per, ids):
    """Return the cost of features together, by what their restricted family says."""
    if len(ids) == 0:
        return 0
    taken = family.take(ids)
    if per == "bytes":
        return sum(array.nbytes for array in taken.to_state()[1].values())
    return taken.macs()


def _costs(family, pool, chosen, numbers, k, per="macs"):
    before, costs = _cost(family, per, chosen), []
    weight = {"macs": 1, "bytes": 4}[per]
    for c in numbers:
        features = pool.features(c)
        together = _cost(family, per, np.concatenate([chosen, features]))
        added = together - before + weight * k * len(features)
        costs.append(max(1, added))
    return np.array(costs)


def _recorded(columns, y, criterion="gradient", rounds=6, per="macs", **settings):
    recorder = _Recorder(criterion)
    options = {**settings.pop("search_options", {}), "per": per}
    model = ShareBoost(rounds=rounds, criterion=recorder, search_options=options, **settings).fit(
        columns, y
    )
    return model, recorder.seen


@pytest.mark.parametrize("per", COSTS)
@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize("kind", FAMILIES)
def test_the_best_for_its_cost_enters(kind, search, per, images, y):
    family = FAMILIES[kind].fit(images)
    columns = ArrayColumns.from_family(family, images)
    criterion = "orthogonal" if search == "exhaustive" else "gradient"
    options = {"search": search, "search_options": SEARCHES[search], "alpha": 1e-3, "per": per}
    model, seen = _recorded(columns, y, criterion, **options)
    assert len(seen) == 6
    for step, (pool, state, numbers, scores) in zip(model.path_, seen, strict=True):
        assert_array_equal(state.support, model.support_[: len(state.support)])
        divided = scores / _costs(family, pool, state.support, numbers, 3, per)
        by_cost = PerCost(_Fixed(scores), per)
        assert_allclose(by_cost.score(pool, state, numbers), divided, rtol=1e-9)
        left = ~np.isin([pool.features(c)[0] for c in numbers], state.support)
        best = numbers[left][np.argmax(divided[left])]
        assert_array_equal(step.feature, pool.features(best))
        assert step.score == pytest.approx(divided[left].max())


def test_computed_columns_tell_the_cost_of_their_family(images):
    anchors = KernelAnchors(n_anchors=4, n_radii=2).fit(images)
    chosen, ids = np.array([3]), np.array([0, 1, 70, 5])
    computed = AnchorColumns(anchors, images)
    assert_array_equal(computed.added_macs(chosen, ids), anchors.added_macs(chosen, ids))
    assert computed.macs(ids) == anchors.macs(ids)
    stumps = StumpColumns.from_images(images, 3)
    assert_array_equal(stumps.added_macs(chosen, ids), [0, 0, 0, 0])
    assert stumps.macs(ids) == 0


class _Fixed:
    def __init__(self, scores):
        self.scores = scores

    def score(self, pool, state, numbers):
        return self.scores


@pytest.mark.parametrize("per", COSTS)
@pytest.mark.parametrize("kind", ["patches", "union"])
def test_survivors_of_a_screen_are_the_best_for_their_cost(kind, per, images, y):
    family = FAMILIES[kind].fit(images)
    columns = ArrayColumns.from_family(family, images)
    options = {"search": "screened", "search_options": {"fraction": 1.0, "keep": 5}, "per": per}
    for pool, state, survivors, _ in _recorded(columns, y, **options)[1]:
        everything = np.arange(pool.size)
        norms = pool.gradient_norms(state.residual)
        divided = norms / _costs(family, pool, state.support, everything, 3, per)
        divided[[pool.features(c)[0] in state.support for c in everything]] = -1
        assert set(survivors.tolist()) == set(np.argsort(-divided)[:5].tolist())


@pytest.mark.parametrize("per", COSTS)
@pytest.mark.parametrize("kind", ["gabor", "fourier"])
def test_draws_are_weighed_by_their_cost(kind, per, images, y):
    family = {"gabor": GaborBank(step=2), "fourier": RandomFourier()}[kind].fit(images)
    columns = DrawnColumns(Draws(family, 15, 20), images)
    model, seen = _recorded(columns, y, rounds=4, search="sampled", per=per)
    for step, (pool, state, numbers, scores) in zip(model.path_, seen, strict=True):
        divided = scores / _costs(columns.draws, pool, state.support, numbers, 3, per)
        assert_array_equal(step.feature, pool.features(numbers[np.argmax(divided)]))
    for added in (columns.added_macs, columns.added_bytes):
        with pytest.raises(InputError, match="no end"):
            added(np.array([0]))


def test_cheap_features_go_first(images, y):
    family = UnionOfFamilies([Pixels(), PATCHES]).fit(images)
    columns = ArrayColumns.from_family(family, images)
    plain = ShareBoost(rounds=8).fit(columns, y)
    cheap = ShareBoost(rounds=8, search_options={"per": "macs"}).fit(columns, y)
    assert cheap.path_[-1].macs < plain.path_[-1].macs
    assert (cheap.support_[:4] < 30).all()


def test_a_store_and_a_resume_give_the_same_bits(images, y, tmp_path):
    family = FAMILIES["patches"].fit(images)
    settings = {"search_options": {"per": "macs"}, "criterion": "orthogonal"}
    whole = ShareBoost(rounds=7, **settings).fit(ArrayColumns.from_family(family, images), y)
    columns = create_store(tmp_path / "s", family, images, "float32", memory="100kB")
    part = {**settings, "checkpoint": tmp_path / "rounds"}
    ShareBoost(rounds=3, **part).fit(columns, y)
    resumed = ShareBoost(rounds=7, **part).fit(columns, y)
    assert_array_equal(resumed.support_, whole.support_)
    assert_array_equal(resumed.coef_, whole.coef_)
    with pytest.raises(InputError, match="checkpoint"):
        ShareBoost(rounds=7, checkpoint=tmp_path / "rounds", criterion="orthogonal").fit(columns, y)


def test_columns_without_a_family_and_bad_options(images, y):
    for search in SEARCHES:
        model = ShareBoost(search=search, search_options={"per": "macs"})
        with pytest.raises(InputError, match=r"^per: got 'macs'; accepted: columns of a family"):
            model.fit(images.reshape(176, -1), y)
    for argument, options in (
        ("per", {"per": "seconds"}),
        ("per", {"per": True}),
        ("per", {"per": "microseconds"}),
    ):
        with pytest.raises(InputError, match=f"^{argument}: got"):
            make_search("exhaustive", **options)


def test_a_recipe_can_ask_for_it(tmp_path):
    settings = ["features.parameters.n_templates=10", "data.limit=300", "learner.rounds=5"]
    plain = train(load_recipe("digits", settings), tmp_path / "plain")
    cheap = train(
        load_recipe("digits", [*settings, 'learner.search_options.per="macs"']),
        tmp_path / "cheap",
    )
    assert cheap.metrics["macs"] < plain.metrics["macs"]
