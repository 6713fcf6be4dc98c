"""Windows of a larger image that share layers are what each window is alone."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose

from visionshare import Network, Templates, UnionOfFamilies
from visionshare.generators.layers.shared_windows import SharedLayers
from visionshare.generators.windows import cut_windows

RNG = np.random.default_rng(0)
IMAGES = RNG.integers(0, 256, (40, 22, 18), np.uint8)
PHOTOGRAPH = RNG.integers(0, 256, (61, 75), np.uint8)


def templates(n, size, **options):
    return Templates(n, size, n_patches=300, **options)


NETWORKS = {
    "two shared": [templates(8, 3, pool=2), templates(5, 3, pool=2), templates(4, 2, grid=2)],
    "one shared": [templates(4, 4, pool=3), templates(5, 3, grid=2)],
    "padding": [templates(4, 3, pool=2, padding=1), templates(5, 3, grid=2)],
    "no layer before": [templates(5, 3, grid=2)],
}
STEPS = {"close": (1, 2), "uneven": (3, 3), "far": (19, 17)}


@pytest.mark.parametrize("layers", NETWORKS.values(), ids=NETWORKS)
@pytest.mark.parametrize("steps", STEPS.values(), ids=STEPS)
@pytest.mark.parametrize("as_floats", [False, True])
def test_sums_of_windows(layers, steps, as_floats):
    network = Network(layers).fit(IMAGES)
    weights = RNG.normal(size=(3, network.n_features_)).astype(np.float32)
    photograph = (PHOTOGRAPH / 255).astype(np.float32) if as_floats else PHOTOGRAPH
    ys, xs = (np.arange(0, n + 1, step) for n, step in zip((39, 57), steps, strict=True))
    alone = network.weighted_sums(cut_windows(photograph, ys, xs, (22, 18)), weights)
    for jobs in (1, 2):
        found = network.window_sums(photograph, ys, xs, weights, jobs)
        assert_allclose(found, alone, rtol=1e-5, atol=1e-5 * np.abs(alone).max())


def test_layers_are_shared_by_close_windows_alone():
    network = Network(NETWORKS["two shared"]).fit(IMAGES)
    shared = SharedLayers(network.layers_)
    for step, depth in ((2, 2), (30, 0)):
        shared.values(PHOTOGRAPH[..., None], np.arange(0, 39, step), np.arange(0, 57, step), 1)
        assert depth in shared._rests
    assert len(shared._rests) == 2


def test_members_of_a_mean_share_too():
    members = [Network(NETWORKS["two shared"], random_state=s).fit(IMAGES) for s in (0, 1)]
    family = UnionOfFamilies.of(members).take(np.arange(24)[::-1])
    weights = RNG.normal(size=(3, 24)).astype(np.float32)
    ys, xs = np.arange(0, 39, 4), np.arange(0, 57, 3)
    alone = family.weighted_sums(cut_windows(PHOTOGRAPH, ys, xs, (22, 18)), weights)
    weights.flags.writeable = False
    for copy in (family, pickle.loads(pickle.dumps(family))):
        found = copy.window_sums(PHOTOGRAPH, ys, xs, weights)
        assert_allclose(found, alone, rtol=1e-5, atol=1e-5 * np.abs(alone).max())
