"""Units of the features of a family, and their gradients."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_digits

from visionshare import PatchTemplates, Pixels, Units
from visionshare.errors import InputError
from visionshare.generators.units.tuning import tunable


@pytest.fixture(scope="module")
def digits():
    return (load_digits().images[:200] * 15).astype(np.uint8)


def fitted(digits, activation="relu"):
    inner = PatchTemplates(3, 6, 2, (2.0,), n_patches=900)
    return Units(inner, 7, activation, random_state=3).fit(digits)


@pytest.mark.parametrize("activation", ["relu", "square"])
def test_a_unit_is_a_function_of_a_weighted_sum(digits, activation):
    family = fitted(digits, activation)
    inputs = family.part_.transform(digits)
    values = family.transform(digits, np.array([4, 1]))
    for column, j in zip(values.T, (4, 1), strict=True):
        sums = [sum(v * x for v, x in zip(family.directions_[j], row, strict=True))
                for row in inputs.astype(float)]  # fmt: skip
        sums = np.array(sums) + family.offsets_[j]
        expected = np.maximum(sums, 0) if activation == "relu" else sums**2
        assert_allclose(column, expected, rtol=1e-5, atol=1e-5)


def test_directions_are_drawn_for_standardized_features(digits):
    family = Units(Pixels(), 400).fit(digits)
    sums = Pixels().fit(digits).transform(digits) @ family.directions_.T + family.offsets_
    assert_allclose(sums.mean(axis=0), 0, atol=1e-3)
    # Inputs are correlated: the mean over units of the variances is what the draw fixes.
    varying = np.count_nonzero(digits.std(axis=0))
    assert np.var(sums, axis=0).mean() == pytest.approx(2 * varying / 64, rel=0.3)
    # A feature that is constant has no say.
    constant = digits.reshape(len(digits), -1).std(axis=0) == 0
    assert constant.any()
    assert_array_equal(family.directions_[:, constant], 0)


@pytest.mark.parametrize("activation", ["relu", "square"])
def test_gradients_are_those_of_differences(digits, activation):
    units, images = tunable(fitted(digits, activation)), digits[:30]
    rng = np.random.default_rng(0)
    values, seen = units.forward(images)
    G = rng.standard_normal(values.shape).astype(np.float32)
    gradients = units.backward(images, values, seen, G)
    assert len(gradients) == len(units.parameters)

    def objective():
        units.moved()
        return float((units.forward(images)[0].astype(float) * G).sum())

    for parameter, gradient in zip(units.parameters, gradients, strict=True):
        assert parameter.shape == gradient.shape
        direction = rng.standard_normal(parameter.shape).astype(np.float32)
        direction *= 1e-3 / np.linalg.norm(direction)
        before = parameter.copy()
        parameter += direction
        above = objective()
        parameter[...] = before - direction
        below = objective()
        parameter[...] = before
        slope = float((gradient * direction).sum())
        assert above - below == pytest.approx(2 * slope, rel=0.05, abs=2e-4)


def test_moved_units_are_a_family_with_the_same_values(digits):
    units = tunable(fitted(digits))
    for parameter in units.parameters:
        parameter *= np.float32(1.1)
    units.moved()
    values, _ = units.forward(digits)
    assert_allclose(units.family().transform(digits), values, rtol=1e-4, atol=1e-4)


def test_cost_counts_the_features_once(digits):
    family = fitted(digits)
    p = family.part_.n_features_
    assert family.macs() == family.part_.macs() + 7 * p
    assert family.macs(np.array([2, 5])) == family.part_.macs() + 2 * p
    assert fitted(digits, "square").macs(np.array([2])) == family.part_.macs() + p + 1
    assert family.added_macs(np.array([0])).tolist() == [p] * 7
    assert family.macs(np.array([], int)) == 0


@pytest.mark.parametrize(
    ("parameters", "name"),
    [({"n_units": 0}, "n_units"), ({"activation": "tanh"}, "activation"),
     ({"family": "pixels"}, "family"), ({"n_units": 10**14}, "n_units")],
)  # fmt: skip
def test_parameters_out_of_range_are_refused(digits, parameters, name):
    with pytest.raises(InputError, match=name):
        Units(**{"family": Pixels(), **parameters}).fit(digits)


@pytest.mark.parametrize("broken", ["directions", "offsets"])
def test_broken_descriptions_are_refused(digits, broken):
    state, arrays = fitted(digits).to_state()
    for wrong in (arrays[broken][:-1], arrays[broken].astype(float), arrays[broken] * np.nan):
        with pytest.raises(InputError):
            Units.from_state(state, {**arrays, broken: wrong})
    with pytest.raises(InputError, match="parts"):
        Units.from_state({**state, "parts": []}, arrays)
