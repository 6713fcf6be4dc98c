"""Networks of ONNX, the images that they see, and how PyTorch trains them where it is installed."""

import itertools
import pickle

import numpy as np
import pytest
from scipy.signal import correlate

from benchmarks.architectures import KINDS, Width
from benchmarks.layers import convolution, dense, depthwise, maximum, mean
from benchmarks.onnx_networks import network_session, onnx_network, random_weights
from benchmarks.peers.networks import (
    Inputs,
    Network,
    NetworkPredictor,
    batches,
    one_cycle,
    untrained,
)
from visionshare.datasets import ImageSet, augmented_copies
from visionshare.errors import InputError
from visionshare.recipes import load_recipe

SHAPE = (3, 9, 8)
LAYERS = (
    convolution(4, 3, padding=1, stride=2),
    depthwise(3, padding=1),
    convolution(5, 1),
    maximum(),
    mean(),
    dense(6, rectified=True),
    dense(3),
)


def _plain(image, weights):
    """Return the scores of LAYERS by SciPy's correlations."""
    maps = np.pad(image, ((0, 0), (1, 1), (1, 1)))
    full = [correlate(maps, kernel, "valid")[0] for kernel in weights["0.weight"]]
    maps = np.maximum(np.stack(full)[:, ::2, ::2] + weights["0.bias"][:, None, None], 0)
    padded = np.pad(maps, ((0, 0), (1, 1), (1, 1)))
    pairs = zip(padded, weights["1.weight"][:, 0], strict=True)
    maps = np.stack([correlate(a, kernel, "valid") for a, kernel in pairs])
    maps = np.maximum(maps + weights["1.bias"][:, None, None], 0)
    maps = np.einsum("oc,chw->ohw", weights["2.weight"][:, :, 0, 0], maps)
    maps = np.maximum(maps + weights["2.bias"][:, None, None], 0)
    _, rows, columns = maps.shape
    cells = maps[:, : rows // 2 * 2, : columns // 2 * 2].reshape(5, rows // 2, 2, columns // 2, 2)
    means = cells.max(axis=(2, 4)).mean(axis=(1, 2))
    hidden = np.maximum(weights["5.weight"] @ means + weights["5.bias"], 0)
    return weights["6.weight"] @ hidden + weights["6.bias"]


def test_onnx_against_plain_correlations():
    pytest.importorskip("onnxruntime")
    weights = random_weights(LAYERS, SHAPE)
    session = network_session(onnx_network(LAYERS, SHAPE, weights))
    images = np.random.default_rng(1).normal(size=(4, *SHAPE)).astype(np.float32)
    (scores,) = session.run(None, {"image": images})
    expected = [_plain(image, weights) for image in images]
    np.testing.assert_allclose(scores, expected, atol=1e-5)


def test_a_predictor_survives_pickling():
    pytest.importorskip("onnxruntime")
    network = onnx_network(LAYERS[:-1], (3, 28, 28), random_weights(LAYERS[:-1], (3, 28, 28)))
    predict = NetworkPredictor(network, Inputs(120.0, 60.0))
    images = np.random.default_rng(0).integers(0, 256, (7, 28, 28, 3), np.uint8)
    labels = predict(images)
    assert labels.shape == (7,)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(predict))(images), labels)


def test_inputs_are_centered_channels_first_and_large_enough():
    images = np.random.default_rng(0).integers(0, 256, (3, 32, 30, 3), np.uint8)
    inputs = Inputs(100.0, 50.0)(images)
    assert inputs.shape == (3, 3, 32, 30)
    assert inputs.dtype == np.float32
    np.testing.assert_allclose(inputs[2, 1], (images[2, :, :, 1] - 100.0) / 50, atol=1e-5)
    assert Inputs(0.0, 1.0)(images[:, :8, :8, 0]).shape == (3, 1, 28, 28)


def test_the_rate_rises_and_falls():
    rates = [one_cycle(part) for part in np.linspace(0, 1, 101)]
    assert max(rates) == rates[20] == 1
    assert np.all(np.diff(rates[5:20]) > 0)
    assert np.all(np.diff(rates[20:]) < 0)
    assert rates[-1] == pytest.approx(0)
    assert one_cycle(1.5) == pytest.approx(0)


@pytest.fixture(scope="module")
def train():
    images = np.random.default_rng(0).integers(0, 256, (200, 12, 12), np.uint8)
    return ImageSet(images, np.arange(200), tuple(map(str, range(200))), "noise")


def _epochs(train, n, *arguments):
    """Return images and labels of epochs, each in the order of its labels."""
    stream, found = batches(train, *arguments), []
    for _ in range(n):
        parts, count = [], 0
        while count < len(train):
            parts.append(next(stream))
            count += len(parts[-1][0])
        images, labels = (np.concatenate(part) for part in zip(*parts, strict=True))
        found.append((images[np.argsort(labels)], labels))
    return found


def test_each_epoch_has_all_images_in_an_order_of_its_own(train):
    (first, order), (second, other) = _epochs(train, 2, None, 0)
    np.testing.assert_array_equal(first, train.images)
    np.testing.assert_array_equal(second, train.images)
    assert sorted(order) == sorted(other) == list(range(200))
    assert not np.array_equal(order, other)


def test_deformations_are_the_recipes_and_new_in_each_epoch(train):
    (first, order), (second, _) = _epochs(train, 2, "mnist-quick", 3)
    settings = load_recipe("mnist-quick").deformations.build()
    ((_, _, copies),) = augmented_copies(train.images[order], settings, random_state=3)
    np.testing.assert_array_equal(first, copies[np.argsort(order)])
    assert not np.array_equal(first, second)
    ((again, _),) = _epochs(train, 1, "mnist-quick", 3)
    np.testing.assert_array_equal(first, again)


def test_a_recipe_without_deformations_is_refused(train):
    with pytest.raises(InputError, match="recipe"):
        next(batches(train, "mnist", 0))


def test_networks_are_timed_without_training(train):
    pytest.importorskip("onnxruntime")
    predict = untrained(train, Network("lenet", 1e5, True))
    assert predict(train.images[:3]).shape == (3,)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_trained_is_what_is_timed(kind):
    """onnxruntime computes PyTorch's network in use, with its normalization folded in."""
    torch = pytest.importorskip("torch")
    pytest.importorskip("onnxruntime")
    from benchmarks.peers.networks import folded_weights, torch_network

    shape = (3, 32, 32)
    layers = KINDS[kind].make(Width(3, 2.0), shape, 10)
    network, rng = torch_network(layers, shape), np.random.default_rng(0)
    inputs = rng.normal(size=(40, *shape)).astype(np.float32)
    with torch.no_grad():
        for _ in range(3):
            network(torch.from_numpy(inputs))
        expected = network.eval()(torch.from_numpy(inputs)).numpy()
    session = network_session(onnx_network(layers, shape, folded_weights(network)))
    (scores,) = session.run(None, {"image": inputs})
    np.testing.assert_allclose(scores, expected, atol=1e-4)


def test_training_ends_with_its_seconds():
    pytest.importorskip("torch")
    pytest.importorskip("onnxruntime")
    from benchmarks.peers.networks import Network, Plan, fit, tune
    from benchmarks.peers.peer import Effort

    rng = np.random.default_rng(0)
    labels = np.tile([0, 1], 150)
    images = (rng.integers(0, 60, (300, 28, 28)) + 150 * labels[:, None, None]).astype(np.uint8)
    train = ImageSet(images, labels, ("dark", "bright"), "noise")
    effort = Effort(1, True, seconds=0.5, tuning=0.6)
    for network in (Network("lenet", None, False), Network("normalized", 1e5, True)):
        fitted = fit(network, train, Plan(5e-3, 0.0, 0.5), effort)
        assert fitted.epochs > 0
        assert fitted.seconds >= 0.5
        assert set(fitted.predict(train.images)) <= {0, 1}
    choice = tune(train, effort, Network("normalized", 1e5, False))
    assert len(choice["errors"]) == len(list(itertools.product(choice["rates"], (0, 1))))
    assert choice["n_train"] + choice["n_validation"] == 300
