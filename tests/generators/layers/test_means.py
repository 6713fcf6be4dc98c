"""Means of channels against those of numpy: floats, integers and gradients."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from visionshare import Means, Network, Templates
from visionshare.errors import InputError
from visionshare.generators.layers.forward import Forward
from visionshare.generators.layers.integers.numbers import Bits
from visionshare.generators.layers.integers.rounding import shifted
from visionshare.generators.layers.means import MeanLayer
from visionshare.generators.layers.means.integers import IntegerMeans
from visionshare.generators.layers.tuning import ByteNetwork

FLOATS = np.random.default_rng(0).random((12, 9, 7, 4), np.float32)
BYTES = np.random.default_rng(1).integers(0, 256, (12, 9, 7, 4), np.uint8)


def integer_means(**changes):
    fields = {
        "in_shape": (9, 7, 4),
        "weights": np.array([65, 127, 1]).reshape(3, 1, 1, 1),
        "bits": 8,
        "biases": np.zeros(3, np.int64),
        "shifts": np.array([12, 12, 0]),
        "pads": (0, 0),
        "row_cells": np.zeros(9, np.int64),
        "col_cells": np.zeros(7, np.int64),
        "sources": np.array([3, 0, 1]),
    }
    return IntegerMeans(**{**fields, **changes})


def test_means_are_those_of_numpy():
    layer = Means().fit(FLOATS, None, np.random.default_rng(0))
    assert layer.macs() == 9 * 7 * 4
    assert_allclose(
        Forward([layer]).outputs(FLOATS, 1)[:, 0, 0], FLOATS.mean(axis=(1, 2)), rtol=1e-5
    )
    means = BYTES.mean(axis=(1, 2)) / 255
    assert_allclose(Forward([layer]).outputs(BYTES, 1)[:, 0, 0], means, rtol=1e-5)


def test_a_smaller_layer_asks_for_its_channels_alone():
    layer = Means().fit(FLOATS, None, np.random.default_rng(0))
    smaller, places, channels = layer.take(np.array([3, 1, 3]))
    assert channels.tolist() == [1, 3]
    found = Forward([smaller.take_channels(channels)]).outputs(FLOATS[..., channels], 1)
    expected = Forward([layer]).outputs(FLOATS, 1)
    assert_array_equal(found[:, 0, 0, places], expected[:, 0, 0, [3, 1, 3]])
    assert layer.macs(np.array([3, 1, 3])) == 2 * 63
    assert layer.added_macs(np.array([0, 1]), np.array([1])).tolist() == [63, 0]
    again = MeanLayer.from_state(smaller.to_state(), {}, smaller.in_shape)
    assert again.describe(1) == {"kind": "mean", "channel": 3}


def test_integers_are_shifted_sums():
    layer = integer_means()
    images = BYTES.copy()
    images[0] = 255
    found = Forward([layer]).outputs(images, 1)[:, 0, 0]
    sums = images.astype(np.int64).sum(axis=(1, 2))[:, layer.sources] * [65, 127, 1]
    assert_array_equal(found, np.minimum(shifted(sums, layer.shifts), 255))
    assert found[0].tolist() == [255, 255, 255]
    again = IntegerMeans.from_state(layer.to_state(), layer.arrays, layer.in_shape)
    assert_array_equal(Forward([again]).outputs(images, 1)[:, 0, 0], found)


def test_rounded_means_are_those_of_integers():
    images = BYTES[..., 0]
    network = Network([Templates(6, 3, n_patches=300), Means()]).fit(images)
    moving = ByteNetwork(network)
    moving.quantize(Bits(4, 4), images)
    values, _ = moving.forward(images)
    found = moving.family().transform(images)
    assert_array_equal(np.ldexp(found, moving.exponents), values)
    # What 8 bits of the weight leave of a mean.
    assert_allclose(values.mean(), network.transform(images).mean(), rtol=0.05)


@pytest.mark.parametrize(
    "changes",
    [
        {"biases": np.array([0, 1, 0])}, {"row_cells": np.arange(9) // 5},
        {"sources": np.array([0, 1, 4])}, {"weights": np.ones((3, 2, 2, 1), np.int64)},
        {"in_shape": (9000, 9000, 4), "row_cells": np.zeros(9000, np.int64),
         "col_cells": np.zeros(9000, np.int64)},
    ],
)  # fmt: skip
def test_broken_integers_are_refused(changes):
    with pytest.raises(InputError):
        integer_means(**changes)


@pytest.mark.parametrize("sources", [[0, 0], [2, 1], [4], [], None])
def test_broken_descriptions_are_refused(sources):
    with pytest.raises(InputError, match=r"^sources: got"):
        MeanLayer.from_state({"sources": sources}, {}, (9, 7, 4))
