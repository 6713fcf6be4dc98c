"""Networks whose parameters move: floats, and bytes in few bits."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from visionshare import (
    Channels,
    Depthwise,
    Deslant,
    Features,
    LocalBinaryPatterns,
    Means,
    Network,
    PatchTemplates,
    Pixels,
    Residual,
    Templates,
    Units,
)
from visionshare.errors import InputError
from visionshare.generators.layers.integers.numbers import Bits
from visionshare.generators.layers.tuning import ByteNetwork, check_quantizable, quantized

IMAGES = np.random.default_rng(0).integers(0, 256, (40, 13, 11), np.uint8)


def maps(n=3, size=3, **options):
    return Templates(n, size, n_patches=300, **options)


STACKS = {
    "templates": [maps(6, 2, grid=2)],
    "two": [maps(pool=2), maps(6, 2, grid=2)],
    "three": [maps(4), maps(3, pool=2, padding=1), maps(6, 2, grid=2)],
    "deslanted": [Deslant(), maps(pool=2), maps(6, 2, grid=2), Units(5)],
    "channels": [Channels(("gray", "orientations"), 4), maps(pool=2), maps(6, 2, grid=2)],
    "masks": [maps(pool=2), Features(PatchTemplates(2, 6, 2, (2.0,), 0.3, n_patches=300))],
    "depthwise": [maps(4), Depthwise(2, 2, pool=2, n_patches=300), maps(5, 2, grid=1)],
    "residual": [maps(4, pool=2), Residual(3, n_patches=300), maps(6, 2, grid=2)],
    "strided": [maps(4, stride=2), maps(5, 2, grid=1)],
    "means": [maps(4), Depthwise(2, 2, pool=2, n_patches=300), Means(), Units(5)],
    "units": [maps(6, 2, grid=2), Units(7), Units(4, "square")],
}


def chosen(name):
    network = Network(STACKS[name]).fit(IMAGES)
    ids = np.random.default_rng(1).permutation(network.n_features_)[:9]
    return network.take(np.sort(ids))


@pytest.mark.parametrize("name", STACKS)
def test_features_that_move_are_the_same_features(name):
    network = chosen(name)
    tunable = network.tunable()
    values, _ = tunable.forward(IMAGES)
    assert_allclose(values, network.transform(IMAGES), rtol=1e-4, atol=1e-4)
    for parameter in tunable.parameters:
        parameter *= np.float32(1.2)
    tunable.moved()
    moved = tunable.family()
    expected = tunable.forward(IMAGES)[0]
    assert_allclose(moved.transform(IMAGES), expected, rtol=1e-4, atol=1e-4)
    assert moved.macs() == network.macs()
    # A network that was taken stays as it is.
    before = moved.transform(IMAGES)
    tunable.parameters[0][...] *= 2
    tunable.moved()
    assert_array_equal(moved.transform(IMAGES), before)


@pytest.mark.parametrize("name", STACKS)
def test_gradients_are_those_of_differences(name):
    images = (IMAGES / np.float32(255)).astype(np.float32)
    tunable = chosen(name).tunable()
    values, seen = tunable.forward(images)
    rng = np.random.default_rng(2)
    G = rng.normal(size=values.shape).astype(np.float32)
    gradients = tunable.backward(images, values, seen, G)
    threads = tunable.backward(images, values, tunable.forward(images, 2)[1], G, 2)

    def objective():
        tunable.moved()
        return float((tunable.forward(images)[0].astype(float) * G).sum())

    for parameter, gradient, other in zip(tunable.parameters, gradients, threads, strict=True):
        assert_array_equal(gradient, other)
        # Along the gradient itself: a maximum that moves elsewhere matters little.
        direction = gradient / max(float(np.linalg.norm(gradient)), 1e-9)
        before = parameter.copy()
        ends = []
        for step in (1e-3, -1e-3):
            parameter[...] = before + step * direction
            ends.append(objective())
        parameter[...] = before
        slope = float((gradient * direction).sum())
        assert (ends[0] - ends[1]) / 2e-3 == pytest.approx(slope, rel=0.06, abs=0.05)


@pytest.mark.parametrize(
    "layers",
    [
        [Features(Pixels())],
        [maps(), Deslant(), maps(grid=1)],
        [maps(), Channels(("magnitude",)), maps(grid=1)],
        [maps(), Features(LocalBinaryPatterns(grid=1))],
        [Deslant()],
    ],
    ids=str,
)
def test_layers_that_gradients_do_not_reach_are_refused(layers):
    with pytest.raises(InputError, match=r"^family: got"):
        Network(layers).check_tunable()


QUANTIZABLE = ["templates", "two", "three", "deslanted", "depthwise", "residual", "units"]


@pytest.mark.parametrize("bits", [8, 4, 2, "ternary"])
@pytest.mark.parametrize("name", QUANTIZABLE)
def test_integers_are_what_the_rounded_network_computes(name, bits):
    network = chosen(name)
    if bits == 2 and len(network.layers_[-1].out_shape) and name in ("deslanted", "units"):
        # Two bits have no 0 for inputs that a unit does not see.
        network = Network(STACKS[name]).fit(IMAGES)
    features = ByteNetwork(network)
    features.quantize(Bits(bits, bits), IMAGES)
    rounded, _ = features.forward(IMAGES)
    integers = features.family()
    assert integers.in_whole_numbers
    values = integers.transform(IMAGES)
    assert_array_equal(values, np.floor(values))
    assert_array_equal(np.ldexp(values, features.exponents), rounded)
    again = quantized(network, IMAGES, Bits(bits, bits))
    assert_array_equal(again.transform(IMAGES), values)


@pytest.mark.parametrize("name", QUANTIZABLE)
def test_eight_bits_are_close_to_floats(name):
    network = chosen(name)
    values = quantized(network, IMAGES, Bits(8, 8)).transform(IMAGES)
    expected = network.transform(IMAGES)
    moving = np.flatnonzero((expected.std(axis=0) > 0) & (values.std(axis=0) > 0))
    correlations = [np.corrcoef(values[:, j], expected[:, j])[0, 1] for j in moving]
    assert np.median(correlations) > 0.97


def test_bytes_move_as_floats_until_they_are_rounded():
    network = chosen("deslanted")
    features = ByteNetwork(network)
    plain = features.family()
    assert_allclose(plain.transform(IMAGES), network.transform(IMAGES), rtol=1e-3, atol=1e-3)
    values, seen = features.forward(IMAGES)
    gradients = features.backward(IMAGES, values, seen, np.ones_like(values))
    assert [g.shape for g in gradients] == [p.shape for p in features.parameters]


@pytest.mark.parametrize("name", ["channels", "masks"])
def test_what_has_no_integers_is_refused(name):
    with pytest.raises(InputError, match=r"^features: got"):
        check_quantizable(Network(STACKS[name]), "features")
    with pytest.raises(InputError, match=r"^family: got 'pixels'"):
        check_quantizable(Pixels())
    with pytest.raises(InputError, match=r"^family: got 'residual"):
        check_quantizable(Network([Residual(), maps()]))
