"""Scores for each unit of a cost against costs counted one by one, in every search."""

import json
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from visionshare import (
    Deslant,
    Features,
    ForwardGreedyClassifier,
    GaborBank,
    GreedyTL,
    GroupFeatureClassifier,
    KernelAnchors,
    Network,
    OneAgainstRest,
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
from visionshare.search import PerCostSearch, Screened, make_criterion, make_search
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


def _rates(family):
    """Return rates that differ from part to part; nothing is measured."""
    return {
        name: {"call": 5.0 + i, "feature": 0.25, "mac": 0.01 * (i + 1)}
        for i, name in enumerate(family.timed_parts)
    }


def _cost(family, per, ids):
    """Return the cost of features together, by what their restricted family says."""
    if len(ids) == 0:
        return 0
    taken = family.take(ids)
    if per == "bytes":
        return sum(array.nbytes for array in taken.to_state()[1].values())
    if per == "macs":
        return taken.macs()
    if not isinstance(family, UnionOfFamilies):
        (rate,) = _rates(family).values()
        return rate["call"] + rate["feature"] * len(ids) + rate["mac"] * taken.macs()
    parts = family.part_[ids]
    rates, costs = list(_rates(family).values()), 0.0
    for p in np.unique(parts):
        macs = family.macs(np.asarray(ids)[parts == p])
        costs += (
            rates[p]["call"] + rates[p]["feature"] * (parts == p).sum() + rates[p]["mac"] * macs
        )
    return costs


def _costs(family, pool, chosen, numbers, k, per="macs"):
    before, costs = _cost(family, per, chosen), []
    weight = {"macs": 1, "bytes": 4, "microseconds": 0}[per]
    for c in numbers:
        features = pool.features(c)
        together = _cost(family, per, np.concatenate([chosen, features]))
        added = together - before + weight * k * len(features)
        costs.append(max(0.001 if per == "microseconds" else 1, added))
    return np.array(costs)


def _options(per, family):
    return {"per": per, "rates": _rates(family)} if per == "microseconds" else {"per": per}


def _recorded(columns, y, criterion="gradient", rounds=6, per="macs", **settings):
    recorder = _Recorder(criterion)
    options = {**settings.pop("search_options", {}), **_options(per, columns.costs)}
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
        by_cost = PerCost(_Fixed(scores), **_options(per, family))
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
    cheap = ShareBoost(rounds=8, search_options={"per_mac": True}).fit(columns, y)
    assert cheap.path_[-1].macs < plain.path_[-1].macs
    assert (cheap.support_[:4] < 30).all()


def test_a_store_and_a_resume_give_the_same_bits(images, y, tmp_path):
    family = FAMILIES["patches"].fit(images)
    settings = {"search_options": {"per_mac": True}, "criterion": "orthogonal"}
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
        model = ShareBoost(search=search, search_options={"per_mac": True})
        with pytest.raises(InputError, match=r"^per: got 'macs'; accepted: columns of a family"):
            model.fit(images.reshape(176, -1), y)
    rates = {"pixels": {"call": 1.0, "feature": 1.0, "mac": 0.0}}
    for argument, options in (
        ("per_mac", {"per_mac": 1}),
        ("per", {"per_mac": True, "per": "bytes"}),
        ("per", {"per": "seconds"}),
        ("per", {"per": True}),
        ("rates", {"rates": rates}),
        ("rates", {"per": "bytes", "rates": rates}),
        ("rates", {"per": "microseconds", "rates": 3.0}),
    ):
        with pytest.raises(InputError, match=f"^{argument}: got"):
            make_search("exhaustive", **options)
    pixels = ArrayColumns.from_family(Pixels().fit(images), images)
    rates["patches"] = rates.pop("pixels")
    with pytest.raises(InputError, match=r"^rates: got \['patches'\]; accepted: rates of 'pixels'"):
        ShareBoost(search_options={"per": "microseconds", "rates": rates}).fit(pixels, y)


def test_per_mac_is_another_way_to_write_macs():
    searches = [make_search("screened", keep=9, **o) for o in ({"per_mac": True}, {"per": "macs"})]
    assert searches[0] == searches[1] == PerCostSearch(Screened(keep=9))
    assert make_search("screened", per_mac=True, per="macs") == PerCostSearch(Screened())
    assert make_search("screened", per_mac=False) == Screened()


def test_measured_rates_stay_with_the_rounds_and_the_classifier(images, y, tmp_path):
    family = FAMILIES["union"].fit(images)
    columns = ArrayColumns.from_family(family, images)
    settings = {"search_options": {"per": "microseconds"}, "checkpoint": tmp_path / "rounds"}
    ShareBoost(rounds=2, **settings).fit(columns, y)
    resumed = ShareBoost(rounds=5, **settings).fit(columns, y)
    rates = json.loads((tmp_path / "rounds" / "rates.json").read_text())
    assert list(rates) == sorted(family.timed_parts)
    assert rates == resumed.rates_ == resumed.to_classifier(family).metadata["rates"]
    again = ShareBoost(rounds=5, search_options={"per": "microseconds", "rates": rates})
    assert_array_equal(again.fit(columns, y).coef_, resumed.coef_)
    assert again.to_classifier(family, metadata={"a": 1}).metadata == {"a": 1, "rates": rates}
    # By other rates it is another run.
    rates["2.pixels"]["feature"] += 1.0
    (tmp_path / "rounds" / "rates.json").write_text(json.dumps(rates))
    with pytest.raises(InputError, match=r"^checkpoint: got"):
        ShareBoost(rounds=6, **settings).fit(columns, y)
    assert ShareBoost(rounds=1).fit(columns, y).rates_ is None


def test_rates_beside_a_run_that_is_to_begin_are_those_it_goes_by(images, y, tmp_path):
    columns = ArrayColumns.from_family(FAMILIES["union"].fit(images), images)
    rates = _rates(columns.costs)
    (tmp_path / "rounds").mkdir()
    (tmp_path / "rounds" / "rates.json").write_text(json.dumps(rates))
    options = {"per": "microseconds"}
    model = ShareBoost(rounds=3, search_options=options, checkpoint=tmp_path / "rounds")
    assert model.fit(columns, y).rates_ == rates
    given = ShareBoost(rounds=3, search_options={**options, "rates": rates}).fit(columns, y)
    assert_array_equal(given.support_, model.support_)


@pytest.mark.parametrize(
    "learner",
    [
        ShareBoost(3),
        ForwardGreedyClassifier(rounds=3),
        GroupFeatureClassifier(alpha=1.0, rounds=3),
        GreedyTL(rounds=3),
        OneAgainstRest(3),
    ],
    ids=lambda learner: type(learner).__name__,
)
def test_every_learner_keeps_the_rates_of_its_search(learner, images, y):
    family = Pixels().fit(images)
    columns = ArrayColumns.from_family(family, images)
    rates = {"pixels": {"call": 4.0, "feature": 0.5, "mac": 0.0}}
    options = {"per": "microseconds", "rates": rates}
    if isinstance(learner, OneAgainstRest):
        learner.set_params(learner=ShareBoost(search_options=options))
    else:
        learner.set_params(search_options=options)
    classifier = learner.fit(columns, y).to_classifier(family)
    assert classifier.metadata["rates"] == rates


def test_a_recipe_can_give_rates(tmp_path):
    rates = {"call": 9.5, "feature": 0.25, "mac": 0.001}
    options = 'per="microseconds", rates={patches={call=9.5, feature=0.25, mac=0.001}}'
    settings = ["features.parameters.n_templates=10", "data.limit=300", "learner.rounds=5"]
    recipe = load_recipe("digits", [*settings, f"learner.search_options={{{options}}}"])
    metadata = train(recipe, tmp_path / "timed").classifier.metadata
    assert metadata["rates"] == {"patches": rates}


def test_a_recipe_can_ask_for_it(tmp_path):
    settings = ["features.parameters.n_templates=10", "data.limit=300", "learner.rounds=5"]
    plain = train(load_recipe("digits", settings), tmp_path / "plain")
    cheap = train(
        load_recipe("digits", [*settings, "learner.search_options.per_mac=true"]),
        tmp_path / "cheap",
    )
    assert cheap.metrics["macs"] < plain.metrics["macs"]
