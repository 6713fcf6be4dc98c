"""Units: weighted sums of all inputs, and their gradients."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_digits

from visionshare import Features, Network, PatchTemplates, Pixels, Units
from visionshare.errors import InputError
from visionshare.generators.layers.units import UnitLayer


@pytest.fixture(scope="module")
def digits():
    return (load_digits().images[:200] * 15).astype(np.uint8)


def fitted(digits, activation="relu"):
    inner = PatchTemplates(3, 6, 2, (2.0,), n_patches=900)
    return Network([Features(inner), Units(7, activation)], random_state=3).fit(digits)


@pytest.mark.parametrize("activation", ["relu", "square"])
def test_a_unit_is_a_function_of_a_weighted_sum(digits, activation):
    network = fitted(digits, activation)
    features, units = network.layers_
    inputs = features.family.transform(digits[..., None])
    values = network.transform(digits, np.array([4, 1]))
    for column, j in zip(values.T, (4, 1), strict=True):
        sums = [sum(v * x for v, x in zip(units.directions[j], row, strict=True))
                for row in inputs.astype(float)]  # fmt: skip
        sums = np.array(sums) + units.offsets[j]
        expected = np.maximum(sums, 0) if activation == "relu" else sums**2
        assert_allclose(column, expected, rtol=1e-5, atol=1e-5)


def test_directions_are_drawn_for_standardized_inputs(digits):
    network = Network([Features(Pixels()), Units(400)]).fit(digits)
    units = network.layers_[-1]
    sums = Pixels().fit(digits).transform(digits) @ units.directions.T + units.offsets
    assert_allclose(sums.mean(axis=0), 0, atol=1e-3)
    # Inputs are correlated: the mean over units of the variances is what the draw fixes.
    varying = np.count_nonzero(digits.std(axis=0))
    assert np.var(sums, axis=0).mean() == pytest.approx(2 * varying / 64, rel=0.3)
    # A constant input has no say.
    constant = digits.reshape(len(digits), -1).std(axis=0) == 0
    assert constant.any()
    assert_array_equal(units.directions[:, constant], 0)


@pytest.mark.parametrize("activation", ["relu", "square"])
def test_gradients_are_those_of_differences(digits, activation):
    tunable, images = fitted(digits, activation).tunable(), digits[:30]
    rng = np.random.default_rng(0)
    values, seen = tunable.forward(images)
    G = rng.standard_normal(values.shape).astype(np.float32)
    gradients = tunable.backward(images, values, seen, G)
    assert len(gradients) == len(tunable.parameters)

    def objective():
        tunable.moved()
        return float((tunable.forward(images)[0].astype(float) * G).sum())

    for parameter, gradient in zip(tunable.parameters, gradients, strict=True):
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


def test_moved_units_are_a_network_with_the_same_values(digits):
    tunable = fitted(digits).tunable()
    for parameter in tunable.parameters:
        parameter *= np.float32(1.1)
    tunable.moved()
    values, _ = tunable.forward(digits)
    assert_allclose(tunable.family().transform(digits), values, rtol=1e-4, atol=1e-4)


def test_cost_counts_the_inputs_once(digits):
    network = fitted(digits)
    features, units = network.layers_
    p = units.directions.shape[1]
    assert network.macs() == features.macs() + 7 * p
    assert network.macs(np.array([2, 5])) == features.macs() + 2 * p
    assert fitted(digits, "square").macs(np.array([2])) == features.macs() + p + 1
    assert network.added_macs(np.array([0])).tolist() == [p] * 7
    assert network.macs(np.array([], int)) == 0


@pytest.mark.parametrize(
    ("parameters", "name"),
    [({"n_units": 0}, "n_units"), ({"activation": "tanh"}, "activation"),
     ({"n_units": 10**14}, "n_units")],
)  # fmt: skip
def test_parameters_out_of_range_are_refused(digits, parameters, name):
    with pytest.raises(InputError, match=name):
        Network([Features(Pixels()), Units(**parameters)]).fit(digits)


@pytest.mark.parametrize("broken", ["directions", "offsets"])
def test_broken_descriptions_are_refused(digits, broken):
    layer = fitted(digits).layers_[-1]
    state, arrays = layer.to_state(), layer.arrays
    for wrong in (arrays[broken][:-1], arrays[broken].astype(float), arrays[broken] * np.nan):
        with pytest.raises(InputError):
            UnitLayer.from_state(state, {**arrays, broken: wrong}, layer.in_shape)
    for activation in ("tanh", None, 3):
        with pytest.raises(InputError):
            UnitLayer.from_state({"activation": activation}, arrays, layer.in_shape)
