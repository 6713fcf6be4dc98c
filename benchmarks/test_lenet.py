"""A trained MNIST classifier in its own C against LeNet-5 in onnxruntime, on one thread.

Wants MNIST (VISIONSHARE_DATA, or ../shared/data beside the checkout) and what
``visionshare train mnist-early --data DIR`` writes.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from benchmarks.architectures import LENET_5
from benchmarks.architectures import lenet as lenet_layers
from benchmarks.data import data_folder, trained
from benchmarks.measuring import Paired
from benchmarks.onnx_networks import network_session, onnx_network, random_weights
from visionshare import CompactClassifier
from visionshare.datasets import load_images
from visionshare.export import compile_classifier

COUNT = 2000
SHAPE = (1, 28, 28)


@pytest.fixture(scope="module")
def classifier() -> CompactClassifier:
    return trained("mnist-early")


@pytest.fixture(scope="module")
def images() -> np.ndarray:
    return load_images("mnist", "test", data_folder("mnist")).images[:COUNT]


@pytest.fixture(scope="module")
def lenet(images: np.ndarray) -> Callable[[], None]:
    layers = lenet_layers(LENET_5, SHAPE, 10)
    session = network_session(onnx_network(layers, SHAPE, random_weights(layers, SHAPE)))
    rows = (images.astype(np.float32) / 255)[:, None]

    def run() -> None:
        for i in range(COUNT):
            session.run(None, {"image": rows[i : i + 1]})

    return run


@pytest.mark.parametrize("quantize", ["none", "int8"])
@pytest.mark.parametrize("early_exit", [False, True], ids=["all", "early"])
def test_one_image_against_lenet(
    paired: Paired,
    classifier: CompactClassifier,
    images: np.ndarray,
    lenet: Callable[[], None],
    quantize: str,
    early_exit: bool,
) -> None:
    """Both are called from Python for each image; all features, or as many as early exit needs."""
    compiled = compile_classifier(classifier, quantize=quantize, early_exit=early_exit)

    def ours() -> None:
        for image in images:
            compiled.decision_function(image)

    paired(ours, lenet)
