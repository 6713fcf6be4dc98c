"""Gabor filters: scikit-image's kernel, a plain twin, cost, and textures."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from skimage.filters import gabor_kernel

import visionshare
from visionshare import GaborBank, ShareBoost
from visionshare.columns import ArrayColumns
from visionshare.datasets import load_dataset
from visionshare.errors import InputError
from visionshare.generators.gabor.values import gabor_values
from visionshare.testing import check_family

rng = np.random.default_rng(0)
IMAGES = {
    "gray": rng.integers(0, 256, (30, 9, 6), np.uint8),
    "color": rng.random((30, 8, 8, 3), np.float32),
    "vectors": rng.normal(size=(30, 7)),
    "larger than a chunk": rng.random((20, 40, 21), np.float32),
}


@pytest.mark.parametrize("images", IMAGES)
@pytest.mark.parametrize("pooling", ["sum", "mean", "max"])
def test_every_rule_of_a_family(images, pooling):
    check_family(GaborBank(37, phases=True, pooling=pooling, step=3), IMAGES[images])


def test_a_grid_is_every_combination():
    family = GaborBank(values=3).fit(IMAGES["gray"])
    assert family.n_features_ == 81
    assert [len(np.unique(family.filters_[:, j])) for j in range(5)] == [3, 3, 3, 3, 1]
    assert len(np.unique(family.filters_, axis=0)) == 81
    check_family(GaborBank(values=2), IMAGES["gray"])


@pytest.mark.parametrize("parameters", [(0.3, 0.2, 2.0, 1.5, 0.0), (2.5, 0.11, 1.2, 3.0, 1.0)])
def test_values_are_those_of_scikit_image(parameters):
    theta, f0, sigma_z, sigma_y, phase = parameters
    kernel = gabor_kernel(f0, theta, sigma_x=sigma_z, sigma_y=sigma_y, n_stds=3, offset=phase)
    true = kernel.real * 2 * np.pi * sigma_z * sigma_y
    ours = gabor_values(np.array([parameters]), 40, 40)[0]
    rows, cols = (side // 2 for side in true.shape)
    assert_allclose(ours[39 - rows : 40 + rows, 39 - cols : 40 + cols], true, atol=1e-6)


@pytest.mark.parametrize("pooling", ["sum", "mean", "max"])
def test_features_are_the_definition(pooling):
    images = IMAGES["gray"]
    family = GaborBank(12, phases=True, pooling=pooling, step=2, sigmas=(0.6, 2.0)).fit(images)
    reached, features = np.zeros(12, int), family.transform(images)
    gray = images / 255
    for j, (theta, f0, sigma_z, sigma_y, phase) in enumerate(family.filters_.astype(float)):
        reach = int(np.ceil(3 * max(sigma_z, sigma_y)))
        responses = []
        for py in range(0, 9, 2):
            for px in range(0, 6, 2):
                total = np.zeros(len(images))
                for y in range(max(0, py - reach), min(9, py + reach + 1)):
                    for x in range(max(0, px - reach), min(6, px + reach + 1)):
                        z0 = (x - px) * np.cos(theta) + (y - py) * np.sin(theta)
                        y0 = -(x - px) * np.sin(theta) + (y - py) * np.cos(theta)
                        value = np.exp(-(z0**2) / (2 * sigma_z**2) - y0**2 / (2 * sigma_y**2))
                        total += gray[:, y, x] * value * np.cos(2 * np.pi * f0 * z0 + phase)
                        reached[j] += 1
                responses.append(np.abs(total))
        pooled = {"sum": np.sum, "mean": np.mean, "max": np.max}[pooling](responses, axis=0)
        assert_allclose(features[:, j], pooled, rtol=2e-4, atol=1e-5)
    assert [family.macs(np.array([j])) for j in range(12)] == reached.tolist()


@pytest.mark.parametrize("images", IMAGES)
@pytest.mark.parametrize("pooling", ["mean", "max"])
def test_every_rule_of_a_family_whose_filters_lie_inside(images, pooling):
    options = {"border": "inside", "zero_mean": True, "step": 1}
    check_family(GaborBank(37, phases=True, pooling=pooling, **options), IMAGES[images])


@pytest.mark.parametrize(("reach", "longest"), [(None, 3), (4, 4), (1, 1), (9, 5)])
def test_filters_inside_are_whole_and_positions_hold_them(reach, longest):
    images = rng.random((8, 12, 13), np.float32)
    options = {"sigmas": (0.4, 3.0), "border": "inside", "reach": reach, "zero_mean": True}
    family = GaborBank(15, phases=True, step=2, **options).fit(images)
    features = family.transform(images)
    for j, parameters in enumerate(family.filters_.astype(float)):
        reach_j = min(int(np.ceil(3 * parameters[2:4].max())), longest)
        whole = family.describe(j)["filter"]
        taps = whole[11 - reach_j : 12 + reach_j, 12 - reach_j : 13 + reach_j]
        assert abs(taps.sum()) < 1e-5
        assert np.count_nonzero(whole) <= taps.size
        total, count = np.zeros(len(images)), 0
        for y in range(reach_j + (11 - 2 * reach_j) % 2 // 2, 12 - reach_j, 2):
            for x in range(reach_j + (12 - 2 * reach_j) % 2 // 2, 13 - reach_j, 2):
                under = images[:, y - reach_j : y + reach_j + 1, x - reach_j : x + reach_j + 1]
                total += np.abs((under * taps).sum(axis=(1, 2)))
                count += 1
        assert_allclose(features[:, j], total, rtol=1e-4, atol=1e-4)
        assert family.macs(np.array([j])) == count * taps.size
    # Brightness changes nothing.
    assert_allclose(family.transform(images + 0.25), features, rtol=1e-3, atol=1e-4)


def test_the_whole_filter_is_the_one_without_its_mean():
    parameters = np.array([[0.3, 0.05, 2.0, 1.5, 0.4]])
    plain, balanced = (gabor_values(parameters, 20, 20, None, z)[0] for z in (False, True))
    assert abs(plain.sum()) > 1
    assert abs(balanced.sum()) < 1e-5
    envelope = gabor_values(np.array([[0.3, 0.0, 2.0, 1.5, 0.0]]), 20, 20)[0]
    assert_allclose(plain - balanced, envelope * plain.sum() / envelope.sum(), atol=1e-6)


def test_states_of_before_are_read_and_new_ones_say_what_is_new():
    old = GaborBank(4).fit(IMAGES["gray"])
    state, arrays = old.to_state()
    assert not {"border", "reach", "zero_mean"} & set(state["parameters"])
    again = GaborBank.from_state(state, arrays)
    assert_array_equal(again.transform(IMAGES["gray"]), old.transform(IMAGES["gray"]))
    new = GaborBank(4, border="inside", reach=2, zero_mean=True).fit(IMAGES["gray"])
    state, arrays = new.to_state()
    assert {"border", "reach", "zero_mean"} <= set(state["parameters"])
    again = GaborBank.from_state(state, arrays)
    assert_array_equal(again.transform(IMAGES["gray"]), new.transform(IMAGES["gray"]))


def test_parameters_stay_in_their_ranges():
    options = {"frequencies": (0.1, 0.2), "sigmas": (2.0, 3.0)}
    family = GaborBank(2000, **options).fit(IMAGES["gray"])
    low, high = family.filters_.min(axis=0), family.filters_.max(axis=0)
    assert_allclose(low, [0, 0.1, 2, 2, 0], atol=0.01)
    assert_allclose(high, [np.pi, 0.2, 3, 3, 0], atol=0.01)
    assert GaborBank(2000, phases=True).fit(IMAGES["gray"]).filters_[:, 4].max() > 6


def test_textures_are_told_apart(tmp_path):
    train, test = load_dataset("textures", "train"), load_dataset("textures", "test")
    family = GaborBank(120).fit(train.images)
    columns = ArrayColumns.from_family(family, train.images)
    model = ShareBoost(rounds=15).fit(columns, train.labels)
    model.to_classifier(family).save(tmp_path / "c.safetensors")
    again = visionshare.load(tmp_path / "c.safetensors")
    assert_array_equal(again.predict(test.images), model.predict(family.transform(test.images)))
    assert np.mean(again.predict(test.images) == test.labels) > 0.85


@pytest.mark.parametrize(
    "parameters",
    [
        {"n_filters": 0}, {"values": 0}, {"values": 1.5}, {"step": 0}, {"pooling": "median"},
        {"frequencies": (0.4, 0.1)}, {"frequencies": 0.3}, {"sigmas": (0.0, 1.0)}, {"phases": 1},
        {"border": "wrap"}, {"reach": 0}, {"reach": 2.5}, {"zero_mean": 0},
        {"values": 100_000}, {"random_state": -1},
    ],
)  # fmt: skip
def test_bad_parameters_are_named(parameters):
    (name,) = parameters
    with pytest.raises(InputError, match=f"^{name}: got"):
        GaborBank(**parameters).fit(IMAGES["gray"])


def test_foreign_states_are_refused():
    family = GaborBank(4).fit(IMAGES["gray"])
    state, arrays = family.to_state()
    filters = arrays["filters"]
    negative = filters.copy()
    negative[0, 2] = -1
    for wrong in (filters[:, :4], filters.astype(np.float64), negative, filters[None]):
        with pytest.raises(InputError):
            GaborBank.from_state(state, {"filters": wrong})
    with pytest.raises(InputError, match="image_shape"):
        GaborBank.from_state({**state, "image_shape": [4096, 4096]}, arrays)
    with pytest.raises(InputError, match="parameters"):
        GaborBank.from_state({**state, "parameters": {}}, arrays)


def test_given_positions_are_those_that_are_pooled():
    images = np.random.default_rng(0).random((20, 12, 12), np.float32)
    rows, cols = [2, 7, 3], [5, 9]
    check_family(GaborBank(n_filters=9, positions=(rows, cols)), images)
    family = GaborBank(n_filters=6, positions=(rows, cols)).fit(images)
    values = gabor_values(family.filters_, 12, 12)
    for f in range(6):
        total = 0.0
        for y in rows:
            for x in cols:
                window = values[f, 11 - y : 23 - y, 11 - x : 23 - x]
                total += abs(float(np.sum(window.astype(np.float64) * images[4])))
        assert_allclose(family.transform(images[4:5])[0, f], total, rtol=1e-4)
    for wrong in (
        [1],
        ([], [1]),
        ([0, 0], [1]),
        ([-1], [1]),
        ("ab", [1]),
        ([1.5], [2]),
        ([12], [3]),
    ):
        with pytest.raises(InputError, match=r"^positions: got"):
            GaborBank(positions=wrong).fit(images)
    with pytest.raises(InputError, match=r"^positions: got"):
        GaborBank(positions=(rows, cols), border="inside").fit(images)
