"""Stacks of maps under patches and units, piece by piece, on one thread.

Each piece is timed beside a product of large matrices with as many multiply-accumulates, those of
all positions: the ratio is 1 where a piece is as fast as this core multiplies and adds. Gradients
need fewer, as of all positions in a cell one has a gradient.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from benchmarks.architectures import LENET_5, lenet
from benchmarks.measuring import Paired
from benchmarks.onnx_networks import network_session, onnx_network, random_weights
from visionshare import CompactClassifier, Deslant, Network, Templates, Units
from visionshare.export import compile_classifier, onnx_program
from visionshare.generators.layers.integers.numbers import Bits
from visionshare.generators.layers.layer import Layer
from visionshare.generators.layers.templates import TemplateLayer
from visionshare.generators.layers.templates.moving import MovingTemplates
from visionshare.generators.layers.tuning import quantized

BATCH, SIDE, MACS = 128, 1024, 3_000_000_000

Call = Callable[[], Any]


class Piece(NamedTuple):
    """A call and the multiply-accumulates of its forward pass."""

    call: Call
    macs: float


def _network(layers: list[Layer], images: np.ndarray) -> Network:
    """Return a fitted network, whose layers lie in memory as fine-tuning leaves them."""
    return Network(layers).fit(images).tunable().family()


def _maps(n: int, padding: int, size: int = 3) -> Templates:
    return Templates(n, size, pool=2, padding=padding, n_patches=3000)


def _fitted(name: str) -> tuple[np.ndarray, Network]:
    """Return images and a stack for digits, or for photographs."""
    rng = np.random.default_rng(0)
    layers: list[Layer]
    if name == "digits":
        images = rng.random((300, 28, 28, 1), np.float32)
        layers = [_maps(4, 0), _maps(16, 0), Templates(64, 3, grid=3, n_patches=3000), Units(32)]
    else:
        images = rng.random((300, 32, 32, 3), np.float32)
        layers = [_maps(16, 1), _maps(32, 1), _maps(64, 1)]
        layers += [Templates(64, 3, grid=2, n_patches=3000), Units(64)]
    return images[:BATCH], _network(layers, images)


def _pieces(name: str) -> dict[str, Piece]:
    images, stack = _fitted(name)
    tunable = stack.tunable()
    values, seen = tunable.forward(images)
    G, macs = np.ones_like(values), float(stack.macs()) * BATCH
    pieces = {
        "forward": Piece(partial(stack.transform, images), macs),
        "forward of one": Piece(partial(stack.transform, images[:1]), macs / BATCH),
        "backward": Piece(partial(tunable.backward, images, values, seen, G), 2 * macs),
    }
    rng = np.random.default_rng(1)
    inputs = images
    for level, layer in enumerate(stack.layers_[:-1], 1):
        assert isinstance(layer, TemplateLayer)
        moving = MovingTemplates(layer)
        outputs, places = moving.forward(inputs, 1)
        slopes = rng.normal(size=outputs.shape).astype(np.float32)
        forward = Piece(partial(moving.forward, inputs, 1), float(layer.macs()) * BATCH)
        own = partial(moving.backward, inputs, places, slopes, 1, False)
        below = partial(moving.backward, inputs, places, slopes, 1, True)
        pieces |= _of_layer(f"layer {level}", forward, own, below)
        inputs = outputs
    return pieces


def _of_layer(name: str, forward: Piece, own: Call, below: Call) -> dict[str, Piece]:
    return {
        f"{name} forward": forward,
        f"{name} template gradients": Piece(own, forward.macs),
        f"{name} all gradients": Piece(below, forward.macs),
    }


NAMES = {
    "digits": ["layer 1", "layer 2", "layer 3"],
    "photographs": ["layer 1", "layer 2", "layer 3", "layer 4"],
}
CASES = [
    (stack, piece)
    for stack, layers in NAMES.items()
    for piece in [
        "forward", "forward of one", "backward",
        *(f"{layer} {what}" for layer in layers
          for what in ("forward", "template gradients", "all gradients")),
    ]
]  # fmt: skip


@pytest.fixture(scope="module")
def stacks() -> dict[str, dict[str, Piece]]:
    return {name: _pieces(name) for name in NAMES}


def _compare(paired: Paired, piece: Piece) -> None:
    calls = max(1, round(MACS / piece.macs))
    rows = round(piece.macs * calls / SIDE**2)
    rng = np.random.default_rng(1)
    left, right = rng.random((rows, SIDE), np.float32), rng.random((SIDE, SIDE), np.float32)
    out = np.empty((rows, SIDE), np.float32)

    def ours() -> None:
        for _ in range(calls):
            piece.call()

    with threadpool_limits(1):
        paired(ours, lambda: np.dot(left, right, out=out), rounds=5)


@pytest.mark.parametrize(("stack", "piece"), CASES)
def test_against_a_product(
    paired: Paired, stacks: dict[str, dict[str, Piece]], stack: str, piece: str
) -> None:
    _compare(paired, stacks[stack][piece])


@pytest.mark.parametrize("quantize", ["none", "int8"])
@pytest.mark.parametrize("stack", list(NAMES))
def test_c_against_a_product(paired: Paired, stack: str, quantize: str) -> None:
    """The stack's own C, image by image, called for a batch."""
    images, family = _fitted(stack)
    weights = np.random.default_rng(2).normal(size=(10, family.n_features_)).astype(np.float32)
    model = CompactClassifier(family, weights, np.zeros(10), np.arange(10))
    compiled = compile_classifier(model, "float32", quantize)
    macs = float(model.macs) * BATCH
    _compare(paired, Piece(lambda: compiled.decision_function(images), macs))


class Recipe(NamedTuple):
    """What a recipe's classifier computes: layers of maps, templates, cells a side, units."""

    shape: tuple[int, int, int]
    size: int
    maps: tuple[int, int]
    n_templates: int
    grid: int
    n_units: int
    deslanted: bool


RECIPES = {
    "mnist-quick": Recipe((28, 28, 1), 5, (4, 12), 48, 2, 24, True),
    "fashion-400k": Recipe((28, 28, 1), 3, (8, 24), 64, 3, 32, False),
    "cifar10-500k": Recipe((32, 32, 3), 3, (8, 16), 44, 2, 32, False),
}


def _classifier(recipe: Recipe) -> CompactClassifier:
    """Return a classifier of a recipe's structure, of noise."""
    images = np.random.default_rng(0).random((300, *recipe.shape), np.float32)
    layers: list[Layer] = [Deslant()] if recipe.deslanted else []
    layers += [_maps(n, 0, recipe.size) for n in recipe.maps]
    layers.append(Templates(recipe.n_templates, 3, grid=recipe.grid, n_patches=3000))
    family = _network([*layers, Units(recipe.n_units)], images)
    weights = np.random.default_rng(2).normal(size=(10, family.n_features_)).astype(np.float32)
    return CompactClassifier(family, weights, np.zeros(10), np.arange(10))


@pytest.mark.parametrize("name", list(RECIPES))
def test_whole_numbers_against_floats(paired: Paired, name: str) -> None:
    """Images in one call, in C; the same structure in 4 bits, in vectors of bytes."""
    model, shape = _classifier(RECIPES[name]), RECIPES[name].shape
    images = np.random.default_rng(1).integers(0, 256, (2000, *shape), np.uint8)
    assert isinstance(model.family, Network)
    family = quantized(model.family, images[:300], Bits(4, 4))
    weights = np.random.default_rng(2).integers(-7, 8, (10, family.n_features_))
    whole = CompactClassifier(family, weights, np.zeros(10, np.int64), np.arange(10), 900.0)
    ours, plain = compile_classifier(whole), compile_classifier(model)
    paired(lambda: ours.decision_function(images), lambda: plain.decision_function(images))


@pytest.mark.parametrize("name", list(RECIPES))
def test_one_image_in_python_against_onnxruntime(paired: Paired, name: str) -> None:
    """Single images, in the library and in onnxruntime on the library's own export."""
    import onnxruntime

    model = _classifier(RECIPES[name])
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    content = onnx_program(model).content
    session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    key = session.get_inputs()[0].name
    images = np.random.default_rng(1).integers(0, 256, (100, *model.image_shape), np.uint8)

    def ours() -> None:
        for i in range(len(images)):
            model.decision_function(images[i : i + 1])

    def plain() -> None:
        for i in range(len(images)):
            session.run(None, {key: images[i : i + 1]})

    paired(ours, plain)


@pytest.mark.parametrize("name", list(RECIPES))
def test_one_image_in_c_against_lenet(paired: Paired, name: str) -> None:
    """Single images, called from Python; LeNet-5 in onnxruntime, from floats."""
    recipe = RECIPES[name]
    compiled = compile_classifier(_classifier(recipe))
    rows, cols, channels = recipe.shape
    shape = (channels, rows, cols)
    layers = lenet(LENET_5, shape, 10)
    session = network_session(onnx_network(layers, shape, random_weights(layers, shape)))
    images = np.random.default_rng(1).integers(0, 256, (500, *recipe.shape), np.uint8)
    inputs = (images.astype(np.float32) / 255).transpose(0, 3, 1, 2).copy()

    def ours() -> None:
        for image in images:
            compiled.decision_function(image)

    def network() -> None:
        for i in range(len(inputs)):
            session.run(None, {"image": inputs[i : i + 1]})

    paired(ours, network)
