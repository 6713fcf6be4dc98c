"""Products of pairs: every rule, the definition, and a problem that only they solve."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import visionshare
from visionshare import Products, ShareBoost
from visionshare.columns import ArrayColumns
from visionshare.errors import InputError
from visionshare.testing import check_family

rng = np.random.default_rng(0)
INPUTS = {
    "numbers": rng.normal(size=(40, 7)),
    "gray": rng.integers(0, 256, (30, 3, 4), np.uint8),
    "one": rng.random((30, 1)),
    "constant": np.column_stack([rng.random(30), np.full(30, 3.0)]),
}


@pytest.mark.parametrize("inputs", INPUTS)
@pytest.mark.parametrize("options", [{}, {"inputs": False}, {"squares": False, "scaling": "none"}])
def test_every_rule_of_a_family(inputs, options):
    check_family(Products(**options), INPUTS[inputs])


def test_features_are_the_definition():
    X = INPUTS["numbers"].astype(np.float32).astype(np.float64)
    family = Products().fit(X)
    assert family.n_features_ == 7 + 28
    scaled = (X - X.mean(axis=0)) / X.std(axis=0)
    for j, column in enumerate(family.transform(X).T):
        a, b = family.pairs_[j]
        assert_allclose(column, scaled[:, a] * (scaled[:, b] if b >= 0 else 1), atol=1e-5)
    assert Products(squares=False).fit(X).n_features_ == 7 + 21
    assert Products(inputs=False).fit(X).n_features_ == 28
    chosen = family.take(np.array([3, 8, 8 + 7]))
    assert chosen.pairs_.tolist() == [[3, -1], [0, 1], [1, 2]]
    assert chosen.macs() == 4 + 2
    assert family.describe(8) == {"kind": "product", "positions": [(0,), (1,)]}


def test_exclusive_or_needs_a_product(tmp_path):
    X = np.random.default_rng(1).normal(size=(400, 6))
    y = (X[:, 1] * X[:, 4] > 0).astype(int)
    family = Products().fit(X[:300])
    model = ShareBoost(rounds=1).fit(ArrayColumns.from_family(family, X[:300]), y[:300])
    assert family.pairs_[model.support_].tolist() == [[1, 4]]
    model.to_classifier(family).save(tmp_path / "c.safetensors")
    again = visionshare.load(tmp_path / "c.safetensors")
    assert np.mean(again.predict(X[300:].astype(np.float32)) == y[300:]) > 0.95


def test_bad_parameters_and_too_many_pairs():
    for parameters in ({"inputs": 1}, {"squares": "no"}, {"scaling": "max"}):
        (name,) = parameters
        with pytest.raises(InputError, match=f"^{name}: got"):
            Products(**parameters).fit(INPUTS["numbers"])
    with pytest.raises(InputError, match="10000 inputs"):
        Products().fit(np.zeros((2, 10_000), np.float32))


def test_a_product_that_is_too_large_is_infinite():
    family = Products(scaling="none").fit(INPUTS["numbers"])
    state, arrays = family.to_state()
    largest = np.full_like(arrays["scale"], 3e38)
    family = Products.from_state(state, {**arrays, "scale": largest})
    values = family.transform(np.ones((1, *family.image_shape_), np.float32))
    assert np.isinf(values).any()


@pytest.mark.parametrize("name", ["pairs", "offset", "scale"])
def test_foreign_arrays_are_refused(name):
    state, arrays = Products().fit(INPUTS["numbers"]).to_state()
    far = arrays[name] + 100 if name == "pairs" else arrays[name][:-1]
    for wrong in (far, arrays[name].astype(np.float64), arrays[name][None]):
        with pytest.raises(InputError):
            Products.from_state(state, {**arrays, name: wrong})
    back = Products.from_state(state, arrays)
    assert_array_equal(back.pairs_, arrays["pairs"])
