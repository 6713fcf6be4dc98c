"""Networks: one family of a list of layers."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from visionshare import (
    Channels,
    Depthwise,
    Deslant,
    Features,
    Network,
    PatchTemplates,
    Pixels,
    Templates,
    UnionOfFamilies,
    Units,
)
from visionshare.errors import InputError
from visionshare.generators import family_from_state
from visionshare.generators.layers.forward import Forward

IMAGES = np.random.default_rng(0).integers(0, 256, (40, 13, 11), np.uint8)


def maps(n=3, size=3, **options):
    return Templates(n, size, n_patches=300, **options)


@pytest.fixture(scope="module")
def deep():
    """Return a network of every kind of layer that takes any input."""
    layers = [Deslant(), maps(4, pool=2), Depthwise(2, 2, n_patches=300), maps(6, 2, grid=2)]
    return Network([*layers, Units(9)]).fit(IMAGES)


def test_layers_follow_each_other(deep):
    values = IMAGES[..., None]
    for layer in deep.layers_:
        values = Forward([layer]).outputs(values, 1)
        if layer.keeps_bytes:
            values = values.astype(np.uint8)
    assert_allclose(deep.transform(IMAGES), values.reshape(40, -1), rtol=1e-5, atol=1e-5)


def test_bits_depend_neither_on_batches_nor_on_threads(deep):
    images = np.concatenate([IMAGES] * 4)
    expected = deep.transform(images)
    assert_array_equal(deep.transform(images, n_jobs=3), expected)
    for step in (1, 7, 64):
        parts = [deep.transform(images[i : i + step]) for i in range(0, len(images), step)]
        assert_array_equal(np.concatenate(parts), expected)


def test_a_pool_is_restricted_to_chosen_features():
    pool = Network([maps(5, pool=2), maps(7, 2, grid=2)]).fit(IMAGES)
    assert pool.groups.tolist() == np.repeat(np.arange(7), 4).tolist()
    ids = np.array([5, 0, 26, 4])
    chosen = pool.take(ids)
    assert_array_equal(chosen.transform(IMAGES), pool.transform(IMAGES)[:, ids])
    assert_array_equal(pool.transform(IMAGES, ids), chosen.transform(IMAGES))
    assert [layer.n_templates for layer in chosen.layers_] == [5, 3]
    assert pool.macs(ids) == chosen.macs()
    assert pool.macs(np.empty(0, int)) == 0
    for before in (np.empty(0, int), ids):
        added = [pool.macs(np.append(before, f)) - pool.macs(before) for f in (1, 2, 5)]
        assert_array_equal(pool.added_macs(before, np.array([1, 2, 5])), added)
    blocks = pool.block_ids(np.arange(28))
    assert sorted(np.concatenate(blocks).tolist()) == list(range(28))


def test_what_no_feature_needs_goes_backwards():
    network = Network([maps(6), Depthwise(1, 2, n_patches=300), Depthwise(2, 2, grid=1)])
    network = network.set_params(random_state=1).fit(IMAGES)
    chosen = network.take(np.array([3, 8]))
    assert_array_equal(chosen.transform(IMAGES), network.transform(IMAGES)[:, [3, 8]])
    assert [layer.out_shape[2] for layer in chosen.layers_] == [2, 2, 2]
    assert chosen.macs() == network.macs(np.array([3, 8])) < network.macs()


def test_scores_are_sums_of_features(deep):
    weights = np.random.default_rng(1).normal(size=(3, deep.n_features_)).astype(np.float32)
    expected = deep.transform(IMAGES) @ weights.T
    assert_allclose(deep.weighted_sums(IMAGES, weights), expected, rtol=1e-4, atol=1e-4)
    other = weights[:, ::-1].copy()
    assert_allclose(
        deep.weighted_sums(IMAGES, other), deep.transform(IMAGES) @ other.T, rtol=1e-4, atol=1e-4
    )


@pytest.mark.parametrize(
    "layers",
    [
        [maps(5, grid=2)],
        [Channels(("orientations",), 3, pool=2), maps(5, 2, grid=2), Units(4, "square")],
        [Deslant(), maps(3, pool=2), Features(Pixels())],
        [Features(PatchTemplates(3, 6, 2, (2.0,), n_patches=300)), Units(5), Units(3)],
    ],
    ids=len,
)
def test_contributions_add_up_to_the_scores(layers):
    network = Network(layers).fit(IMAGES)
    weights = np.random.default_rng(1).normal(size=(3, network.n_features_)).astype(np.float32)
    parts = network.contributions(IMAGES[3], weights)
    scores = network.weighted_sums(IMAGES[3:4], weights)[0]
    if not isinstance(layers[-1], Units) or layers[-1].activation == "relu":
        assert_allclose(parts.sums, scores, rtol=1e-4, atol=1e-4)
    assert parts.boxes.shape == (len(parts.values), 4)
    assert (parts.boxes >= 0).all()
    assert (parts.boxes[:, [1, 3]] <= [13, 11]).all()


def test_a_box_holds_all_that_a_maximum_depends_on():
    network = Network([maps(3, pool=2), maps(5, 2, grid=2)]).fit(IMAGES)
    image = IMAGES[5]
    values, boxes = network.transform(image[None])[0], network.boxes(image)
    for feature in np.flatnonzero(values > 0)[:6]:
        top, bottom, left, right = boxes[feature].astype(int)
        inside = np.zeros_like(image)
        inside[top:bottom, left:right] = image[top:bottom, left:right]
        # Other positions may have larger responses once the rest is black; none is smaller.
        again = network.transform(inside[None])[0, feature]
        assert again >= values[feature] - 1e-5


def test_a_description_makes_the_network_again(deep):
    nested = Network([Features(UnionOfFamilies([Pixels(), Network([maps(4, grid=1)])])), Units(3)])
    for network in (deep, deep.take(np.array([4, 1])), nested.fit(IMAGES)):
        again = family_from_state(*network.to_state())
        assert_array_equal(again.transform(IMAGES), network.transform(IMAGES))
        assert (again.macs(), again.n_parameters) == (network.macs(), network.n_parameters)


def test_broken_descriptions_are_refused(deep):
    state, arrays = deep.to_state()
    layers = state["layers"]
    for wrong in ([], layers[::-1], layers * 9, None, [3], [{"kind": "none"}],
                  [{**layers[0], "kind": []}]):  # fmt: skip
        with pytest.raises(InputError):
            family_from_state({**state, "layers": wrong}, arrays)
    for name in arrays:
        with pytest.raises(InputError):
            family_from_state(state, {key: a for key, a in arrays.items() if key != name})
    for places in (arrays["places"] + 99, arrays["places"] - 1, arrays["places"].astype(float)):
        with pytest.raises(InputError):
            family_from_state(state, {**arrays, "places": places})
    for shape in ([3, 2], [13, 11, 2], [13, 11, 1, 1], [0, 11]):
        with pytest.raises(InputError):
            family_from_state({**state, "image_shape": shape}, arrays)


@pytest.mark.parametrize(
    "layers", [(), None, [Pixels()], [Templates], "templates", [Templates()] * 17]
)
def test_layers_are_checked(layers):
    with pytest.raises(InputError, match=r"^layers: got"):
        Network(layers).fit(IMAGES)


def test_parameters_of_layers_are_checked_before_work():
    with pytest.raises(InputError, match=r"^patch_size: got 0"):
        Network([maps(), Features(PatchTemplates(patch_size=0))]).fit(IMAGES)
    with pytest.raises(InputError, match=r"^family: got"):
        Network([Features(None)]).fit(IMAGES)
    with pytest.raises(InputError, match=r"^random_state: got"):
        Network([maps()], random_state=-1).fit(IMAGES)


def test_weights_that_change_count_at_once(deep):
    weights = np.random.default_rng(1).normal(size=(3, deep.n_features_)).astype(np.float32)
    before = deep.weighted_sums(IMAGES, weights)
    weights *= 2
    assert_allclose(deep.weighted_sums(IMAGES, weights), 2 * before, rtol=1e-5, atol=1e-3)
