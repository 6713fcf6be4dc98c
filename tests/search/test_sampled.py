"""Sampled search over continuous families: the best of each round's draws, and nothing twice."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import visionshare
from visionshare import GaborBank, RandomFourier, ShareBoost
from visionshare.columns import ArrayColumns
from visionshare.errors import InputError
from visionshare.generators.draws import Draws
from visionshare.store import DrawnColumns

FAMILIES = {"gabor": GaborBank(step=3), "fourier": RandomFourier(bandwidths=(2.0, 4.0))}


@pytest.fixture(scope="module")
def images():
    rng = np.random.default_rng(0)
    images = rng.random((300, 7, 6))
    images[1::3] += np.sin(np.arange(6))
    images[2::3] += np.cos(2 * np.arange(7))[:, None]
    return images.astype(np.float32)


@pytest.fixture(scope="module")
def y():
    return np.arange(300) % 3


def _columns(kind, images, n=20, rounds=40, seed=0):
    return DrawnColumns(Draws(FAMILIES[kind].fit(images), n, rounds, seed), images)


@pytest.mark.parametrize("kind", FAMILIES)
def test_draws_are_numbered_for_good(kind, images):
    draws = Draws(FAMILIES[kind].fit(images), 5, 10, random_state=3)
    width = draws.n_features_ // 50
    assert draws.of_round(2).tolist() == [5, 6, 7, 8, 9]
    once = draws.transform_columns(images, np.arange(width * 5, width * 10))
    draws.parameters(7)
    ids = np.array([width * 9, width * 5, width * 33])
    again = draws.transform_columns(images, ids)
    assert_allclose(again[:2], once[[width * 4, 0]], rtol=1e-5, atol=1e-6)
    other = Draws(FAMILIES[kind].fit(images), 5, 10, random_state=4)
    assert other.fingerprint != draws.fingerprint
    assert not np.allclose(other.transform_columns(images, ids), again)
    assert draws.macs(ids) == draws.take(ids).macs()
    for bad in (0, 11):
        with pytest.raises(InputError, match="rounds"):
            draws.of_round(bad)


@pytest.mark.parametrize("kind", FAMILIES)
@pytest.mark.parametrize("criterion", ["gradient", "orthogonal"])
def test_each_round_takes_the_best_of_its_draws(kind, criterion, images, y):
    columns = _columns(kind, images, rounds=3)
    settings = {"criterion": criterion, "alpha": 1e-3}
    sampled = ShareBoost(rounds=3, search="sampled", **settings).fit(columns, y)
    # The same draws as a finite pool: round t may choose among those of round t alone.
    everything = columns.draws.transform_columns(images, np.arange(columns.shape[1]))
    chosen = []
    for t in range(1, 4):
        width = columns.shape[1] // 60
        drawn = np.arange((t - 1) * 20 * width, t * 20 * width)
        ids = np.concatenate([np.array(chosen, int), drawn])
        groups = None if width == 1 else np.unique(ids // 2, return_inverse=True)[1]
        pool = ArrayColumns(columns=everything[ids], groups=groups)
        order = _greedy(pool, y, len(chosen) // width, settings)
        chosen += [int(j) for j in ids[order]]
    assert chosen == sampled.support_.tolist()


def _greedy(pool, y, already, settings):
    """Return the feature or pair that enters after the first ``already`` candidates."""

    class Last:
        def best(self, pool, state, criterion, excluded, n=1):
            from visionshare.search.exhaustive import winners

            if state.round <= already:
                numbers = np.array([state.round - 1])
            else:
                numbers = np.arange(already, pool.size)
            return winners(pool, numbers, criterion.score(pool, state, numbers), n)

    model = ShareBoost(rounds=already + 1, search=Last(), **settings)
    return np.array(model.fit(pool, y).path_[-1].feature)


def test_no_draw_is_evaluated_twice_by_the_search(images, y, monkeypatch):
    columns = _columns("gabor", images)
    seen = []
    real = columns.draws.transform_columns

    def counted(images, ids, *rest):
        seen.append(np.asarray(ids).tolist())
        return real(images, ids, *rest)

    monkeypatch.setattr(columns.draws, "transform_columns", counted)
    ShareBoost(rounds=5, search="sampled").fit(columns, y)
    searched = [ids for ids in seen if len(ids) == 20]
    assert searched == [list(range(20 * t, 20 * t + 20)) for t in range(5)]
    # Beside the search, only the few columns that part the examples for the temperature.
    assert sum(len(ids) for ids in seen) <= 100 + 8


@pytest.mark.parametrize("kind", FAMILIES)
def test_resume_and_threads_give_the_same_bits(kind, images, y, tmp_path):
    settings = {"search": "sampled", "n_backward": 2, "alpha": 1e-3}
    whole = ShareBoost(rounds=6, **settings).fit(_columns(kind, images), y)
    part = {**settings, "checkpoint": tmp_path / "rounds"}
    ShareBoost(rounds=2, **part).fit(_columns(kind, images), y)
    resumed = ShareBoost(rounds=6, n_jobs=2, **part).fit(_columns(kind, images), y)
    assert_array_equal(resumed.support_, whole.support_)
    assert_array_equal(resumed.coef_, whole.coef_)
    with pytest.raises(InputError, match="checkpoint"):
        ShareBoost(rounds=6, **part).fit(_columns(kind, images, seed=1), y)


@pytest.mark.parametrize("kind", FAMILIES)
def test_a_classifier_carries_what_was_drawn(kind, images, y, tmp_path):
    columns = _columns(kind, images)
    model = ShareBoost(rounds=8, search="sampled").fit(columns, y)
    model.to_classifier(columns.draws).save(tmp_path / "c.safetensors")
    again = visionshare.load(tmp_path / "c.safetensors")
    assert again.macs == columns.macs(model.support_) + model.coef_.size
    assert np.mean(again.predict(images) == y) > 0.9
    assert_array_equal(again.at(3).predict(images), again.at(3).predict(images, n_jobs=2))


def test_other_columns_and_all_columns_are_refused(images, y):
    with pytest.raises(InputError, match="DrawnColumns"):
        ShareBoost(search="sampled").fit(images.reshape(300, -1), y)
    with pytest.raises(InputError, match="no end"):
        _columns("gabor", images).take()
