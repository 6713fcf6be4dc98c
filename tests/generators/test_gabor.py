"""Gabor filters: scikit-image's kernel, a plain twin, cost, and textures."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from skimage.filters import gabor_kernel

import visionshare
from visionshare import GaborBank, ShareBoost
from visionshare.datasets import load_dataset
from visionshare.errors import InputError
from visionshare.generators.gabor import gabor_values
from visionshare.store import ArrayColumns
from visionshare.testing import check_family

rng = np.random.default_rng(0)
IMAGES = {
    "grey": rng.integers(0, 256, (30, 9, 6), np.uint8),
    "colour": rng.random((30, 8, 8, 3), np.float32),
    "vectors": rng.normal(size=(30, 7)),
    "larger than a chunk": rng.random((20, 40, 21), np.float32),
}


@pytest.mark.parametrize("images", IMAGES)
@pytest.mark.parametrize("pooling", ["sum", "mean", "max"])
def test_every_rule_of_a_family(images, pooling):
    check_family(GaborBank(37, phases=True, pooling=pooling, step=3), IMAGES[images])


def test_a_grid_is_every_combination():
    family = GaborBank(values=3).fit(IMAGES["grey"])
    assert family.n_features_ == 81
    assert [len(np.unique(family.filters_[:, j])) for j in range(5)] == [3, 3, 3, 3, 1]
    assert len(np.unique(family.filters_, axis=0)) == 81
    check_family(GaborBank(values=2), IMAGES["grey"])


@pytest.mark.parametrize("parameters", [(0.3, 0.2, 2.0, 1.5, 0.0), (2.5, 0.11, 1.2, 3.0, 1.0)])
def test_values_are_those_of_scikit_image(parameters):
    theta, f0, sigma_z, sigma_y, phase = parameters
    held = gabor_kernel(f0, theta, sigma_x=sigma_z, sigma_y=sigma_y, n_stds=3, offset=phase)
    true = held.real * 2 * np.pi * sigma_z * sigma_y
    ours = gabor_values(np.array([parameters]), 40, 40)[0]
    rows, cols = (side // 2 for side in true.shape)
    assert_allclose(ours[39 - rows : 40 + rows, 39 - cols : 40 + cols], true, atol=1e-6)


@pytest.mark.parametrize("pooling", ["sum", "mean", "max"])
def test_features_are_the_definition(pooling):
    images = IMAGES["grey"]
    family = GaborBank(12, phases=True, pooling=pooling, step=2, sigmas=(0.6, 2.0)).fit(images)
    reached, found = np.zeros(12, int), family.evaluate(images)
    grey = images / 255
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
                        total += grey[:, y, x] * value * np.cos(2 * np.pi * f0 * z0 + phase)
                        reached[j] += 1
                responses.append(np.abs(total))
        pooled = {"sum": np.sum, "mean": np.mean, "max": np.max}[pooling](responses, axis=0)
        assert_allclose(found[:, j], pooled, rtol=2e-4, atol=1e-5)
    assert [family.macs(np.array([j])) for j in range(12)] == reached.tolist()


def test_parameters_stay_in_their_ranges():
    options = {"frequencies": (0.1, 0.2), "sigmas": (2.0, 3.0)}
    family = GaborBank(2000, **options).fit(IMAGES["grey"])
    low, high = family.filters_.min(axis=0), family.filters_.max(axis=0)
    assert_allclose(low, [0, 0.1, 2, 2, 0], atol=0.01)
    assert_allclose(high, [np.pi, 0.2, 3, 3, 0], atol=0.01)
    assert GaborBank(2000, phases=True).fit(IMAGES["grey"]).filters_[:, 4].max() > 6


def test_textures_are_told_apart(tmp_path):
    train, test = load_dataset("textures", "train"), load_dataset("textures", "test")
    family = GaborBank(120).fit(train.images)
    columns = ArrayColumns.from_family(family, train.images)
    model = ShareBoost(rounds=15).fit(columns, train.labels)
    model.to_classifier(family).save(tmp_path / "c.safetensors")
    again = visionshare.load(tmp_path / "c.safetensors")
    assert_array_equal(again.predict(test.images), model.predict(family.evaluate(test.images)))
    assert np.mean(again.predict(test.images) == test.labels) > 0.85


@pytest.mark.parametrize(
    "parameters",
    [
        {"n_filters": 0}, {"values": 0}, {"values": 1.5}, {"step": 0}, {"pooling": "median"},
        {"frequencies": (0.4, 0.1)}, {"frequencies": 0.3}, {"sigmas": (0.0, 1.0)}, {"phases": 1},
    ],
)  # fmt: skip
def test_bad_parameters_are_named(parameters):
    (name,) = parameters
    with pytest.raises(InputError, match=f"^{name}: got"):
        GaborBank(**parameters).fit(IMAGES["grey"])


def test_foreign_states_are_refused():
    family = GaborBank(4).fit(IMAGES["grey"])
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
