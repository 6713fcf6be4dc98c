"""Residual sums against a sum of templates and their input."""

import dataclasses

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from visionshare import Network, Residual, Templates
from visionshare.errors import InputError
from visionshare.generators import family_from_state
from visionshare.generators.layers.forward import Forward
from visionshare.generators.layers.residual import ResidualLayer
from visionshare.generators.layers.templates import TemplateLayer

FLOATS = np.random.default_rng(0).random((12, 9, 7, 4), np.float32)
BYTES = np.random.default_rng(1).integers(0, 256, (40, 13, 11), np.uint8)


def fitted(images, size=3):
    return Residual(size, n_patches=300).fit(images, None, np.random.default_rng(0))


@pytest.mark.parametrize("size", [1, 3, 5])
def test_responses_are_added_to_the_input(size):
    for images in (FLOATS, (FLOATS * 255).astype(np.uint8)):
        layer = fitted(images, size)
        fields = {
            field.name: getattr(layer, field.name) for field in dataclasses.fields(TemplateLayer)
        }
        responses = Forward([TemplateLayer(**fields)]).outputs(images, 1)
        seen = images / np.float32(255 if images.dtype == np.uint8 else 1)
        assert_allclose(Forward([layer]).outputs(images, 1), responses + seen, rtol=1e-5, atol=1e-5)
        assert layer.out_shape == layer.in_shape
        assert layer.macs() == TemplateLayer(**fields).macs() + layer.middles.size


def test_a_smaller_layer_has_the_same_outputs():
    layer = fitted(FLOATS)
    every = Forward([layer]).outputs(FLOATS, 1).reshape(len(FLOATS), -1)
    outputs = np.array([3, 102, 63 * 4 - 1, 7])
    smaller, places, channels = layer.take(outputs)
    assert channels is None
    assert smaller.sources.tolist() == [2, 3]
    found = Forward([smaller]).outputs(FLOATS, 1).reshape(len(FLOATS), -1)
    assert_array_equal(found[:, places], every[:, outputs])
    again = ResidualLayer.from_state(smaller.to_state(), smaller.arrays, smaller.in_shape)
    assert_array_equal(Forward([again]).outputs(FLOATS, 1).reshape(len(FLOATS), -1), found)


def test_residual_sums_are_layers_of_a_network():
    layers = [Templates(5, 3, pool=2, n_patches=300), Residual(3, n_patches=300),
              Templates(6, 2, grid=2, n_patches=300)]  # fmt: skip
    network = Network(layers).fit(BYTES)
    again = family_from_state(*network.to_state())
    assert_array_equal(again.transform(BYTES), network.transform(BYTES))
    boxes = network.boxes(BYTES[0])
    assert (boxes >= 0).all()
    assert (boxes[:, [1, 3]] <= [13, 11]).all()


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("sources", [0]), ("sources", [0, 1, 2, 9]), ("sources", None), ("pads", [0, 1]),
        ("row_cells", [0, 0, 1, 1, 2, 2, 3, 3, 4]), ("row_cells", [0] * 9),
    ],
)  # fmt: skip
def test_broken_descriptions_are_refused(key, value):
    layer = fitted(FLOATS)
    with pytest.raises(InputError):
        ResidualLayer.from_state({**layer.to_state(), key: value}, layer.arrays, layer.in_shape)


@pytest.mark.parametrize(
    "parameters", [{"size": 2}, {"size": 0}, {"contrast": 1}, {"n_patches": 0}]
)
def test_bad_parameters_are_named(parameters):
    with pytest.raises(InputError, match=rf"^{next(iter(parameters))}: got"):
        Residual(**parameters).check_parameters()
