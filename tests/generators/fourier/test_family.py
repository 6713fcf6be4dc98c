"""Random Fourier maps: the kernels they approximate, a plain twin, and use in a classifier."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_digits

import visionshare
from visionshare import RandomFourier, ShareBoost
from visionshare.columns import ArrayColumns
from visionshare.errors import InputError
from visionshare.testing import check_family

rng = np.random.default_rng(0)
INPUTS = {
    "numbers": rng.normal(size=(40, 7)),
    "gray": rng.integers(0, 256, (30, 5, 6), np.uint8),
    "color": rng.random((30, 4, 4, 3), np.float32),
    "constant and one-hot": np.column_stack([np.eye(3)[rng.integers(3, size=30)], np.ones(30)]),
}


@pytest.mark.parametrize("inputs", INPUTS)
@pytest.mark.parametrize("kernel", ["gaussian", "laplacian", "cauchy"])
def test_every_rule_of_a_family(inputs, kernel):
    check_family(RandomFourier(37, kernel, (1.0, 3.0)), INPUTS[inputs])


@pytest.mark.parametrize(
    ("kernel", "true"),
    [
        ("gaussian", lambda d, s: np.exp(-np.sum(d**2, axis=-1) / (2 * s**2))),
        ("laplacian", lambda d, s: np.exp(-np.sum(np.abs(d), axis=-1) / s)),
        ("cauchy", lambda d, s: np.prod(1 / (1 + (d / s) ** 2), axis=-1)),
    ],
)
def test_products_of_pairs_are_the_kernel(kernel, true):
    X = np.random.default_rng(1).normal(size=(12, 3)).astype(np.float32)
    n = 20_000
    family = RandomFourier(n, kernel, (1.7,), scaling="none").fit(X)
    values = family.transform(X).astype(np.float64)
    products = values @ values.T / n
    # Each pair's cosine of a difference has a variance of at most 1.
    assert_allclose(products, true(X[:, None] - X[None], 1.7), atol=5 / np.sqrt(n))


def test_features_are_the_definition():
    X = INPUTS["gray"]
    family = RandomFourier(21, bandwidths=(0.5, 2.0), random_state=3).fit(X)
    rows = X.reshape(len(X), -1) / 255
    deviation = rows.std(axis=0)
    phase = ((rows - rows.mean(axis=0)) / deviation) @ family.frequencies_.T.astype(np.float64)
    features = family.transform(X)
    assert_allclose(features[:, ::2], np.cos(phase), atol=1e-4)
    assert_allclose(features[:, 1::2], np.sin(phase), atol=1e-4)
    chosen = family.take(np.array([7, 2, 3]))
    assert_array_equal(chosen.groups, [1, 0, 0])
    assert chosen.macs() == 2 * 30
    assert family.macs() == 21 * 30
    assert chosen.describe(0)["function"] == "sin"
    assert_array_equal(chosen.describe(1)["frequency"].ravel(), family.frequencies_[1])


def test_bandwidths_are_one_several_or_drawn():
    X = INPUTS["numbers"]
    assert set(RandomFourier(50, bandwidths=(2.0,)).fit(X).bandwidths_.tolist()) == {2.0}
    assert set(RandomFourier(50, bandwidths=(1.0, 2.0)).fit(X).bandwidths_.tolist()) == {1.0, 2.0}
    drawn = RandomFourier(400, bandwidths=(1.0, 100.0), between=True).fit(X).bandwidths_
    assert len(np.unique(drawn)) == 400
    assert 1 <= drawn.min() < 1.2
    assert 0.4 < np.mean(drawn < 10) < 0.6
    spread = RandomFourier(2000, bandwidths=(4.0,)).fit(X).frequencies_.std()
    assert_allclose(spread, 1 / 4, rtol=0.05)


def test_inputs_that_were_constant_say_nothing_later():
    X = np.column_stack([rng.normal(size=50), np.full(50, 7.0)])
    family = RandomFourier(9).fit(X)
    other = X.copy()
    other[:, 1] = -100
    assert_array_equal(family.transform(other), family.transform(X))


def test_pairs_enter_together_and_beat_the_pixels(tmp_path):
    digits = load_digits()
    X, y = digits.images.astype(np.uint8) * 15, digits.target
    family = RandomFourier(300, bandwidths=(8.0, 16.0)).fit(X[:1200])
    model = ShareBoost(rounds=60).fit(ArrayColumns.from_family(family, X[:1200]), y[:1200])
    assert all(len(step.feature) == 2 for step in model.path_)
    assert all(step.feature[0] // 2 == step.feature[1] // 2 for step in model.path_)
    model.to_classifier(family).save(tmp_path / "c.safetensors")
    again = visionshare.load(tmp_path / "c.safetensors")
    assert again.macs == 60 * 64 + 120 * 10
    assert_array_equal(again.predict(X[1200:]), model.predict(family.transform(X[1200:])))
    assert np.mean(again.predict(X[1200:]) == y[1200:]) > 0.9


@pytest.mark.parametrize(
    "parameters",
    [
        {"n_pairs": 0}, {"n_pairs": 2.5}, {"kernel": "sinc"}, {"bandwidths": ()},
        {"bandwidths": (0.0,)}, {"bandwidths": 3.0}, {"scaling": "max"}, {"between": 1},
        {"random_state": 0.5},
    ],
)  # fmt: skip
def test_bad_parameters_are_named(parameters):
    (name,) = parameters
    with pytest.raises(InputError, match=f"^{name}: got"):
        RandomFourier(**parameters).fit(INPUTS["numbers"])


@pytest.mark.parametrize("name", ["frequencies", "bandwidths", "offset", "scale", "ids"])
def test_foreign_arrays_are_refused(name):
    family = RandomFourier(4).fit(INPUTS["numbers"])
    state, arrays = family.to_state()
    for wrong in (arrays[name][..., :-1], arrays[name].astype(np.float64), arrays[name][None]):
        with pytest.raises(InputError):
            RandomFourier.from_state(state, {**arrays, name: wrong})
