"""Monomials against plain products of the factors."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from visionshare import CompactClassifier, GaborBank, Monomials, Pixels, load
from visionshare.errors import InputError
from visionshare.testing import check_family

MONOMIALS = [(0,), (3, 1), (2, 2, 5), (7,), (0, 1, 2, 3)]


@pytest.fixture
def images():
    return np.random.default_rng(0).integers(0, 256, (30, 4, 4), np.uint8)


@pytest.mark.parametrize("monomials", [None, MONOMIALS])
@pytest.mark.parametrize("family", [Pixels(), GaborBank(n_filters=9)])
def test_family_rules(family, monomials, images):
    check_family(Monomials(family, monomials), images)


def test_values_are_the_products(images):
    family = Monomials(Pixels(), MONOMIALS).fit(images)
    factors = Pixels().fit(images).transform(images)
    for j, monomial in enumerate(MONOMIALS):
        expected = np.ones(len(images), np.float32)
        for f in sorted(monomial):
            expected = expected * factors[:, f]
        assert_array_equal(family.transform(images)[:, j], expected)


@pytest.mark.parametrize("n", [1, 7, 8, 33])
def test_sums_are_those_of_the_products(n):
    rng = np.random.default_rng(1)
    images = rng.integers(0, 256, (n, 4, 4), np.uint8)
    monomials = [rng.integers(0, 16, rng.integers(1, 5)) for _ in range(50)]
    family = Monomials(Pixels(), monomials).fit(images)
    weights = rng.normal(size=(3, 50)).astype(np.float32)
    factors = images.reshape(n, 16) / 255
    products = np.stack([factors[:, m].prod(axis=1) for m in monomials], axis=1)
    assert_allclose(family.weighted_sums(images, weights, 2), products @ weights.T, atol=1e-5)


def test_cost_counts_each_factor_once(images):
    bank = GaborBank(n_filters=4).fit(images)
    family = Monomials(GaborBank(n_filters=4), [(0, 1), (0, 0, 1), (2,)]).fit(images)
    assert family.macs() == bank.macs([0, 1, 2]) + 1 + 2
    assert family.take([2]).base_.n_features_ == 1
    assert family.describe(1)["kind"] == "monomial"
    assert family.describe(2)["kind"] == "gabor"


def test_a_classifier_file_holds_them(images, tmp_path):
    family = Monomials(Pixels(), MONOMIALS).fit(images).take([1, 2])
    weights = np.array([[1, 0], [0, 1]], np.float32)
    model = CompactClassifier(family, weights, np.zeros(2, np.float32), np.array([0, 1]))
    model.save(tmp_path / "c.safetensors")
    again = load(tmp_path / "c.safetensors")
    assert_array_equal(again.decision_function(images), model.decision_function(images))


def test_wrong_things_are_refused(images):
    with pytest.raises(InputError, match=r"^family: got"):
        Monomials().fit(images)
    for monomial in ((), 3, [[1]]):
        with pytest.raises(InputError, match=r"^monomials: got"):
            Monomials(Pixels(), [monomial]).fit(images)
    with pytest.raises(InputError, match=r"^features: got"):
        Monomials(Pixels(), [(16,)]).fit(images)
    state, arrays = Monomials(Pixels(), MONOMIALS).fit(images).to_state()
    for name, wrong in [
        ("starts", arrays["starts"][:-1]),
        ("starts", np.zeros(0, np.int64)),
        ("starts", arrays["starts"] * 0),
        ("factors", arrays["factors"] + 100),
        ("factors", arrays["factors"][:-1]),
    ]:
        with pytest.raises(InputError):
            Monomials.from_state(state, {**arrays, name: wrong})
    twice = {n.replace("0.", "1."): a for n, a in arrays.items()}
    with pytest.raises(InputError, match=r"^parts: got"):
        Monomials.from_state({**state, "parts": state["parts"] * 2}, {**twice, **arrays})
