"""Shapes, multiply-accumulates and folded normalization, against hand and brute force."""

import numpy as np
import pytest

from benchmarks.architectures import KINDS, LENET_5, Width, lenet, width_within
from benchmarks.layers import (
    Normalization,
    convolution,
    dense,
    depthwise,
    fold,
    macs,
    maximum,
    mean,
    n_weights,
    residual,
    shapes,
)

GRAY, COLOR = (1, 28, 28), (3, 32, 32)


def test_macs_of_lenet_are_those_counted_by_hand():
    by_hand = 28 * 28 * 6 * 25 + 10 * 10 * 16 * 6 * 25 + 400 * 120 + 120 * 84 + 84 * 10
    assert by_hand == 416_520
    assert macs(lenet(LENET_5, GRAY, 10), GRAY) == by_hand
    # 32 × 32 is not padded: the same maps of 28 × 28, from three channels.
    assert macs(lenet(LENET_5, COLOR, 10), COLOR) == by_hand + 28 * 28 * 6 * 2 * 25


def test_weights_of_lenet_are_those_that_are_published():
    by_hand = 6 * 26 + 16 * 151 + 120 * 401 + 84 * 121 + 10 * 85
    assert n_weights(lenet(LENET_5, GRAY, 10), GRAY) == by_hand == 61_706


def test_macs_of_each_kind_of_layer():
    layers = [
        convolution(4, 3, padding=1, stride=2, normalized=True),
        depthwise(3, padding=1, normalized=True),
        maximum(),
        mean(),
        dense(5),
    ]
    assert shapes(layers, (3, 8, 6)) == [
        (3, 8, 6), (4, 4, 3), (4, 4, 3), (4, 2, 1), (4, 1, 1), (5, 1, 1),
    ]  # fmt: skip
    assert macs(layers, (3, 8, 6)) == 4 * 3 * 4 * 27 + 4 * 3 * 4 * 9 + 4 * 5
    assert n_weights(layers, (3, 8, 6)) == 4 * 28 + 4 * 10 + 5 * 5


def test_macs_and_weights_of_resnet8_are_those_that_are_published():
    layers = KINDS["resnet8"].make(Width(16, 1.0), COLOR, 10)
    assert macs(layers, COLOR) == 12_501_632
    # Published are four numbers more for each normalized map.
    assert n_weights(layers, COLOR) == 78_666 - 4 * (3 * 16 + 2 * 32 + 2 * 64)


def test_a_residual_sum_of_the_same_shape_has_no_third_convolution():
    assert n_weights([residual(4)], (4, 8, 8)) == 2 * 4 * 37
    assert macs([residual(4, 2)], (4, 8, 8)) == 16 * 4 * (36 + 36 + 4)


def test_layers_that_leave_nothing_are_refused():
    with pytest.raises(ValueError, match="leaves nothing"):
        shapes([convolution(1, 5)], (1, 4, 9))


def test_folded_weights_do_what_both_did():
    rng = np.random.default_rng(0)
    weight, inputs = rng.normal(size=(4, 2, 3, 3)), rng.normal(size=(2, 3, 3))
    gamma, beta, average = rng.normal(size=(3, 4))
    normalization = Normalization(gamma, beta, average, rng.uniform(0.1, 2, 4), 1e-5)
    folded, bias = fold(weight, normalization)
    for k in range(4):
        response = (weight[k] * inputs).sum()
        deviation = np.sqrt(normalization.variance[k] + 1e-5)
        expected = gamma[k] * (response - average[k]) / deviation + beta[k]
        assert (folded[k] * inputs).sum() + bias[k] == pytest.approx(expected, rel=1e-4, abs=1e-5)


@pytest.mark.parametrize("shape", [GRAY, COLOR])
@pytest.mark.parametrize("kind", [key for key, kind in KINDS.items() if kind.of_any_width])
def test_networks_use_most_of_their_budget(kind, shape):
    def needed(width):
        return macs(KINDS[kind].make(width, shape, 10), shape)

    for budget in (1e5, 2e5, 4e5, 1e6):
        width = width_within(KINDS[kind], budget, shape, 10)
        assert 0.75 * budget < needed(width) <= budget or width == LENET_5
        wider = Width(width.first + 1, 1.1 * width.others)
        assert needed(wider) > budget


def test_lenet_itself_stands_for_a_budget_that_it_nearly_keeps():
    assert width_within(KINDS["lenet"], 4e5, GRAY, 10) == LENET_5
    assert width_within(KINDS["lenet"], 4e5, COLOR, 10) != LENET_5
    # What nothing keeps is met by the least.
    assert width_within(KINDS["separable"], 1.0, GRAY, 10).first == 1
